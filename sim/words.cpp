#include "sim/words.h"

#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace capo {

// It matters what a time is of if a rank has several chunks.
std::string unit_of_time(const Simulation& simulation) {
  const Costs& costs = simulation.costs();
  if (costs.in_microseconds) return "seconds";
  const auto& ranks = simulation.subject().schedule.ranks;
  const bool several = std::any_of(ranks.begin(), ranks.end(),
                                   [](const RankOrder& rank) { return rank.chunks > 1; });
  return fmt::format("units of --cost{}", !several ? ""
                                          : costs.per == CostPer::Rank
                                              ? " of a rank, of which a chunk takes its share"
                                              : " of a chunk");
}

std::string time_in_words(const Simulation& simulation, double value) {
  return figure(simulation.costs().in_microseconds ? value * 1e-6 : value);
}

std::string origins_in_words(const Simulation& simulation) {
  if (simulation.origins().empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const CostOrigin& origin : simulation.origins()) {
    rows.push_back({origin.module.empty() ? "(stages)" : origin.module, std::string(origin.task),
                    time_in_words(simulation, origin.microseconds), origin.why});
  }
  return fmt::format("\nCosts, in {}, by rates of {}:\n{}", unit_of_time(simulation),
                     simulation.rates(), table(rows, 3));
}

}  // namespace capo

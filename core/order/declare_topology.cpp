#include "core/order/declare_topology.h"

namespace capo {

namespace {

std::string number(std::size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::optional<std::string> misfit(const Schedule& schedule,
                                  const std::vector<std::vector<std::int32_t>>& stages) {
  if (stages.size() != schedule.ranks.size()) {
    return "it places " + number(stages.size(), "rank") + ", but the input has " +
           std::to_string(schedule.ranks.size());
  }
  for (std::size_t r = 0; r < stages.size(); ++r) {
    const auto chunks = static_cast<std::size_t>(schedule.ranks[r].chunks);
    if (stages[r].size() == chunks) continue;
    return "it places " + number(stages[r].size(), "chunk") + " of rank " + std::to_string(r) +
           ", but the input has " + std::to_string(chunks);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> declare_topology(Schedule& schedule, Topology topology,
                                            const std::vector<std::vector<std::int32_t>>& stages) {
  if (topology == Topology::Independent) {
    schedule.topology = topology;
    return std::nullopt;
  }
  if (topology == Topology::Custom) {
    if (auto why = misfit(schedule, stages)) return why;
  }
  std::vector<std::vector<std::int32_t>> before;
  for (const RankOrder& rank : schedule.ranks) before.push_back(rank.stages);
  const Topology stated = schedule.topology;

  schedule.topology = topology;
  for (std::size_t r = 0; r < stages.size() && topology == Topology::Custom; ++r) {
    schedule.ranks[r].stages = stages[r];
  }
  place_stages(schedule);
  if (stated == Topology::Independent) return std::nullopt;

  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (schedule.ranks[r].stages == before[r]) continue;
    for (std::size_t back = 0; back < before.size(); ++back) {
      schedule.ranks[back].stages = before[back];
    }
    schedule.topology = stated;
    return "the input itself places the stages of rank " + std::to_string(r) + " otherwise";
  }
  return std::nullopt;
}

}  // namespace capo

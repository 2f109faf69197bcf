#include "run/processes/processes.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <sstream>

namespace capo::run {

namespace {

// A line a rank: its number, whom it waits for, and the words for that.
std::string told(const std::vector<StuckRank>& own) {
  std::string text;
  for (const StuckRank& of : own) text += fmt::format("{} {} {}\n", of.rank, of.awaited, of.words);
  return text;
}

void take(std::vector<std::optional<StuckRank>>& all, const std::string& text) {
  std::istringstream lines(text);
  StuckRank of;
  while (lines >> of.rank >> of.awaited && std::getline(lines >> std::ws, of.words)) {
    if (of.rank >= 0 && as_index(of.rank) < all.size()) all[as_index(of.rank)] = of;
  }
}

// "rank 0 for rank 1, which waits for rank 0", of the first circle of waits; empty if there is
// none.
std::string circle_of(const std::vector<std::optional<StuckRank>>& all) {
  const auto awaited = [&](std::int32_t rank) {
    const bool known = rank >= 0 && as_index(rank) < all.size() && all[as_index(rank)];
    return known ? all[as_index(rank)]->awaited : -1;
  };
  const auto ranks = static_cast<std::int32_t>(all.size());
  for (std::int32_t first = 0; first < ranks; ++first) {
    std::string words = fmt::format("rank {}", first);
    std::int32_t at = awaited(first);
    for (std::int32_t steps = 0; steps < ranks && at >= 0; ++steps) {
      words += fmt::format("{} for rank {}", steps == 0 ? "" : ", which waits", at);
      if (at == first) return words;
      at = awaited(at);
    }
  }
  return "";
}

std::string words_of(const std::vector<std::optional<StuckRank>>& all,
                     Processes::Duration timeout) {
  std::string words =
      fmt::format("no message came for {:g} s, and ranks are stuck:", timeout.count());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    words += fmt::format("\n  rank {} {}", rank, all[rank] ? all[rank]->words : "does not answer");
  }
  const std::string circle = circle_of(all);
  return circle.empty() ? words : words + "\n  in a circle: " + circle;
}

}  // namespace

std::string stuck_state_of(Processes& processes, const std::vector<StuckRank>& own,
                           std::int32_t ranks) {
  const auto texts = processes.gather(told(own));
  if (processes.rank() != 0) {
    return texts.front() ? ""
                         : fmt::format("rank {} {}, and rank 0 does not answer", own.front().rank,
                                       own.front().words);
  }
  std::vector<std::optional<StuckRank>> all(as_index(ranks));
  for (const auto& text : texts) take(all, text.value_or(""));
  return words_of(all, processes.timeout());
}

}  // namespace capo::run

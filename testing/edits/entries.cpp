#include "testing/edits/entries.h"

namespace capo::testing {

std::vector<Position> entries_that(
    const Schedule& schedule, const std::function<bool(const Entry&, const RankOrder&)>& fits) {
  std::vector<Position> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    for (std::size_t at = 0; at < rank.order.size(); ++at) {
      if (fits(rank.order[at], rank)) found.push_back({.rank = r, .at = at});
    }
  }
  return found;
}

std::vector<Position> compute_entries(const Schedule& schedule) {
  return entries_that(schedule,
                      [](const Entry& entry, const RankOrder&) { return is_compute(entry.kind); });
}

Place fault_place(const Schedule& schedule, Position place) {
  Place out{.rank = static_cast<std::int32_t>(place.rank)};
  const auto& order = schedule.ranks[place.rank].order;
  for (std::size_t i = 1; i <= place.at; ++i) {
    if (order[i].group != Group::Continues) ++out.index;
  }
  return out;
}

std::optional<std::size_t> lack_of(const RankOrder& rank, const Action& gone) {
  std::optional<std::size_t> last;
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Entry& entry = rank.order[at];
    const bool fellow =
        is_compute(entry.kind) && entry.chunk == gone.chunk && entry.microbatch == gone.microbatch;
    if (!fellow) continue;
    last = at;
    const bool needs_it = gone.kind == Kind::Forward || entry.kind == Kind::BackwardWeight;
    if (needs_it && gone.kind != Kind::BackwardWeight) break;
  }
  return last;
}

std::optional<std::size_t> find(const RankOrder& rank, const Action& action) {
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    if (rank.order[at].action() == action) return at;
  }
  return std::nullopt;
}

}  // namespace capo::testing

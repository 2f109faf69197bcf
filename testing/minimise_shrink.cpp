#include "testing/minimise_shrink.h"

#include "core/minimise/edits.h"
#include "core/minimise/settle.h"
#include "core/minimise/size.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>

namespace capo::testing {

namespace {

class Smaller {
 public:
  explicit Smaller(const Schedule& schedule) : schedule_(schedule), size_(size_of(schedule)) {}

  void add(std::optional<Schedule> candidate) {
    if (candidate && size_of(*candidate) < size_) found_.push_back(std::move(*candidate));
  }
  void add_all(std::vector<Schedule> candidates) {
    for (Schedule& candidate : candidates) add(std::move(candidate));
  }
  // Tries both halves, then one by one.
  template <typename Without>
  void add_parts(std::size_t parts, const Without& without) {
    if (parts > 2) {
      add(without(parts / 2, parts));
      add(without(std::size_t{0}, parts / 2));
    }
    for (std::size_t part = parts; part-- > 0;) add(without(part, part + 1));
  }
  void add_structure();
  void add_entries();

  [[nodiscard]] std::vector<Schedule> found() && { return std::move(found_); }

 private:
  const Schedule& schedule_;
  Size size_;
  std::vector<Schedule> found_;
};

void Smaller::add_structure() {
  add_parts(schedule_.ranks.size(), [&](std::size_t begin, std::size_t end) {
    return without_ranks(schedule_, begin, end);
  });
  const std::vector<std::int32_t> microbatches = microbatches_in(schedule_);
  if (microbatches.size() > 1) {
    add_parts(microbatches.size(), [&](std::size_t begin, std::size_t end) {
      return without_microbatches(schedule_, std::span(microbatches).subspan(begin, end - begin));
    });
  }
  const std::vector<std::int32_t> layers = layers_in(schedule_);
  if (layers.size() > 1) {
    // Without its first layer a V would run the other way round.
    const std::size_t first = schedule_.topology == Topology::V ? layers.size() - 1 : 0;
    add_parts(layers.size() - first, [&](std::size_t begin, std::size_t end) {
      return without_layers(schedule_, std::span(layers).subspan(first + begin, end - begin));
    });
  }
  // All ranks' replay orders go together, since they are sound only with each other.
  Schedule captured = schedule_;
  for (RankOrder& rank : captured.ranks) rank.replay.reset();
  settle(captured);
  add(std::move(captured));
  add(without_weights(schedule_, 0, schedule_.ranks.size()));
  add_all(with_less_declared(schedule_));
}

void Smaller::add_entries() {
  for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
    add_parts(schedule_.ranks[r].order.size(), [&](std::size_t begin, std::size_t end) {
      return without_entries(schedule_, r, From::Both, begin, end);
    });
  }
  add_all(renamings(schedule_));
  for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
    for (std::size_t at = 0; at + 1 < schedule_.ranks[r].order.size(); ++at) {
      add(with_neighbours_swapped(schedule_, r, false, at));
    }
  }
}

// Its last chunk goes with a number that other ranks have more chunks beside.
bool computes_nothing(const RankOrder& rank) {
  return std::none_of(rank.order.begin(), rank.order.end(),
                      [](const Entry& entry) { return is_compute(entry.kind); });
}

// Without a declaration the capture says which chunks delay, and the only microbatch that says so
// may go.
bool replays_other_halves(const RankOrder& rank) {
  if (!rank.replay || rank.delay) return false;
  RankOrder replayed = rank;
  replayed.order = *rank.replay;
  const std::vector<Delay> captures = resolved_delay(rank);
  const std::vector<Delay> replays = resolved_delay(replayed);
  for (std::size_t chunk = 0; chunk < captures.size(); ++chunk) {
    if (captures[chunk] != Delay::Mixed && captures[chunk] != replays[chunk]) return true;
  }
  return false;
}

using OfRank = bool (*)(const RankOrder&);

// Ranks that a step broke, though it took whole microbatches or chunks away.
bool breaks_ranks(const Schedule& before, const Schedule& after) {
  for (const OfRank broken : {computes_nothing, replays_other_halves}) {
    const auto count = [broken](const Schedule& schedule) {
      return std::count_if(schedule.ranks.begin(), schedule.ranks.end(), broken);
    };
    if (count(after) > count(before)) return true;
  }
  return false;
}

}  // namespace

std::vector<Schedule> smaller_schedules(const Schedule& schedule) {
  Smaller smaller(schedule);
  smaller.add_structure();
  smaller.add_entries();
  return std::move(smaller).found();
}

std::vector<Schedule> smaller_sound_schedules(const Schedule& schedule) {
  Smaller smaller(schedule);
  smaller.add_structure();
  std::vector<Schedule> found = std::move(smaller).found();
  std::erase_if(found, [&](const Schedule& after) { return breaks_ranks(schedule, after); });
  return found;
}

}  // namespace capo::testing

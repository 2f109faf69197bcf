// How many slots a family of Megatron's orders needs: graphs that are captured for k microbatches
// and replayed for any number, microbatch m by those of m mod k; and whether a declared map, which
// says otherwise which graphs microbatch m replays, holds for any number.
//
//   PP 2, rank 0:   [1, 1, -1, 1, -1, ..., 1, -1, -1]     two slots, whatever the number
//   map 0,1,0,2     holds as well; map 0,0,1 does not: microbatches 0 and 1 are under way at once
//
// Orders of a few microbatches are looked at one by one. From some number on each holds a stretch
// twice in a row in which every chunk runs a whole group of microbatches forward and backward, and
// the order of a group more is the same with that stretch once more. Then nothing new comes: a
// stretch leaves as many microbatches under way as it found, so that inside a third one there are
// as many as inside the second.
//
// A map of L slots comes round after so many stretches that their microbatches are a multiple of L.
// Two microbatches that are under way at once lie within few stretches; where there are twice as
// many as the map takes to come round, and these few, such a round can be taken out before or
// behind the two, and both use the slots that they used. So a longer order takes a slot too early
// only if one does that is a round shorter. Tested by slots_test.cpp.

#include "core/base/index.h"
#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/megatron/orders.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace capo::megatron {

namespace {

std::int64_t chunk_of(double value) {
  return static_cast<std::int64_t>(std::abs(std::ceil(value)));
}

bool is_weight(double value) {
  return std::floor(value) != value;
}

// The positions at which a chunk runs forward, and at which its slots are let go.
struct Runs {
  std::vector<std::size_t> forwards;
  std::vector<std::size_t> backwards;
  std::vector<std::size_t> weights;

  [[nodiscard]] const std::vector<std::size_t>& readers() const {
    return weights.empty() ? backwards : weights;
  }
};

std::map<std::int64_t, Runs> runs_of(const TeList& order) {
  std::map<std::int64_t, Runs> runs;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const double value = order.entries[at].value;
    Runs& of = runs[chunk_of(value)];
    (value > 0 ? of.forwards : is_weight(value) ? of.weights : of.backwards).push_back(at);
  }
  return runs;
}

// Forward k needs a slot of its own beside those whose readers come later.
std::int64_t slots_needed(const TeList& order) {
  std::int64_t most = 0;
  for (const auto& [chunk, of] : runs_of(order)) {
    std::size_t over = 0;
    for (std::size_t k = 0; k < of.forwards.size(); ++k) {
      while (over < of.readers().size() && of.readers()[over] < of.forwards[k]) ++over;
      most = std::max(most, static_cast<std::int64_t>(k + 1 - over));
    }
  }
  return most;
}

// Whether `longer` is the order with a stretch once more that stands there twice in a row, or the
// same order, since one microbatch is captured for all. The two part where the order leaves its
// repetitions.
bool repeats_in(const std::vector<TeEntry>& order, const std::vector<TeEntry>& longer) {
  const auto same = [](const TeEntry& a, const TeEntry& b) { return a.value == b.value; };
  const auto length = static_cast<std::ptrdiff_t>(longer.size() - order.size());
  const auto [end, more] = std::mismatch(order.begin(), order.end(), longer.begin(), same);
  if (length == 0) return end == order.end();
  if (end - order.begin() < 2 * length || longer.end() - more < length) return false;
  return std::equal(end - length, end, end - 2 * length, same) &&
         std::equal(end - length, end, more, same) &&
         std::equal(end, order.end(), more + length, longer.end(), same);
}

bool repeats_in(const Generated& orders, const Generated& longer) {
  for (std::size_t r = 0; r < orders.orders.size(); ++r) {
    if (!repeats_in(orders.orders[r].entries, longer.orders[r].entries)) return false;
  }
  return true;
}

Request with_microbatches(Request request, std::int64_t microbatches) {
  request.configuration.microbatches = microbatches;
  return request;
}

}  // namespace

std::optional<SlotTaken> first_slot_taken(const TeList& order, const SlotChoice& choice) {
  std::optional<SlotTaken> first;
  for (const auto& [chunk, of] : runs_of(order)) {
    std::map<std::int64_t, std::size_t> last;  // by slot: who used it last
    for (std::size_t k = 0; k < of.forwards.size(); ++k) {
      if (first && first->forward < of.forwards[k]) break;
      const auto microbatch = static_cast<std::int64_t>(k);
      const auto [used, fresh] = last.try_emplace(choice.slot_of(microbatch), k);
      const std::size_t before = std::exchange(used->second, k);
      const bool reads = before < of.readers().size();
      if (fresh || (reads && of.readers()[before] < of.forwards[k])) continue;
      first = SlotTaken{.forward = of.forwards[k],
                        .reader = reads ? std::optional(of.readers()[before]) : std::nullopt,
                        .chunk = chunk,
                        .microbatch = static_cast<std::int64_t>(before),
                        .taker = microbatch};
      break;
    }
  }
  return first;
}

namespace {

// So many microbatches are enough to look at, as the head of this file says.
std::int64_t enough_for(const SlotChoice& choice, const Slots& slots) {
  if (choice.map.empty()) return slots.looked_at;
  const auto length = static_cast<std::int64_t>(choice.map.size());
  const std::int64_t round = length / std::gcd(length, slots.period);
  const std::int64_t most = *std::max_element(slots.needed.begin(), slots.needed.end());
  const std::int64_t near = most / slots.period + 2;
  return slots.looked_at + slots.period * (2 * round + near);
}

}  // namespace

Made<SlotVerdict> judge_choice(const Request& request, const SlotChoice& choice, const Slots& slots,
                               const Limits& limits) {
  SlotVerdict verdict{.counterexample = std::nullopt, .looked_at = enough_for(choice, slots)};
  if (auto limit = beyond("the number of microbatches to look at", verdict.looked_at, limits)) {
    return NoOrder{std::move(*limit)};
  }
  for (std::int64_t m = 1; m <= verdict.looked_at; ++m) {
    const Request of_m = with_microbatches(request, m);
    if (mcore::refusal(of_m.configuration)) continue;
    auto orders = orders_of(of_m, limits);
    if (!orders) return orders.error();
    for (std::size_t rank = 0; rank < orders->orders.size(); ++rank) {
      const auto taken = first_slot_taken(orders->orders[rank], choice);
      if (!taken) continue;
      verdict.counterexample = {*std::move(orders), rank, *taken};
      return verdict;
    }
  }
  return verdict;
}

Made<Slots> slots_for_any_microbatches(const Request& request, const Limits& limits) {
  const mcore::Configuration& configuration = request.configuration;
  const std::int64_t period = configuration.virtual_stages
                                  ? configuration.group_size.value_or(configuration.pipeline)
                                  : std::int64_t{1};
  if (auto limit = beyond("the number of microbatches in a group", period, limits)) {
    return NoOrder{std::move(*limit)};
  }
  Slots slots{.period = period};
  std::int64_t repeating = 0;  // numbers in a row whose orders repeat, or that Megatron refuses
  for (std::int64_t m = 1; repeating < period; ++m) {
    const Request of_m = with_microbatches(request, m);
    slots.looked_at = m;
    if (mcore::refusal(of_m.configuration)) {
      ++repeating;
      continue;
    }
    const auto orders = orders_of(of_m, limits);
    if (!orders) return orders.error();
    const auto longer = orders_of(with_microbatches(request, m + period), limits);
    if (!longer) return longer.error();
    slots.needed.resize(orders->orders.size());
    for (std::size_t r = 0; r < orders->orders.size(); ++r)
      slots.needed[r] = std::max(slots.needed[r], slots_needed(orders->orders[r]));
    repeating = repeats_in(*orders, *longer) ? repeating + 1 : 0;
  }
  return slots;
}

}  // namespace capo::megatron

// How many slots a family of Megatron's orders needs: graphs that are captured for k microbatches
// and replayed for any number, microbatch m by those of m mod k.
//
//   PP 2, rank 0:   [1, 1, -1, 1, -1, ..., 1, -1, -1]     two slots, whatever the number
//
// Orders of a few microbatches are looked at one by one. From some number on each holds a stretch
// twice in a row in which every chunk runs a whole group of microbatches forward and backward, and
// the order of a group more is the same with that stretch once more. Then nothing new comes: a
// stretch leaves as many microbatches under way as it found, so that inside a third one there are
// as many as inside the second. Tested by slots_test.cpp.

#include "core/base/index.h"
#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/megatron/orders.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
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

std::optional<SlotTaken> first_slot_taken(const TeList& order, std::int64_t slots) {
  std::optional<SlotTaken> first;
  for (const auto& [chunk, of] : runs_of(order)) {
    for (std::size_t k = as_index(slots); k < of.forwards.size(); ++k) {
      const std::size_t before = k - as_index(slots);
      const bool reads = before < of.readers().size();
      if (reads && of.readers()[before] < of.forwards[k]) continue;
      if (first && first->forward < of.forwards[k]) break;
      first = SlotTaken{.forward = of.forwards[k],
                        .reader = reads ? std::optional(of.readers()[before]) : std::nullopt,
                        .chunk = chunk,
                        .microbatch = static_cast<std::int64_t>(before)};
      break;
    }
  }
  return first;
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

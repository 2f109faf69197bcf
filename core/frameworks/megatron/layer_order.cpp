// Megatron-LM expands a chunk-wise order into layers if it overlaps the communication of expert
// parallelism: every layer becomes a chunk of its own to TransformerEngine.
//
//   order [1, 2, -2, 1, -1, -1], layers per chunk [1, 2], delayed weight gradients:
//   1 | 2 3 | 1 -3 -3.5 -2 -2.5 | -1 -1.5 | -1 -1.5
//
// Up to the first backward each forward ascends through its layers. From there to the last forward
// the entries are taken two by two, a backward and the forward that runs beside it, layer by layer:
// forward, backward, weight gradient; the last weight gradient of a pair waits for all of its
// forwards. What is left descends.
//
// The function trusts its input to alternate in between. Where it does not, entries are lost,
// doubled or in the wrong place, without a word; that is reproduced. An order without a backward or
// without a forward raises, and so does a chunk without a layer count. The function is read at the
// commit in version.h. Tested by orders_test.cpp against the function itself.

#include "core/base/index.h"
#include "core/frameworks/megatron/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace capo::megatron {

namespace {

constexpr const char* kName = "get_overlap_moe_expert_parallel_comm_order";

/// Consecutive numbers of layers: `first`, first + 1, ...
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  /// Zero, which is no layer, beyond the end.
  [[nodiscard]] std::int64_t at(std::int64_t index) const {
    return index < count ? first + index : 0;
  }
};

class Expansion {
 public:
  Expansion(std::span<const std::int64_t> order, std::span<const std::int64_t> layers_per_chunk,
            WeightGradients weight_gradients, const Limits& limits)
      : order_(order), counts_(layers_per_chunk), limits_(limits) {
    delayed_ = weight_gradients == WeightGradients::Delayed;
    before_.reserve(counts_.size());
    std::int64_t sum = 0;
    for (const std::int64_t count : counts_) {
      before_.push_back(sum);
      sum += count;
    }
  }

  Made<LayerOrder> run() {
    const std::optional<std::size_t> backward = first_backward();
    const std::optional<std::size_t> forward = last_forward();
    warm_up(backward.value_or(order_.size()));
    if (!failure_ && (!backward || !forward)) fail(uncomparable(backward, forward));
    if (!failure_) pair_up(*backward, *forward);
    if (!failure_) cool_down(*forward + 1);
    if (failure_) return std::move(*failure_);
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::optional<std::size_t> first_backward() const {
    const auto at = std::find_if(order_.begin(), order_.end(), [](auto c) { return c < 0; });
    if (at == order_.end()) return std::nullopt;
    return as_index(at - order_.begin());
  }
  [[nodiscard]] std::optional<std::size_t> last_forward() const {
    const auto at = std::find_if(order_.rbegin(), order_.rend(), [](auto c) { return c > 0; });
    if (at == order_.rend()) return std::nullopt;
    return as_index(order_.rend() - at) - 1;
  }

  // Megatron compares the two indices, one of which is Python's None.
  static Raised uncomparable(std::optional<std::size_t> backward,
                             std::optional<std::size_t> forward) {
    return {
        .function = kName,
        .place = backward  ? "a chunk order without a forward"
                 : forward ? "a chunk order without a backward"
                           : "a chunk order without a forward and a backward",
        .exception = fmt::format("TypeError: '<' not supported between instances of '{}' and '{}'",
                                 backward ? "int" : "NoneType", forward ? "int" : "NoneType")};
  }

  void warm_up(std::size_t end) {
    for (std::size_t i = 0; i < end && !failure_; ++i) {
      const LayerRange layers = layers_at(i);
      for (std::int64_t l = 0; l < layers.count && !failure_; ++l) {
        add(layers.first + l, ForwardPlace{.chunk = static_cast<std::int32_t>(chunk_at(i) - 1),
                                           .layer = static_cast<std::int32_t>(l)});
      }
    }
  }

  void pair_up(std::size_t first_backward, std::size_t last_forward) {
    for (std::size_t i = first_backward; i < last_forward && !failure_; i += 2) {
      const LayerRange forward = layers_at(i + 1);
      const LayerRange backward = layers_at(i);
      const std::int64_t steps = std::max(forward.count, backward.count);
      for (std::int64_t l = 0; l < steps && !failure_; ++l) {
        if (forward.at(l) != 0) add(forward.at(l), place(i + 1, l));
        if (backward.at(l) == 0) continue;
        add(backward.at(l), place(i, kNoLayer));
        if (l + 1 < backward.count) add_weight(backward.at(l), i);
      }
      if (backward.count > 0) add_weight(backward.at(backward.count - 1), i);
    }
  }

  void cool_down(std::size_t begin) {
    for (std::size_t i = begin; i < order_.size() && !failure_; ++i) {
      const LayerRange layers = layers_at(i);
      for (std::int64_t l = 0; l < layers.count && !failure_; ++l) {
        add(layers.at(l), place(i, kNoLayer));
        add_weight(layers.at(l), i);
      }
    }
  }

  // The layers of the chunk at this index; without a count for it Megatron raises. Chunk 0 is the
  // last one, as Python counts from the end.
  LayerRange layers_at(std::size_t index) {
    const std::int64_t entry = order_[index];
    const std::uint64_t chunk =
        entry < 0 ? 0 - static_cast<std::uint64_t>(entry) : static_cast<std::uint64_t>(entry);
    const std::uint64_t position = chunk == 0 ? counts_.size() - 1 : chunk - 1;
    if (position >= counts_.size()) {
      fail(Raised{.function = kName,
                  .place = fmt::format("index {} of the chunk order: chunk {} of {}", index, chunk,
                                       counts_.size()),
                  .exception = "IndexError: list index out of range"});
      return {};
    }
    const std::int64_t before = before_[position];
    const std::int64_t count = counts_[position];
    const std::size_t made = made_.order.entries.size();
    if (count > 0 && static_cast<std::uint64_t>(count) > limits_.entries - made) {
      fail(too_many_entries(limits_));  // before the last entry that fits is made
      return {};
    }
    return {.first = entry > 0 ? before + 1 : -before - count,
            .count = std::max<std::int64_t>(count, 0)};
  }

  // In range wherever layers_at() was.
  [[nodiscard]] std::int64_t chunk_at(std::size_t index) const { return std::abs(order_[index]); }

  [[nodiscard]] std::optional<ForwardPlace> place(std::size_t index, std::int64_t layer) const {
    if (order_[index] <= 0) return std::nullopt;
    return ForwardPlace{.chunk = static_cast<std::int32_t>(chunk_at(index) - 1),
                        .layer = static_cast<std::int32_t>(layer)};
  }

  void add_weight(std::int64_t layer, std::size_t index) {
    if (!delayed_) return;
    push({.value = static_cast<double>(layer) - 0.5, .type = NumberType::Float},
         place(index, kNoLayer));
  }
  void add(std::int64_t layer, std::optional<ForwardPlace> of) {
    push({.value = static_cast<double>(layer), .type = NumberType::Integer}, of);
  }
  void push(TeEntry entry, std::optional<ForwardPlace> of) {
    if (made_.order.entries.size() >= limits_.entries) return fail(too_many_entries(limits_));
    made_.order.entries.push_back(entry);
    made_.places.push_back(of);
  }

  void fail(NoOrder why) {
    if (!failure_) failure_ = std::move(why);
  }

  std::span<const std::int64_t> order_;
  std::span<const std::int64_t> counts_;
  std::vector<std::int64_t> before_;  // layers of the chunks before each
  const Limits& limits_;
  bool delayed_ = false;
  LayerOrder made_;
  std::optional<NoOrder> failure_;
};

}  // namespace

Made<LayerOrder> layer_order(std::span<const std::int64_t> order,
                             std::span<const std::int64_t> layers_per_chunk,
                             WeightGradients weight_gradients, const Limits& limits) {
  for (const std::int64_t count : layers_per_chunk) {
    if (auto limit = beyond("the number of layers", count, limits)) {
      return NoOrder{std::move(*limit)};
    }
  }
  return Expansion(order, layers_per_chunk, weight_gradients, limits).run();
}

}  // namespace capo::megatron

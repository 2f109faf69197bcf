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

#pragma once

#include "core/frameworks/megatron/no_order.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace capo::megatron {

/// Python's None: a forward stood where a backward belongs.
constexpr std::int32_t kNoLayer = -1;

enum class WeightGradients {
  InBackward,  ///< they have no entries of their own
  Delayed,     ///< every -c has a -c-0.5
};

/// A forward entry of a layer order runs this layer of this chunk, both counted from 0.
struct ForwardPlace {
  std::int32_t chunk = 0;
  std::int32_t layer = kNoLayer;  ///< in its chunk

  friend bool operator==(const ForwardPlace&, const ForwardPlace&) = default;
};

struct LayerOrder {
  TeList order;
  std::vector<std::optional<ForwardPlace>> places;  ///< by entry; nullopt for a backward
};

/// get_overlap_moe_expert_parallel_comm_order. Layer counts beyond the chunks of the order are not
/// looked at, and negative ones are no layers.
[[nodiscard]] Made<LayerOrder> layer_order(std::span<const std::int64_t> order,
                                           std::span<const std::int64_t> layers_per_chunk,
                                           WeightGradients weight_gradients,
                                           const Limits& limits = {});

}  // namespace capo::megatron

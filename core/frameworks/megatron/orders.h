// The orders that Megatron-LM itself makes for a configuration: of one rank or of all.
//
//   PP 2, VP 2, 4 microbatches, rank 1:   [1, 1, 2, -2, 2, -2, 1, -1, 1, -1, 2, -2, 2, -2, -1, -1]
//
// Two orders are Megatron's. The code that captures CUDA graphs makes one, and with the overlap of
// expert parallel communication expands it into layers; the runtime makes the other, chunk by
// chunk, with one forward more before the first backward where that overlap is on. Layer by layer
// the two then agree. Without a pipeline there are two more differences: without the overlap one
// microbatch is captured and replayed for all, and with it the runtime does not ask
// get_pp_rank_microbatches but runs one forward ahead.
//
// A configuration that Megatron's runtime would refuse is ordered all the same (mcore::refusal says
// why it would); one that makes its functions raise gives a Raised. The layers that can be captured
// are an input, and so is whether their weight gradients are: capo does not know the model. Tested
// by orders_test.cpp and laws_test.cpp.

#pragma once

#include "core/frameworks/megatron/mcore.h"
#include "core/frameworks/megatron/no_order.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

enum class Which {
  Capture,  ///< handed to make_graphed_callables
  Runtime,  ///< executed by the schedule
};

struct Request {
  mcore::Configuration configuration;
  Which which = Which::Capture;
  std::optional<std::int64_t> rank;            ///< nullopt: all ranks
  std::vector<std::int64_t> layers_per_chunk;  ///< so many can be captured; empty: one each

  /// Read only if a chunk is expanded into layers, as in Megatron.
  WeightGradients weight_gradients = WeightGradients::InBackward;

  /// Whether the numbers of the order stand for layers, each a chunk to TransformerEngine.
  [[nodiscard]] bool by_layer() const {
    return which == Which::Capture && configuration.ep_overlap;
  }
};

struct Generated {
  Request request;
  std::vector<TeList> orders;     ///< one for each rank asked for, in rank order
  std::int64_t microbatches = 0;  ///< one if one microbatch is captured for all
};

/// Its size is bounded by `limits`: entries over all ranks, ranks, and every number by counts.
/// A configuration of less than one rank has no orders.
[[nodiscard]] Made<Generated> orders_of(const Request& request, const Limits& limits = {});

/// The reason why nothing can run these orders, though no function of Megatron objected: a backward
/// comes before its forward, or there is nothing in them. nullopt if neither is so, which does not
/// make them right.
[[nodiscard]] std::optional<std::string> nonsense_in(const Generated& generated);

/// Which slot of its chunk, and so which graph, each microbatch replays.
struct SlotChoice {
  std::int64_t slots = 1;         ///< microbatch m uses slot m mod `slots`,
  std::vector<std::int64_t> map;  ///< or map[m mod its length] if this is not empty

  [[nodiscard]] std::int64_t slot_of(std::int64_t microbatch) const {
    if (map.empty()) return microbatch % slots;
    return map[static_cast<std::size_t>(microbatch) % map.size()];
  }
};

/// A forward that comes to a slot which another microbatch of its chunk still needs: until its
/// weight gradient, or its backward if that has none of its own.
struct SlotTaken {
  std::size_t forward = 0;            ///< its position in the order
  std::optional<std::size_t> reader;  ///< the last that needs the slot; nullopt: the order has none
  std::int64_t chunk = 0;             ///< from 1
  std::int64_t microbatch = 0;        ///< which needs it, from 0
  std::int64_t taker = 0;             ///< the microbatch whose forward comes to it

  friend bool operator==(const SlotTaken&, const SlotTaken&) = default;
};
[[nodiscard]] std::optional<SlotTaken> first_slot_taken(const TeList& order,
                                                        const SlotChoice& choice);

/// The fewest slots with which no order of a family takes one that is needed, whatever the number
/// of microbatches (slots.cpp). The family is that of the request, whose number does not matter.
struct Slots {
  std::vector<std::int64_t> needed;  ///< by rank that was asked for
  std::int64_t looked_at = 0;        ///< all numbers of microbatches up to this one
  /// So many microbatches more repeat, in each order beyond, a stretch that is there already and
  /// leaves as many under way as it found.
  std::int64_t period = 0;
};
[[nodiscard]] Made<Slots> slots_for_any_microbatches(const Request& request,
                                                     const Limits& limits = {});

/// The verdict tells what becomes of a choice of slots in a family, by the first order that takes
/// one too early.
struct SlotVerdict {
  struct Counterexample {
    Generated orders;
    std::size_t rank = 0;  ///< of those that were asked for
    SlotTaken taken;
  };
  std::optional<Counterexample> counterexample;  ///< nullopt: the choice holds for any number
  std::int64_t looked_at = 0;                    ///< all numbers of microbatches up to this one
};
/// `slots` is what slots_for_any_microbatches() says of the family.
[[nodiscard]] Made<SlotVerdict> judge_choice(const Request& request, const SlotChoice& choice,
                                             const Slots& slots, const Limits& limits = {});

/// One schedule of the orders of all ranks (schedule.cpp). The request names no single rank, and no
/// layer count is negative.
[[nodiscard]] Schedule schedule_of(const Generated& generated);

}  // namespace capo::megatron

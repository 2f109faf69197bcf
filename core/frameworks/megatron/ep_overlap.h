// Megatron-LM overlaps expert-parallel communication: it takes layers apart into computations and
// exchanges, and launches forward and backward of a step side by side.
//
//   slot  1 b post-process    comp        8 b pre-dispatch  comp   (early release)
//         2 b combine         comm        9 f experts       comp
//         3 f pre-dispatch    comp       10 f combine       comm
//         4 b experts         comp       11 b pre-dispatch  comp   (default)
//         5 f dispatch        comm       12 f post-process  comp
//         6 b experts W       comp       13 b pre-dispatch W comp  (not of the chunk's first layer)
//         7 b dispatch        comm
//
// One event belongs to each microbatch of a chunk: a node waits for it, works, and records it, on
// whichever stream it runs; so the nodes of one microbatch form one chain across both streams, and
// forward and backward are tied by stream order only. A weight gradient neither waits nor records:
// nothing but the order of its stream holds it, and no exchange waits for the one launched before
// it. The first layer's W comes behind the whole step.
//
// Embedding and loss around the layers are not taken apart, nor are layers without experts, whose
// exchanges do nothing. It is read in model_chunk_schedule_plan.py at the commit in version.h.
// Tested by ep_overlap_test.cpp, which prints the thirteen slots.

#pragma once

#include "core/graph/lowered.h"
#include "core/model/environment.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

/// Slots 1 to 13 of one layer running forward beside one running backward; the two are steps of
/// their chunks. `first_layer`: it is that of the backward's chunk, and its W is left to the
/// caller.
[[nodiscard]] std::vector<Step> combined_layers(const Step& forward, const Step& backward,
                                                bool first_layer, const EpOverlap& options);

/// Takes every forward and backward apart into its chunk's layers; a forward and a backward in one
/// group run side by side, and surplus layers of one follow. Transfers and other steps keep their
/// place. `layers`: by rank and chunk, at least 1.
[[nodiscard]] Lowered take_layers_apart(const Lowered& lowered,
                                        const std::vector<std::vector<std::int32_t>>& layers,
                                        const EpOverlap& options);

/// An order that lists layers one by one, as they are captured ([2, -3, -3.5, 3, -2, -2.5]): every
/// entry is one layer. A forward and the backward right behind it run side by side unless the one
/// needs the other; a weight gradient right behind a backward takes the places of slots 6 and 13,
/// any other keeps its own. Which weights are delayed is read off the order, and not off `options`.
[[nodiscard]] Lowered take_listed_layers_apart(const Lowered& lowered, const EpOverlap& options);

}  // namespace capo

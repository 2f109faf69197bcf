// plan_as_te() gives memory out as TransformerEngine does when it captures an order with
// _reuse_graph_input_output_buffers, as Megatron-LM asks it to.
//
//   static inputs   a forward takes the oldest freed one of its signature, else a new one; freed at
//                   its backward, whatever its weight gradient still reads
//   grad outputs    one for each signature, written anew by every backward
//   pool            outputs until their own backward is captured; grad inputs of inner layers until
//                   that of the next lower layer is, of first layers until any chunk's next
//                   backward
//
// PyTorch's allocator decides about the pool. Assumed is the worst that it may do with blocks of
// one size: it gives out a grad input that was let go and may still be read, else the block freed
// last, and never cuts or joins blocks. So 103 of 128 overwritten input gradients are overwritten
// where an H200 showed it (of 16 each, with small and large tensors: copies 16 and 16, a linear or
// grouped linear 15 and 12, behind a norm 9 and 8; p2p_window_test.cpp prints them). Of 120, 115
// are overwritten sooner or later than the next chunk of the model ends, as there, and none later
// than there. With TransformerEngine 2.20.2, which lets outputs go earlier, 55 of 128 positions and
// 114 of 120 windows come out so, and none is missed. Hazards in the pool are therefore possible
// ones. It is read off graph.py 329-377 and 806-914.
//
// te_could_hurt() tells without a plan whether this could hurt an order:
//
//   [1, 1, -1, -1.5, -1, -1.5]      no: every weight gradient follows its backward
//   [1, -1, 1, -1.5, -1, -1.5]      yes: the second forward takes the input that -1.5 still reads
//
// A list that declares no plan is judged under TE's only if that says so, since nearly no list is
// and planning one costs more than all other rules. Its answer is the plan's for static inputs and
// incoming gradients of one signature and counted microbatches, with two exceptions: an order with
// two weight gradients of one chunk outstanding hurts nobody, since TE cannot capture it at all,
// and memory of the pool does not count, since chunks of a bare list read nothing from each other.
//
// Tested by reuse_test.cpp by hand, by te_vectors_test.cpp against rows that the unmodified
// graph.py made, and could_hurt_test.cpp holds the answer against the plan.

#pragma once

#include "core/order/schedule.h"
#include "core/plan/plan.h"
#include "core/plan/work.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

/// Plans one rank's memory and fills the addresses of its buffers; `work` is in the order of
/// capture.
[[nodiscard]] RankMemory plan_as_te(const BufferTable& table, std::int32_t rank,
                                    std::span<const Work> work, std::vector<std::int64_t>& address);

/// Whether the reuse of buffers could hurt the order of one rank, told without a plan.
[[nodiscard]] bool te_could_hurt(const RankOrder& rank);

/// The memory of TransformerEngine's passes before capture, which are gone by then (warm_up.cpp).
struct WarmUp {
  std::int64_t most = 0;    ///< bytes, or units if sizes are not declared
  std::uint32_t entry = 0;  ///< the first entry of the order at which so much is there
};

/// `static_inputs` are the bytes of the sample inputs; `work` is in the order of capture; outputs
/// that are kept stay to the end of the pass.
[[nodiscard]] WarmUp warm_up_of(const BufferTable& table, std::int32_t rank,
                                std::span<const Work> work, std::int64_t static_inputs,
                                bool keeps_outputs);

}  // namespace capo

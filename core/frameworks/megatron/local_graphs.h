// plan_as_local_graphs() gives memory out as Megatron-LM does with its own graphs
// (cuda_graph_impl "local"): the first step runs eagerly and notes which forward and which backward
// of which layer ran, and at its end a graph of each is captured in that order, all into one pool.
//
//   ranks 1, layers 2: F1.0 B1.0      F of layer 0, F of layer 1, B of layer 1, B of layer 0
//
//   static input    a block of the pool; of a layer behind another no block of its own but what the
//                   layer before made, counted as often as graphs read it, so that nothing is
//                   copied
//   grad output     likewise: the grad input of the layer behind, or a block while B is captured
//   output          that of a chunk's last layer is copied out of the graphs as soon as it is made,
//                   and its block is free for the next graph
//   grad input      that of a chunk's first layer is copied too: PyTorch adds what somebody else
//                   holds to a leaf as a copy
//   activations     a block from F to B, which autograd holds for them
//
// Every microbatch of a layer has a graph of its own, as where Megatron has several pipeline ranks.
// With one it takes the first graph that waits for a forward, which for Megatron's own order of one
// rank is the same memory. What tensors a layer keeps between F and B is not looked into: inputs
// and outputs are held to the end of B, if only so that a plan is never better than what is run. A
// block is the tightest gap that fits, which is what PyTorch's allocator looks for; it rounds sizes
// and keeps large and small blocks apart, so that hazards in the pool are possible ones. Replayed
// as captured the plan has none, since nothing is read across graphs but what is still counted.
//
// Not here: weight gradients apart, since a replayed backward queues nothing that a later call
// could take, and layers that run apart, between which Megatron asserts that no tensor is still to
// be read (rule C11); graphs of inference; recomputation, which loses the counts; and a replay with
// another number of microbatches. Read off cuda_graphs.py of megatron-core 0.19 (CudaGraphManager,
// create_fwd_graph, create_bwd_graph). Tested by local_graphs_test.cpp by hand and against
// testing/oracle/local_graphs.h, which shares no code with it.

#pragma once

#include "core/plan/course.h"
#include "core/plan/pending_uses.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace capo {

/// Plans what lies in the pool of one rank's graphs, and fills the addresses of its buffers, where
/// each is made, and of whom it is the tensor; `work` is in the order in which the first step ran.
/// Outputs of last layers and grad inputs of first ones are made here, and lie in LocalCopies.
[[nodiscard]] RankMemory plan_as_local_graphs(const BufferTable& table, std::int32_t rank,
                                              std::span<const Work> work, Plan& plan);

/// The copies that are made of what leaves a chunk: eager memory, which is free again when its last
/// reader is over for certain.
class LocalCopies final : public CourseVisitor {
 public:
  /// Fills the addresses of copies. All outlive it.
  LocalCopies(const BufferTable& table, const StageMap& map, std::vector<std::int64_t>& address);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override;
  void sent(const Sending& sending, const Clock& clock) override;

  /// Bytes of a rank's copies, and the entry that first needs them all.
  struct Most {
    std::int64_t bytes = 0;
    std::uint32_t entry = 0;
  };
  [[nodiscard]] const Most& most(std::int32_t rank) const;

 private:
  struct Rank {
    PendingUses<BufferId> uses;
    std::multimap<std::int64_t, std::int64_t> free;  // addresses by bytes
    Most most;
    BufferId handed_on = kNoBuffer;  // the grad input that leaves the rank while others are made
  };

  void copy(Rank& rank, BufferId buffer, std::int64_t bytes, const Work& work, int uses);
  void drop(Rank& rank, BufferId buffer);
  [[nodiscard]] bool leaves_the_stage(std::int32_t rank, const Work& work) const;

  const BufferTable& table_;
  const StageMap& map_;
  std::vector<std::int64_t>& address_;
  std::vector<std::uint8_t> uses_left_;  // by buffer
  std::vector<Rank> ranks_;
};

}  // namespace capo

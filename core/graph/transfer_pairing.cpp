#include "core/graph/transfer_pairing.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cstddef>

namespace capo {

namespace {

// One end of a message, with the ranks and the communicator that it runs between.
struct End {
  std::uint64_t channel;
  TaskId task;
};

class Pairing {
 public:
  Pairing(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup, TaskGraph& graph,
          bool buffered, std::vector<TransferFault>& faults)
      : lowered_(lowered),
        map_(map),
        lookup_(lookup),
        graph_(graph),
        buffered_(buffered),
        faults_(faults) {}

  // Sorts each transfer into those that have a partner and those that wait for ever.
  void find_partners() {
    for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
      Task& task = graph_.tasks[id];
      if (!is_transfer(task.kind)) continue;
      const std::int32_t there = map_.neighbour(task.kind, task.stage);
      const bool nowhere =
          there == kNoStage || map_.home(there).rank < 0 || map_.home(there).rank == task.rank;
      if (nowhere) {
        fault(TransferFault::Kind::Nowhere, id);
        task.never = true;
        continue;
      }
      // A repeated transfer, which was reported; or one that a stray rank makes.
      const bool another = find(task.kind, task.stage, task.microbatch) != id;
      if (another) continue;
      const bool sends = is_send(task.kind);
      if (find(other_end(task.kind), there, task.microbatch) != kNoTask) {
        (sends ? sends_ : receives_).push_back({channel_of(task, map_.home(there).rank), id});
        continue;
      }
      fault(sends ? TransferFault::Kind::SendWithout : TransferFault::Kind::ReceiveWithout, id);
      if (!sends || !buffered_) task.never = true;
    }
  }

  void meet(EdgeList& edges) {
    const auto by_channel = [](const End& a, const End& b) { return a.channel < b.channel; };
    std::stable_sort(sends_.begin(), sends_.end(), by_channel);
    std::stable_sort(receives_.begin(), receives_.end(), by_channel);
    std::uint64_t reported = ~std::uint64_t{0};
    CAPO_ASSERT(sends_.size() == receives_.size(), "each has its partner");
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      CAPO_ASSERT(sends_[i].channel == receives_[i].channel, "each has its partner on its channel");
      const TaskId send = sends_[i].task;
      const TaskId receive = receives_[i].task;
      // The first pair that disagrees; those behind it follow from it.
      const bool agree = message_of(graph_.tasks[send]) == message_of(graph_.tasks[receive]);
      if (!agree && reported != sends_[i].channel) {
        reported = sends_[i].channel;
        fault(TransferFault::Kind::Mismatch, receive, send);
      }
      edges.add(graph_, {send, graph_.start(send)}, {receive, graph_.end(receive)},
                EdgeKind::Message);
      if (!buffered_) {
        edges.add(graph_, {receive, graph_.start(receive)}, {send, graph_.end(send)},
                  EdgeKind::Rendezvous);
      }
    }
  }

 private:
  [[nodiscard]] TaskId find(Kind kind, std::int32_t stage, std::int32_t microbatch) const {
    return lookup_.find(thing_of(kind), stage, microbatch);
  }
  [[nodiscard]] std::uint64_t channel_of(const Task& task, RankId peer) const {
    const RankId from = is_send(task.kind) ? task.rank : peer;
    const RankId to = is_send(task.kind) ? peer : task.rank;
    return (static_cast<std::uint64_t>(from) << 32) | (static_cast<std::uint64_t>(to) << 1) |
           step_of(lowered_, task).communicator;
  }
  void fault(TransferFault::Kind kind, TaskId task, TaskId other = kNoTask) {
    faults_.push_back({.kind = kind, .task = task, .other = other});
  }

  const Lowered& lowered_;
  const StageMap& map_;
  const TaskLookup& lookup_;
  TaskGraph& graph_;
  bool buffered_;
  std::vector<TransferFault>& faults_;
  std::vector<End> sends_;  // in the order of issue
  std::vector<End> receives_;
};

}  // namespace

Message message_of(const Task& transfer) {
  switch (transfer.kind) {
    case Kind::SendForward:
      return {true, transfer.stage + 1, transfer.microbatch};
    case Kind::ReceiveForward:
      return {true, transfer.stage, transfer.microbatch};
    case Kind::SendBackward:
      return {false, transfer.stage - 1, transfer.microbatch};
    default:
      return {false, transfer.stage, transfer.microbatch};
  }
}

void pair_transfers(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup,
                    const Environment& environment, TaskGraph& graph, EdgeList& edges,
                    std::vector<TransferFault>& faults) {
  Pairing pairing(lowered, map, lookup, graph, environment.buffered(), faults);
  pairing.find_partners();
  pairing.meet(edges);
}

}  // namespace capo

// Meetings of tasks of several ranks in a task graph: the two ends of each message, and the members
// of each collective.
//
//   rank 0: send-F1.0 send-F1.1        the k-th send from rank 0 to rank 1 on a communicator meets
//   rank 1: recv-F1.0 recv-F1.1        the k-th receive there, and the k-th collective of a group's
//                                      one member meets those of the others
//
// Messages carry no tag in NCCL, so this is how they pair, whatever the two were meant for.
// Transfers that have no partner by name are left out of the pairing, since they are faults of
// their own and would shift everything behind them. Collectives meet as long as they are the same;
// the first that is not is a fault, and whoever waits there waits for ever.
//
// Two streams of a rank are unordered but for events and data. A member whose collectives run on
// more than one stream must have a path from the end of each to the start of the next, or another
// member may see them the other way round. One clock per stream and vertex would be too much to
// keep; one pass over the graph for each stream in question is enough. Tested by build_test.cpp,
// first_uses_test.cpp and collective_races_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/model/environment.h"
#include "core/model/model.h"

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace capo {

class EdgeList;
class TaskLookup;

/// The message that a transfer carries: what the stage on the receiving side reads.
struct Message {
  bool forward = true;
  StageId reader = kNoStage;
  MicrobatchId microbatch = kNoMicrobatch;

  friend bool operator==(const Message&, const Message&) = default;
};
[[nodiscard]] Message message_of(const Task& transfer);

/// The number, below 4, of a transfer's communicator among those that its two ranks share.
[[nodiscard]] std::uint8_t communicator_between(Communicators layout, const Lowered& lowered,
                                                const Task& transfer);

/// Precondition: the graph has no edges yet. A receive without a partner never ends. A send ends
/// without one only if sends are buffered; then the k-th send of a channel that holds n messages
/// waits for its receive number k - n instead of its own.
void pair_transfers(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup,
                    const Environment& environment, TaskGraph& graph, EdgeList& edges,
                    std::vector<TransferFault>& faults);

/// Whether a transfer runs on the channel of its two ranks that a lazy parent makes for it, alone
/// among those that its group holds. Where the layout has such channels, all others run on the
/// parent.
[[nodiscard]] bool on_lazy_channel(Communicators layout, const StepList& steps, std::uint32_t at);

/// Members of a group perform the same one together: of two ranks, those that are equal.
struct Collective {
  Kind kind = Kind::Idle;
  ChunkId chunk;
  MicrobatchId microbatch = kNoMicrobatch;
  std::uint16_t layer = 0;

  friend auto operator<=>(const Collective&, const Collective&) = default;
};
[[nodiscard]] Collective collective_of(const Lowered& lowered, const Task& task);

/// The group in which a rank performs an action; groups.size() if none.
[[nodiscard]] std::uint32_t group_of(std::span<const CollectiveGroup> groups, RankId rank,
                                     Kind kind);

/// The collectives that a rank performs in a group, in the order of issue; none if the graph has no
/// such rank.
[[nodiscard]] std::vector<TaskId> collectives_of(const TaskGraph& graph,
                                                 const CollectiveGroup& group, RankId rank);

/// Precondition: the graph has no edges yet, since each meeting becomes a vertex of its own.
void meet_collectives(const Lowered& lowered, std::span<const CollectiveGroup> groups,
                      TaskGraph& graph, EdgeList& edges, std::vector<TransferFault>& faults);

/// The first use of each communicator by each rank, in the order in which the rank issues them, of
/// transfers and of the collectives of declared groups. Where communicators are made lazily, a
/// rank's host makes one there together with all its members, which meet, and issues nothing before
/// that.
struct FirstUses {
  /// A use of a communicator that some member never uses, so that nobody has it made.
  struct Absence {
    TaskId task = kNoTask;
    RankId member;
  };
  TaskGraph graph;                ///< a stream for each rank's host
  std::vector<Absence> absences;  ///< the first use of each such communicator
};
/// `graph` is that of wire_transfers().
[[nodiscard]] FirstUses wire_first_uses(const TaskGraph& graph,
                                        std::span<const CollectiveGroup> groups);

/// Two collectives of one group that one rank may start in either order.
struct CollectiveRace {
  std::uint32_t group = 0;
  TaskId earlier = kNoTask;  ///< in the order of issue
  TaskId later = kNoTask;
};

/// The first race of each group, on its first member that has one. The graph has no cycle.
[[nodiscard]] std::vector<CollectiveRace> collective_races(const TaskGraph& graph,
                                                           std::span<const CollectiveGroup> groups);

}  // namespace capo

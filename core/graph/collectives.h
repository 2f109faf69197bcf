// Collectives of declared groups in a task graph: the k-th of each member meets those of the
// others, as long as they are the same; the first that is not is a fault, and whoever waits there
// waits for ever. Tested by build_test.cpp.

#pragma once

#include "core/graph/edge_list.h"
#include "core/graph/lowered.h"
#include "core/graph/task_graph.h"
#include "core/graph/transfer_fault.h"
#include "core/model/model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

/// The group in which a rank performs an action; groups.size() if none.
[[nodiscard]] std::uint32_t group_of(std::span<const CollectiveGroup> groups, std::int32_t rank,
                                     Kind kind);

/// What a rank performs of a group, in the order of issue; a rank that there is not performs
/// nothing.
[[nodiscard]] std::vector<TaskId> collectives_of(const TaskGraph& graph,
                                                 const CollectiveGroup& group, std::int32_t rank);

/// Before the graph gets its edges: a meeting is a vertex of its own.
void meet_collectives(const Lowered& lowered, std::span<const CollectiveGroup> groups,
                      TaskGraph& graph, EdgeList& edges, std::vector<TransferFault>& faults);

}  // namespace capo

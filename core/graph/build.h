// Builds a task graph from lowered orders, and notes on the way the transfers that do not fit.
//
// wire_directly() leaves transfers out: a stage reads what the stage before made, wherever that
// was. It answers whether an order can be executed at all. wire_transfers() puts every transfer in
// its queue and pairs sends with receives, and answers whether this way of communicating finishes.
// wire_ideally() is between the two, for simulations with links that never queue.
//
// Collectives of a declared group meet one by one: the k-th of each member, which has to be the
// same action on all of them. On each member they must come in one order whatever the streams do:
// two that run on different streams, with no path between them, may start either way round.
//
// A task that a fault leaves waiting for ever is marked in the graph (Task::never), so that
// finishes() answers for broken tables as well. Tested by build_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/model/environment.h"
#include "core/model/model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

struct WiredTransfers {
  TaskGraph graph;
  std::vector<TransferFault> faults;
};

/// Whether wire_directly() takes exchanges of tokens beside the computations.
enum class Exchanges : std::uint8_t {
  LeftOut,
  InTurn,  ///< they run in the order of the list, as computations do
};

/// The graph of computations, and of exchanges if wanted, without the transfers of the lowered
/// orders. Data edges against a rank's own order are in it as well, and make a cycle.
[[nodiscard]] TaskGraph wire_directly(const Lowered& lowered, const StageMap& map,
                                      std::int32_t microbatches,
                                      Exchanges exchanges = Exchanges::LeftOut);

/// The graph of everything but transfers: each stage reads straight from the task that made its
/// input, as if links were ideal. A computation that reads across ranks has a Data edge.
[[nodiscard]] TaskGraph wire_ideally(const Lowered& lowered, const StageMap& map,
                                     std::int32_t microbatches, const Environment& environment,
                                     std::span<const CollectiveGroup> groups = {});

[[nodiscard]] WiredTransfers wire_transfers(const Lowered& lowered, const StageMap& map,
                                            std::int32_t microbatches,
                                            const Environment& environment,
                                            std::span<const CollectiveGroup> groups = {});

}  // namespace capo

// The orders of all ranks wired together, for the rules that look across ranks: lowered, made into
// a task graph and executed on paper, each on first use and once.
//
// Only a rule of a pass behind Placement may ask, since lowering takes for granted that every
// microbatch of every chunk is there once and that every stage has one rank. The first const call
// of a graph lowers the whole step and executes it once; a Wiring belongs to one thread. Tested by
// wiring_test.cpp.

#pragma once

#include "core/frameworks/megatron/calls.h"
#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/graph/meetings.h"
#include "core/model/environment.h"
#include "core/order/schedule.h"
#include "core/plan/swept_course.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace capo {

class Wiring {
 public:
  /// `replay`: of the orders that are replayed; a rank without one replays what it captures.
  Wiring(const Schedule& schedule, const Environment& environment,
         std::span<const CollectiveGroup> groups, std::int32_t microbatches, bool replay);
  /// The orders of `like` in another environment; what does not depend on that is shared.
  Wiring(const Wiring& like, const Environment& environment);
  Wiring(const Wiring&) = delete;
  Wiring& operator=(const Wiring&) = delete;

  [[nodiscard]] bool replay() const { return replay_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Environment& environment() const { return environment_; }
  [[nodiscard]] const StageMap& map() const { return map_; }

  [[nodiscard]] std::span<const CollectiveGroup> groups() const { return groups_; }

  /// Whether Megatron's calls are to be worked out: they are asked for, the order has no transfers
  /// of its own, and there is more than one rank to transfer between.
  [[nodiscard]] bool by_megatron() const;
  /// Whether stages go around the ranks in a loop, as Megatron's transfers take for granted.
  [[nodiscard]] bool megatron_placement() const;
  [[nodiscard]] const MegatronLowering& megatron() const;

  /// Computations, each stage reading straight from the task that made its input; with exchanges of
  /// tokens, if transfers are put in around both.
  [[nodiscard]] const TaskGraph& direct() const;
  [[nodiscard]] const Execution& direct_execution() const;
  /// Whether every computation can run, leaving out how ranks communicate.
  [[nodiscard]] bool executable() const;

  /// The orders as they are simulated with ideal links: no transfers, and layers taken apart if
  /// Megatron overlaps their exchanges.
  struct Ideal {
    Lowered lowered;
    TaskGraph graph;
  };
  [[nodiscard]] const Ideal& ideal() const;

  /// The orders as they are simulated on links that queue: with transfers, and with layers taken
  /// apart if Megatron overlaps their exchanges, whether or not somebody declared the ranks that
  /// exchange.
  [[nodiscard]] const Lowered& lowered_for_links() const;
  [[nodiscard]] const TaskGraph& graph_for_links() const;

  /// With transfers: as written, as Megatron calls them, or as PyTorch adds them. Only of what is
  /// executable and has no routing fault.
  [[nodiscard]] const Lowered& lowered() const;
  /// The orders that one of this wiring's graphs was made of.
  [[nodiscard]] const Lowered& lowered_for(const TaskGraph& graph) const;
  [[nodiscard]] const WiredTransfers& transfers() const;
  [[nodiscard]] const Execution& execution() const;
  /// The communicators of transfers() that are made lazily; none if they are made before the step.
  [[nodiscard]] const FirstUses& first_uses() const;
  [[nodiscard]] const Execution& making() const;
  /// The graph that the verdict is about: with transfers if ranks communicate, and without them if
  /// Megatron's runtime stops.
  [[nodiscard]] const TaskGraph& judged() const;
  /// Whether every task runs in the end, and all communicators are made.
  [[nodiscard]] bool finishes() const { return making().finishes() && execution().finishes(); }
  /// Whether the orders write waits for sends.
  [[nodiscard]] bool waits_for_sends() const { return writes_waits_ && map_.wired(); }
  /// Whether ranks communicate at all, or exchanges or work run beside work.
  [[nodiscard]] bool transfers_matter() const;
  /// Whether transfers matter, and it takes their graph to know that they fit and finish.
  ///
  /// It does not where PyTorch's rule puts all of them in: each pair of ends joins both orders at
  /// one moment, when the tensor is made and before it is read. So no end is without the other,
  /// both orders of a channel are the order of these moments, and everything waits for earlier
  /// moments alone, whatever the communicators are and whether or not sends are buffered.
  [[nodiscard]] bool transfers_in_doubt() const;
  /// The transfers, if a sweep puts all of them in and tells all that there is to know of them;
  /// nullopt if it takes the graph.
  [[nodiscard]] std::optional<SweptTransfers> swept() const;
  /// The sweep of what is swept().
  [[nodiscard]] const std::shared_ptr<const SweptLog>& swept_log() const;
  /// Frees graphs and lowered orders, which makes what was returned invalid.
  void forget_graphs();
  /// Whether the same transfers finish in another environment.
  [[nodiscard]] bool finishes_under(const Environment& environment) const;

 private:
  [[nodiscard]] bool adds_transfers() const;  ///< as PyTorch does
  [[nodiscard]] const WithTransfers& added() const;
  [[nodiscard]] bool all_are_added() const;  ///< whether every action has its transfers
  [[nodiscard]] const Lowered& with_whole_layers() const;
  [[nodiscard]] bool takes_layers_apart() const;
  /// With layers taken apart, which the order lists one by one or holds by the chunk.
  [[nodiscard]] Lowered apart(const Lowered& lowered) const;
  /// Whether exchanges overlap of which no group of ranks is declared.
  [[nodiscard]] bool overlaps_undeclared() const;
  [[nodiscard]] const Ideal& on_links() const;

  std::shared_ptr<const Schedule> replayed_;
  const Schedule& schedule_;  // of the caller, or *replayed_
  Environment environment_;
  std::span<const CollectiveGroup> groups_;
  std::int32_t microbatches_;
  bool replay_;
  bool writes_transfers_ = false;
  bool writes_exchanges_ = false;
  bool writes_waits_ = false;
  bool writes_any_wait_ = false;  // for a send or a reduction
  bool only_computes_ = false;
  StageMap map_;

  // Each is null until it is first asked for.
  mutable std::unique_ptr<const WithTransfers> added_;
  mutable std::optional<bool> all_are_added_;
  mutable std::shared_ptr<const SweptLog> swept_log_;
  mutable std::unique_ptr<const Lowered> written_;
  mutable std::unique_ptr<const MegatronLowering> megatron_;
  mutable std::unique_ptr<const Lowered> apart_;
  mutable std::unique_ptr<const Ideal> ideal_;
  mutable std::unique_ptr<const Ideal> on_links_;
  mutable std::unique_ptr<const TaskGraph> direct_;
  mutable std::unique_ptr<const Execution> direct_execution_;
  mutable std::unique_ptr<const WiredTransfers> transfers_;
  mutable std::unique_ptr<const Execution> execution_;
  mutable std::unique_ptr<const FirstUses> first_uses_;
  mutable std::unique_ptr<const Execution> making_;
};

}  // namespace capo

// The truth campaign over processes: random orders of several ranks, each walked by as many
// processes as it has ranks, and what happened held against the task graph.
//
//   mpirun -n 4 capo-fuzz --across --orders 200
//
// Every process draws the same orders and judges them by itself. What is held against the verdict:
// which tasks of each rank ran, which is how far it came, so that an order that deadlocks stays at
// the circle that the verdict names; which send each receive was paired with, so that a mismatch
// pairs the messages that were predicted; and, if nothing is wrong with the order, a whole run over
// the same processes, whose gradients have to be those of eager execution. An order that is stuck
// is cancelled, and the next goes through communicators of its own. No clock is asked unless a
// prediction fails: a process goes on until it has come as far as predicted, meets the others
// there, and tries to go further. One order in three has reductions over all of its ranks, anywhere
// and in any sequence, and waits for them. Its ranks hold different stages, whose gradients nobody
// sums, so that it is walked and not run. Tested by tests/testing/truth/across_test.sh.
//
//   capo-fuzz --across --transport nccl --orders 500
//
// does so over CUDA devices. Sends are judged as a rendezvous there, and messages are of 256 MiB,
// for which NCCL has no room, so that a send does wait. An order is stuck when all ranks have come
// as far as predicted and none goes on for a tenth of a second, forty times what a message takes.
// Its communicators are then aborted and made anew. One accepted order in eight is run with
// tensors. Standard error tells how far the campaign is; whatever takes longer than six times
// --timeout is named there with its order, and ends all processes with exit code 5.

#pragma once

#include "core/model/environment.h"
#include "run/engine/engine.h"
#include "run/mpi/message_library.h"
#include "run/processes/processes.h"
#include "run/processes/walk_all.h"
#include "run/run.h"

#include <cstdint>
#include <functional>
#include <string>

namespace capo::testing {

/// How the orders of a campaign came out.
struct AcrossTally {
  std::uint64_t orders = 0;
  std::uint64_t right = 0;       ///< accepted; they finished with the gradients of eager execution
  std::uint64_t ran = 0;         ///< of those, with tensors; over devices one in eight
  std::uint64_t met = 0;         ///< accepted with reductions over all ranks; walked alone
  std::uint64_t circles = 0;     ///< stuck where predicted, in the predicted circle
  std::uint64_t waiting = 0;     ///< stuck where predicted, for what nobody makes
  std::uint64_t mismatched = 0;  ///< finished or stuck, with the predicted pairs of other messages
  std::uint64_t pairs = 0;       ///< of those, the pairs of other messages that were seen
  std::uint64_t late = 0;        ///< rejected for something else, and finished as predicted
  std::uint64_t left_out = 0;    ///< of the orders drawn, those that cannot be walked
  std::string disagreement;      ///< the first, which ends it; empty: there was none
};

/// Messages that are not those of the processes: NCCL's.
struct AcrossDevices {
  run::Engine& engine;
  /// With which orders are walked, for a layout; the same each time that it is asked for.
  std::function<run::MessageLibrary&(Communicators)> messages;
  /// An order is stuck in those of the layout, which cannot go on as they are.
  std::function<void(Communicators)> renew;
  run::Patience patience;
  run::RunOptions::Between between;  ///< of runs with tensors
  /// Called before each part of an order: "order 7 (per-edge), which is walked".
  std::function<void(const std::string&)> at;
  /// Called behind each order.
  std::function<void(const AcrossTally&)> progress;
};

/// At rank 0 the tally of all processes; elsewhere what that process knows by itself. Without
/// devices the processes' own messages are taken, and the host engine.
[[nodiscard]] AcrossTally run_across(run::Processes& processes, std::uint64_t orders,
                                     std::uint64_t seed, const AcrossDevices* devices = nullptr);

[[nodiscard]] std::string to_text(const AcrossTally& tally);

}  // namespace capo::testing

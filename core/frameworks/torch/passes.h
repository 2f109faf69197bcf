// The passes by which torch lowers a compute-only table to the one that its runtime follows, and
// the checks around them, pass for pass and message for message.
//
//   0F0,0B0 | 1F0,1B0   ->   0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,...
//
// torch 2.15 runs them in this order: UNSHARD and RESHARD around the computations of each stage
// (unshard.h), REDUCE_GRAD behind its last backward and a wait behind that, SEND and RECV
// (lower.cpp), a wait for each send, receives put off if that is asked for (defer.cpp), a check of
// the waits, and the budget of sends for which no wait has been served (send_budget.cpp).
// torch 2.11 has the first three, without waits and without policies. A table that holds its
// transfers already goes through the check and the budget alone. prepare.cpp puts them together.
//
// Rows have no idle slots here, and a stage stands on one rank, as torch's validator sees to.
// Tested by passes_test.cpp against torch's own tables.

#pragma once

#include "core/frameworks/torch/predict.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace capo::torch {

/// How many stages ahead a rank gathers parameters.
enum class Lookahead : std::uint8_t {
  Full,  ///< as many as may be resident
  Auto,  ///< two on rank 0 and one more on each rank behind it, up to as many as may be resident
};

/// A deferral of receives that keeps the order of messages from each rank; torch has none.
struct OrderlyDeferral {
  std::set<TorchAction> posted;  ///< the receives that are not put off
};

/// The arguments of torch's constructor that its passes read, each with torch's default.
struct Policy {
  std::int64_t max_active_stages = 3;
  /// A list has one number for each rank.
  std::variant<Lookahead, std::vector<std::int64_t>> unshard_lookahead = Lookahead::Full;
  bool defer_reduce_grad_wait = false;
  bool defer_pp_recv = false;
  std::optional<OrderlyDeferral> orderly;  ///< in place of torch's deferral; read only with it
  std::optional<std::int64_t> max_outstanding_sends;
};

/// A table as torch is given it.
struct Table {
  Rows rows;
  bool communicates = false;  ///< it is loaded as "compute_comms", and not lowered
  std::int64_t stages = 0;
  std::int64_t microbatches = 0;
};

/// The rank on which the actions of each stage stand.
using Homes = std::map<std::int64_t, std::size_t>;
[[nodiscard]] Homes homes_of(const Rows& rows);

/// How the stages that are resident are kept, which decides the order in which they are given up.
enum class Eviction : std::uint8_t {
  AsGathered,
  AsHashed,  ///< in a Python set, as by torch 2.11, which looks into no composite but OVERLAP_F_B
};

/// UNSHARD before the first computation of a stage that is not resident, as far ahead as
/// `lookahead` stages, and RESHARD when it is none of the next `resident` ones.
struct Residency {
  std::int64_t resident = 3;
  std::int64_t lookahead = 3;
  Eviction eviction = Eviction::AsGathered;
};
[[nodiscard]] std::vector<Slot> add_unshard_reshard(const std::vector<Slot>& row,
                                                    const Residency& residency);

/// When the wait for a reduction comes.
enum class ReduceWait : std::uint8_t {
  None,      ///< torch 2.11 has no such action
  AtOnce,    ///< behind the reduction
  Deferred,  ///< before the next reduction of the rank, or at the end
};
[[nodiscard]] std::vector<Slot> add_reduce_grad(const std::vector<Slot>& row,
                                                std::int64_t microbatches, ReduceWait wait);

/// A forward's send is waited for behind the backward of the same stage and microbatch, every other
/// send at the end.
[[nodiscard]] Lowered add_send_waits(const Rows& rows);

/// Moves each receive before the computation that reads it, or before a send to the same rank if
/// that has the higher number; with `orderly`, behind those that come before it from the same rank.
[[nodiscard]] Lowered defer_receives(const Rows& rows, const Homes& homes,
                                     const OrderlyDeferral* orderly = nullptr);

/// Moves waits so that no rank has more than `most` sends pending.
[[nodiscard]] Lowered add_send_budget(const Rows& rows, const Homes& homes, std::int64_t most);

/// The error that torch raises if a send has no wait behind it, or a wait no send before it; else
/// empty.
[[nodiscard]] std::string refuse_send_waits(const Rows& rows);

/// The error that torch raises if a reduction has no wait, or two of a rank are pending; else
/// empty.
[[nodiscard]] std::string refuse_reduce_waits(const Rows& rows);

/// The send that an action waits for, and the other way round.
[[nodiscard]] TorchAction send_of(const TorchAction& wait);
[[nodiscard]] TorchAction wait_of(const TorchAction& send);

[[nodiscard]] constexpr bool is_send(TorchType type) {
  return type == TorchType::SendForward || type == TorchType::SendBackward;
}
[[nodiscard]] constexpr bool is_receive(TorchType type) {
  return type == TorchType::ReceiveForward || type == TorchType::ReceiveBackward;
}
[[nodiscard]] constexpr bool is_send_wait(TorchType type) {
  return type == TorchType::WaitSendForward || type == TorchType::WaitSendBackward;
}

}  // namespace capo::torch

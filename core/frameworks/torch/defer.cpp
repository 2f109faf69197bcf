// torch's deferral of receives, and an orderly one of capo's.
//
//   1RECV_F0,1RECV_F1,1F0,1F1   ->   1RECV_F0,1F0,1RECV_F1,1F1
//
// torch moves each receive before the computation that reads it. Two receives from one rank can so
// change places, and then each takes the other's message. The orderly deferral keeps the order of
// messages from each rank, and posts the receives that it is told to where torch does by default.

#include "core/frameworks/torch/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::torch {

namespace {

// Puts off the receives of one rank.
class Deferral {
 public:
  Deferral(std::size_t rank, const Homes& homes, const OrderlyDeferral* orderly)
      : rank_(rank), homes_(homes), orderly_(orderly) {}

  // The error that torch raises; empty if it goes on.
  std::string add(const Slot& slot) {
    const TorchAction action = slot.head();
    if (is_receive(action.type)) {
      if (std::find(deferred_.begin(), deferred_.end(), action) == deferred_.end())
        deferred_.push_back(action);
      const bool at_once = orderly_ != nullptr && orderly_->posted.contains(action);
      return at_once && !flush_up_to(action) ? error_ : "";
    }
    if (is_send(action.type)) {
      const auto to = peer(action);
      if (!to) return error_;
      if (rank_ < *to && !flush(*to)) return error_;
    }
    bool known = true;
    slot.for_each_part([&](const TorchAction& part) { known = flush_input_of(part) && known; });
    row.push_back(slot);
    return known ? "" : error_;
  }

  [[nodiscard]] std::string left_over() const {
    if (deferred_.empty()) return "";
    std::string listed;
    for (const TorchAction& receive : deferred_)
      listed += (listed.empty() ? "" : ", ") + capo::to_text(receive);
    return fmt::format(
        "AssertionError: Malformed input schedule on rank {}: leftover RECV ops with no consumer "
        "found: [{}]. Every RECV must be consumed by a downstream compute op.",
        rank_, listed);
  }

  std::vector<Slot> row;

 private:
  std::optional<std::size_t> peer(const TorchAction& transfer) {
    const bool up =
        transfer.type == TorchType::SendForward || transfer.type == TorchType::ReceiveBackward;
    const std::int64_t stage = transfer.stage + (up ? 1 : -1);
    const auto home = homes_.find(stage);
    if (home != homes_.end()) return home->second;
    error_ = fmt::format("KeyError: {}", stage);
    return std::nullopt;
  }

  // Issues the receives from one rank; false with the error noted if torch raises.
  bool flush(std::size_t from) {
    std::vector<TorchAction> due;
    for (const TorchAction& receive : deferred_) {
      const auto sender = peer(receive);
      if (!sender) return false;
      if (*sender == from) due.push_back(receive);
    }
    for (const TorchAction& receive : due) issue(receive);
    return true;
  }

  bool flush_input_of(const TorchAction& reader) {
    const bool forward = reader.type == TorchType::Forward;
    const bool backward =
        reader.type == TorchType::FullBackward || reader.type == TorchType::BackwardInput;
    if (!forward && !backward) return true;
    const TorchAction receive{
        .stage = reader.stage,
        .type = forward ? TorchType::ReceiveForward : TorchType::ReceiveBackward,
        .microbatch = reader.microbatch};
    if (std::find(deferred_.begin(), deferred_.end(), receive) == deferred_.end()) return true;
    if (orderly_ != nullptr) return flush_up_to(receive);
    issue(receive);
    return true;
  }

  // Issues a receive behind those from the same rank that were put off before it, which is how
  // their messages come.
  bool flush_up_to(const TorchAction& receive) {
    const auto from = peer(receive);
    if (!from) return false;
    std::vector<TorchAction> due;
    for (const TorchAction& earlier : deferred_) {
      const auto sender = peer(earlier);
      if (!sender) return false;
      if (*sender == *from) due.push_back(earlier);
      if (earlier == receive) break;
    }
    for (const TorchAction& action : due) issue(action);
    return true;
  }

  void issue(const TorchAction& receive) {
    deferred_.erase(std::find(deferred_.begin(), deferred_.end(), receive));
    row.push_back({.actions = {receive}});
  }

  std::size_t rank_;
  const Homes& homes_;
  const OrderlyDeferral* orderly_;  // null: as torch does
  std::vector<TorchAction> deferred_;
  std::string error_;
};

}  // namespace

Lowered defer_receives(const Rows& rows, const Homes& homes, const OrderlyDeferral* orderly) {
  Lowered lowered;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Deferral deferral(r, homes, orderly);
    for (const Slot& slot : rows[r]) {
      lowered.error = deferral.add(slot);
      if (!lowered.error.empty()) return lowered;
    }
    lowered.error = deferral.left_over();
    if (!lowered.error.empty()) return lowered;
    lowered.rows.push_back(std::move(deferral.row));
  }
  return lowered;
}

}  // namespace capo::torch

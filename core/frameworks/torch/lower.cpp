// torch's `_add_send_recv` puts the transfers into a compute-only table.
//
//   0F0 | 1F0   ->   0F0 0SEND_F0 | 1RECV_F0 1F0
//
// Ranks are swept in ascending order, again and again; an action whose inputs are there is appended
// to its rank's list, followed by its send, and the receive is appended to the other rank's list at
// the same moment. If a sweep moves nothing torch gives up, and does not say where. Tested by
// predict_test.cpp against torch's own lowered tables.

#include "core/base/index.h"
#include "core/frameworks/torch/predict.h"

#include <algorithm>
#include <optional>
#include <set>

namespace capo::torch {

namespace {

class Lowering {
 public:
  Lowering(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage)
      : pending_(rows.size()), done_(rows.size()), rank_of_(rank_of_stage) {
    lowered_.rows.resize(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const Slot& slot : rows[r]) {
        if (!slot.idle()) pending_[r].push_back(&slot);
      }
      next_.push_back(0);
    }
  }

  Lowered run() {
    for (std::size_t r = 0; r < pending_.size(); ++r) {
      if (!pending_[r].empty()) continue;
      lowered_.error =
          "AssertionError: rank=" + std::to_string(r) + ", len(compute_actions[rank])=0";
      return std::move(lowered_);
    }
    while (lowered_.error.empty() && sweep()) continue;
    return std::move(lowered_);
  }

 private:
  static bool receives(TorchType type) {
    return type == TorchType::Forward || type == TorchType::BackwardInput ||
           type == TorchType::FullBackward;
  }

  [[nodiscard]] bool has(std::size_t rank, std::int64_t stage, TorchType type,
                         std::int64_t microbatch) const {
    return done_[rank].contains({.stage = stage, .type = type, .microbatch = microbatch});
  }

  [[nodiscard]] bool ready(std::size_t rank, const TorchAction& action) const {
    const std::int64_t s = action.stage;
    const std::int64_t m = action.microbatch;
    if (action.type == TorchType::Forward && s != 0) {
      return has(rank, s, TorchType::ReceiveForward, m) || has(rank, s - 1, TorchType::Forward, m);
    }
    const bool backward =
        action.type == TorchType::BackwardInput || action.type == TorchType::FullBackward;
    if (backward && s != last_stage()) {
      return has(rank, s, TorchType::ReceiveBackward, m) ||
             has(rank, s + 1, TorchType::BackwardInput, m) ||
             has(rank, s + 1, TorchType::FullBackward, m);
    }
    return true;
  }

  [[nodiscard]] std::int64_t last_stage() const {
    return static_cast<std::int64_t>(rank_of_.size()) - 1;
  }

  // The rank of a stage; nullopt, with the KeyError noted, if torch's mapping has none.
  std::optional<std::size_t> rank_of(std::int64_t stage) {
    const bool known = stage >= 0 && stage <= last_stage() && rank_of_[as_index(stage)] >= 0;
    if (known) return as_index(rank_of_[as_index(stage)]);
    lowered_.error = "KeyError: " + std::to_string(stage);
    return std::nullopt;
  }

  // One round over the ranks; false when there is nothing left, nothing moved, or torch raises.
  bool sweep() {
    bool progress = false;
    bool left = false;
    for (std::size_t r = 0; r < pending_.size(); ++r) {
      if (next_[r] == pending_[r].size()) continue;
      left = true;
      const Slot& slot = *pending_[r][next_[r]];
      const bool is_ready =
          std::all_of(slot.actions.begin(), slot.actions.end(),
                      [&](const TorchAction& action) { return ready(r, action); });
      if (!is_ready) continue;
      if (!schedule(r, slot)) return false;
      ++next_[r];
      progress = true;
    }
    if (left && !progress) {
      lowered_.error = "AssertionError: Malformed compute schedule, can't schedule sends/recvs";
    }
    return left && progress;
  }

  bool schedule(std::size_t r, const Slot& slot) {
    lowered_.rows[r].push_back(slot);
    for (const TorchAction& action : slot.actions) {
      done_[r].insert(action);
      if (!receives(action.type)) continue;
      const bool forward = action.type == TorchType::Forward;
      const std::int64_t peer_stage = action.stage + (forward ? 1 : -1);
      if (peer_stage < 0 || action.stage == (forward ? last_stage() : 0)) continue;
      const auto peer = rank_of(peer_stage);
      const auto own = peer ? rank_of(action.stage) : peer;
      if (!own) return false;
      if (*peer == *own) continue;
      add(r, {.stage = action.stage,
              .type = forward ? TorchType::SendForward : TorchType::SendBackward,
              .microbatch = action.microbatch});
      add(*peer, {.stage = peer_stage,
                  .type = forward ? TorchType::ReceiveForward : TorchType::ReceiveBackward,
                  .microbatch = action.microbatch});
    }
    return true;
  }

  void add(std::size_t rank, const TorchAction& action) {
    lowered_.rows[rank].push_back({.actions = {action}});
    done_[rank].insert(action);
  }

  std::vector<std::vector<const Slot*>> pending_;
  std::vector<std::size_t> next_;
  std::vector<std::set<TorchAction>> done_;
  const std::vector<std::int64_t>& rank_of_;
  Lowered lowered_;
};

}  // namespace

Lowered add_send_receive(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage) {
  return Lowering(rows, rank_of_stage).run();
}

}  // namespace capo::torch

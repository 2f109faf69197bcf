#include "core/frameworks/torch/passes.h"

#include "core/frameworks/torch/unshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace capo::torch {

namespace {

bool is_backward(TorchType type) {
  return type == TorchType::FullBackward || type == TorchType::BackwardInput;
}

Slot of_stage(std::int64_t stage, TorchType type) {
  return {.actions = {{.stage = stage, .type = type}}};
}

bool contains(const std::vector<std::int64_t>& stages, std::int64_t stage) {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

// The stages whose parameters are there, in the order in which they are given up.
class Resident {
 public:
  explicit Resident(Eviction eviction) : hashed_(eviction == Eviction::AsHashed) {}

  void add(std::int64_t stage) { hashed_ ? set_.add(stage) : list_.push_back(stage); }
  void remove(std::int64_t stage) {
    hashed_ ? set_.remove(stage) : static_cast<void>(std::erase(list_, stage));
  }
  [[nodiscard]] std::vector<std::int64_t> in_order() const {
    return hashed_ ? set_.in_order() : list_;
  }

 private:
  bool hashed_;
  PythonSet set_;
  std::vector<std::int64_t> list_;
};

}  // namespace

Homes homes_of(const Rows& rows) {
  Homes homes;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const Slot& slot : rows[r]) {
      if (slot.idle()) continue;
      slot.for_each_part([&](const TorchAction& action) { homes.try_emplace(action.stage, r); });
    }
  }
  return homes;
}

std::vector<Slot> add_unshard_reshard(const std::vector<Slot>& row, const Residency& residency) {
  std::vector<Slot> out;
  NextStages stages(row, residency.eviction == Eviction::AsHashed ? NextStages::Composites::Overlaps
                                                                  : NextStages::Composites::All);
  Resident resident(residency.eviction);
  const auto give_up = [&](std::int64_t stage) {
    resident.remove(stage);
    out.push_back(of_stage(stage, TorchType::Reshard));
  };
  for (const Slot& slot : row) {
    const auto kept = stages.next(residency.resident);
    const auto ahead = stages.next(residency.lookahead);
    const auto before = resident.in_order();
    for (const std::int64_t stage : before) {
      if (!contains(kept, stage)) give_up(stage);
    }
    for (const std::int64_t stage : ahead) {
      if (contains(before, stage)) continue;
      resident.add(stage);
      out.push_back(of_stage(stage, TorchType::Unshard));
    }
    out.push_back(slot);
    stages.advance();
  }
  for (const std::int64_t stage : resident.in_order()) give_up(stage);
  return out;
}

std::vector<Slot> add_reduce_grad(const std::vector<Slot>& row, std::int64_t microbatches,
                                  ReduceWait wait) {
  std::vector<Slot> out;
  std::map<std::int64_t, std::int64_t> done;  // backwards by stage
  std::optional<std::int64_t> pending;        // the stage whose wait is deferred
  const auto wait_for_pending = [&] {
    if (pending) out.push_back(of_stage(*pending, TorchType::WaitReduceGradient));
    pending.reset();
  };
  const auto reduce = [&](std::int64_t stage) {
    wait_for_pending();
    out.push_back(of_stage(stage, TorchType::ReduceGradient));
    if (wait != ReduceWait::None) pending = stage;
    if (wait == ReduceWait::AtOnce) wait_for_pending();
  };
  const auto finishes = [&](const TorchAction& action) {
    const bool last_half =
        action.type == TorchType::FullBackward || action.type == TorchType::BackwardWeight;
    return last_half && ++done[action.stage] == microbatches;
  };
  for (const Slot& slot : row) {
    out.push_back(slot);
    std::vector<std::int64_t> finished;
    const auto look_at = [&](const TorchAction& action) {
      if (finishes(action)) finished.push_back(action.stage);
    };
    // The members of another container than OVERLAP_F_B are not looked at.
    slot.head().type == TorchType::Overlap ? slot.for_each_part(look_at) : look_at(slot.head());
    std::for_each(finished.begin(), finished.end(), reduce);
  }
  wait_for_pending();
  return out;
}

namespace {

// The sends of one rank for which no wait has come, in the order in which they were issued.
class Pending {
 public:
  bool add(const TorchAction& send) {
    if (!known_.insert(send).second) return false;
    sends_.push_back(send);
    return true;
  }
  bool remove(const TorchAction& send) {
    if (known_.erase(send) == 0) return false;
    sends_.erase(std::find(sends_.begin(), sends_.end(), send));
    return true;
  }
  [[nodiscard]] const std::vector<TorchAction>& in_order() const { return sends_; }

 private:
  std::vector<TorchAction> sends_;
  std::set<TorchAction> known_;
};

class SendWaits {
 public:
  // The error that torch raises; empty if it goes on.
  std::string add(const Slot& slot) {
    row.push_back(slot);
    const TorchAction action = slot.head();
    if (is_send(action.type)) {
      if (action.microbatch < 0)
        return fmt::format("AssertionError: Send action {} has no microbatch index",
                           capo::to_text(action));
      if (!pending_.add(action))
        return fmt::format("AssertionError: Duplicate pipeline send {}", capo::to_text(action));
    }
    std::string error;
    slot.for_each_part([&](const TorchAction& part) {
      if (error.empty() && is_backward(part.type)) error = wait_behind(part);
    });
    return error;
  }

  void end() {
    for (const TorchAction& send : pending_.in_order()) row.push_back({.actions = {wait_of(send)}});
  }

  std::vector<Slot> row;

 private:
  std::string wait_behind(const TorchAction& backward) {
    if (backward.microbatch < 0)
      return fmt::format("AssertionError: Backward action {} has no microbatch index",
                         capo::to_text(backward));
    const TorchAction send{
        .stage = backward.stage, .type = TorchType::SendForward, .microbatch = backward.microbatch};
    if (pending_.remove(send)) row.push_back({.actions = {wait_of(send)}});
    return "";
  }

  Pending pending_;
};

}  // namespace

Lowered add_send_waits(const Rows& rows) {
  Lowered lowered;
  for (const auto& row : rows) {
    SendWaits waits;
    for (const Slot& slot : row) {
      lowered.error = waits.add(slot);
      if (!lowered.error.empty()) return lowered;
    }
    waits.end();
    lowered.rows.push_back(std::move(waits.row));
  }
  return lowered;
}

Lowered add_send_receive_wait(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage) {
  Lowered lowered = add_send_receive(rows, rank_of_stage);
  return lowered.error.empty() ? add_send_waits(lowered.rows) : lowered;
}

namespace {

// The validator of one rank's waits for sends.
class SendWaitCheck {
 public:
  explicit SendWaitCheck(std::size_t rank) : rank_(rank) {}

  std::string look_at(const TorchAction& action) {
    const bool sends = is_send(action.type);
    if (!sends && !is_send_wait(action.type)) return "";
    const std::string name = capo::to_text(action);
    if (action.microbatch < 0)
      return fmt::format("ValueError: {} action {} at rank {} has no microbatch index",
                         sends ? "Send" : "Wait", name, rank_);
    if (sends) {
      if (!registered_.insert(action).second)
        return fmt::format("ValueError: Duplicate pipeline send {} at rank {}", name, rank_);
      pending_.insert(action);
      return "";
    }
    if (pending_.erase(send_of(action)) > 0) return "";
    return fmt::format("ValueError: Pipeline wait {} at rank {} has no pending send", name, rank_);
  }

  [[nodiscard]] std::string left_over() const {
    if (pending_.empty()) return "";
    std::vector<TorchAction> sends(pending_.begin(), pending_.end());
    const auto key = [](const TorchAction& send) {
      return std::tuple(send.stage, send.microbatch, torch_name(send.type));
    };
    std::sort(sends.begin(), sends.end(),
              [&](const TorchAction& a, const TorchAction& b) { return key(a) < key(b); });
    std::string listed;
    for (const TorchAction& send : sends)
      listed += (listed.empty() ? "" : ", ") + capo::to_text(send);
    return fmt::format("ValueError: Pipeline sends at rank {} have no matching wait: {}", rank_,
                       listed);
  }

 private:
  std::size_t rank_;
  std::set<TorchAction> pending_;
  std::set<TorchAction> registered_;
};

// The validator of one rank's reductions.
class ReduceWaitCheck {
 public:
  explicit ReduceWaitCheck(std::size_t rank) : rank_(rank) {}

  std::string look_at(const TorchAction& action) {
    if (action.type == TorchType::ReduceGradient) return begin(action.stage);
    return action.type == TorchType::WaitReduceGradient ? wait(action.stage) : "";
  }

  [[nodiscard]] std::string left_over() const {
    if (!pending_) return "";
    return fmt::format("ValueError: Stage {} at rank {} has REDUCE_GRAD without WAIT_REDUCE_GRAD",
                       *pending_, rank_);
  }

 private:
  std::string begin(std::int64_t stage) {
    if (pending_)
      return fmt::format(
          "ValueError: Rank {} cannot start REDUCE_GRAD for stage {} while stage {} has a pending "
          "reduction",
          rank_, stage, *pending_);
    pending_ = stage;
    return "";
  }

  std::string wait(std::int64_t stage) {
    const std::string what =
        fmt::format("ValueError: Rank {} has WAIT_REDUCE_GRAD for stage {}", rank_, stage);
    if (!pending_) return what + " without a pending reduction";
    if (*pending_ != stage)
      return what + fmt::format(", but stage {} has the pending reduction", *pending_);
    pending_.reset();
    return "";
  }

  std::size_t rank_;
  std::optional<std::int64_t> pending_;
};

template <typename Check>
std::string refused_by(const Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Check check(r);
    std::string error;
    for (const Slot& slot : rows[r]) {
      slot.for_each_part([&](const TorchAction& part) {
        if (error.empty()) error = check.look_at(part);
      });
    }
    if (error.empty()) error = check.left_over();
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace

std::string refuse_send_waits(const Rows& rows) {
  return refused_by<SendWaitCheck>(rows);
}

std::string refuse_reduce_waits(const Rows& rows) {
  return refused_by<ReduceWaitCheck>(rows);
}

std::string refuse_waits(const Rows& rows) {
  const std::string error = refuse_reduce_waits(rows);
  return error.empty() ? refuse_send_waits(rows) : error;
}

TorchAction send_of(const TorchAction& wait) {
  const bool forward = wait.type == TorchType::WaitSendForward;
  return {.stage = wait.stage,
          .type = forward ? TorchType::SendForward : TorchType::SendBackward,
          .microbatch = wait.microbatch};
}

TorchAction wait_of(const TorchAction& send) {
  const bool forward = send.type == TorchType::SendForward;
  return {.stage = send.stage,
          .type = forward ? TorchType::WaitSendForward : TorchType::WaitSendBackward,
          .microbatch = send.microbatch};
}

}  // namespace capo::torch

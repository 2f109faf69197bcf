// torch's `_simulate_comms_compute` tells whether a table with transfers comes to its end, one
// action a step.
//
// Ranks are tried in ascending order, effects visible at once to the ranks after; then every rank
// that idled in this step is tried once more. A send never waits, and a wait for one
// is served once the receive is issued. torch checks neither that a
// backward has its own forward nor that a weight gradient has its input gradient. Where nothing
// moves it raises "not progressing", or, where its error text trips over a table with fewer steps
// than ranks, IndexError. Tested by predict_test.cpp against torch's verdicts and steps.

#include "core/base/index.h"
#include "core/frameworks/torch/predict.h"

#include <algorithm>
#include <optional>
#include <set>

namespace capo::torch {

namespace {

class Simulation {
 public:
  Simulation(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage)
      : rank_of_(rank_of_stage),
        done_(rows.size()),
        next_(rows.size()),
        lengths_(rows.size()),
        idles_(rows.size()) {
    result_.steps.resize(rows.size());
    for (const auto& row : rows) {
      auto& queue = queues_.emplace_back();
      for (const Slot& slot : row) {
        if (!slot.idle()) queue.push_back(&slot);
      }
    }
  }

  Simulated run() {
    while (result_.error.empty() && left()) step();
    if (!lengths_.empty()) result_.length = *std::max_element(lengths_.begin(), lengths_.end());
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool left(std::size_t rank) const { return next_[rank] < queues_[rank].size(); }
  [[nodiscard]] bool left() const {
    for (std::size_t r = 0; r < queues_.size(); ++r) {
      if (left(r)) return true;
    }
    return false;
  }

  void step() {
    bool progress = false;
    for (std::size_t r = 0; r < queues_.size() && result_.error.empty(); ++r) {
      if (!left(r)) continue;
      idles_[r] = !ready(*queues_[r][next_[r]]);
      if (!result_.error.empty()) return;
      ++lengths_[r];
      if (idles_[r]) continue;
      run_next(r);
      progress = true;
    }
    for (std::size_t r = 0; r < queues_.size() && result_.error.empty(); ++r) {
      if (!left(r) || !idles_[r]) continue;
      if (ready(*queues_[r][next_[r]])) run_next(r);
    }
    if (!progress && result_.error.empty()) result_.error = stuck();
  }

  // The action takes the last slot of its rank's list.
  void run_next(std::size_t rank) {
    const Slot& slot = *queues_[rank][next_[rank]++];
    result_.steps[rank].push_back(lengths_[rank] - 1);
    idles_[rank] = false;
    for (const TorchAction& action : slot.actions) done_[rank].insert(action);
  }

  [[nodiscard]] std::string stuck() const {
    const std::size_t steps = *std::max_element(lengths_.begin(), lengths_.end());
    return steps < queues_.size() ? "IndexError: list index out of range"
                                  : "ValueError: Schedule is not progressing";
  }

  // stage_to_rank is a list: -1 is its last element, and beyond its end is an error.
  std::optional<std::size_t> rank_of(std::int64_t stage) {
    const auto count = static_cast<std::int64_t>(rank_of_.size());
    if (stage < -count || stage >= count) {
      result_.error = "IndexError: list index out of range";
      return std::nullopt;
    }
    const std::int64_t rank = rank_of_[as_index(stage < 0 ? stage + count : stage)];
    return rank < 0 ? std::nullopt : std::optional(as_index(rank));
  }

  bool has(std::int64_t stage_of_rank, std::int64_t stage, TorchType type,
           std::int64_t microbatch) {
    const auto rank = rank_of(stage_of_rank);
    return rank && done_[*rank].contains({.stage = stage, .type = type, .microbatch = microbatch});
  }

  bool ready(const Slot& slot) {
    if (slot.composite) {
      result_.error = "ValueError: Unsupported action type " + to_text(slot);
      return false;
    }
    const TorchAction& action = slot.actions.front();
    const std::int64_t s = action.stage;
    const std::int64_t m = action.microbatch;
    if (!rank_of(s)) return false;
    switch (action.type) {
      case TorchType::Forward:
        return s == 0 || has(s, s, TorchType::ReceiveForward, m) ||
               has(s, s - 1, TorchType::Forward, m);
      case TorchType::BackwardInput:
      case TorchType::FullBackward:
        return s == static_cast<std::int64_t>(rank_of_.size()) - 1 ||
               has(s, s, TorchType::ReceiveBackward, m) ||
               has(s, s + 1, TorchType::BackwardInput, m) ||
               has(s, s + 1, TorchType::FullBackward, m);
      case TorchType::BackwardWeight:
        return true;
      case TorchType::SendForward:
        return has(s, s, TorchType::Forward, m);
      case TorchType::ReceiveForward:
        return has(s - 1, s - 1, TorchType::SendForward, m);
      case TorchType::SendBackward:
        return has(s, s, TorchType::BackwardInput, m) || has(s, s, TorchType::FullBackward, m);
      case TorchType::ReceiveBackward:
        return has(s + 1, s + 1, TorchType::SendBackward, m);
      case TorchType::WaitSendForward:
        return has(s, s, TorchType::SendForward, m) &&
               has(s + 1, s + 1, TorchType::ReceiveForward, m);
      case TorchType::WaitSendBackward:
        return has(s, s, TorchType::SendBackward, m) &&
               has(s - 1, s - 1, TorchType::ReceiveBackward, m);
      case TorchType::Unshard:
      case TorchType::Reshard:
      case TorchType::ReduceGradient:
      case TorchType::WaitReduceGradient:
      case TorchType::Overlap:
        break;
    }
    result_.error = "ValueError: Unsupported action type " + to_text(slot);
    return false;
  }

  const std::vector<std::int64_t>& rank_of_;
  std::vector<std::vector<const Slot*>> queues_;
  std::vector<std::set<TorchAction>> done_;
  std::vector<std::size_t> next_;
  std::vector<std::size_t> lengths_;  // of each rank's list of steps so far
  std::vector<bool> idles_;           // whether the rank's last step is idle
  Simulated result_;
};

}  // namespace

Simulated simulate(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage) {
  return Simulation(rows, rank_of_stage).run();
}

}  // namespace capo::torch

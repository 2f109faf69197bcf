#include "core/frameworks/torch/predict.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace capo::torch {

namespace {

enum Counted : std::size_t { kForward, kWhole, kInput, kWeight };

std::optional<Counted> counted(TorchType type) {
  switch (type) {
    case TorchType::Forward:
      return kForward;
    case TorchType::FullBackward:
      return kWhole;
    case TorchType::BackwardInput:
      return kInput;
    case TorchType::BackwardWeight:
      return kWeight;
    default:
      return std::nullopt;
  }
}

std::string or_ok(std::string error) {
  return error.empty() ? "ok" : error;
}

std::string shown(std::int64_t microbatch) {
  return microbatch == kNoMicrobatch ? "None" : std::to_string(microbatch);
}

// The validator's state, with Python's dicts where their order or their KeyError matters.
class Validator {
 public:
  Validator(std::int64_t stages, std::int64_t microbatches)
      : microbatches_(microbatches), stages_(stages) {}

  std::optional<std::string> process(std::int64_t stage, std::optional<Counted> what,
                                     std::int64_t microbatch, std::size_t rank, std::size_t step) {
    if (what) {
      if (stage < 0 || stage >= stages_) return fmt::format("KeyError: {}", stage);
      if (auto error = process_compute(stage, *what, microbatch, rank, step)) return error;
    }
    const auto [home, is_new] = rank_of_.try_emplace(stage, rank);
    if (is_new || home->second == rank) return std::nullopt;
    return fmt::format(
        "AssertionError: Rank {}, step {}: Stage {} is assigned to both rank {} and rank {}", rank,
        step, stage, rank, home->second);
  }

  [[nodiscard]] std::string totals() const {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      const auto found = seen_.find(stage);
      const auto count = [&](Counted what) {
        return found == seen_.end() ? 0 : static_cast<std::int64_t>(found->second[what].size());
      };
      const std::int64_t f = count(kForward);
      const std::int64_t b = count(kWhole);
      const std::int64_t i = count(kInput);
      const std::int64_t w = count(kWeight);
      // The gap in the two last texts is torch's: a line continued inside the string.
      if (f != microbatches_) {
        return fmt::format(
            "AssertionError: Got {} _ComputationType.FORWARD microbatches for stage {}, "
            "expected {}",
            f, stage, microbatches_);
      }
      if (i != w) {
        return fmt::format(
            "AssertionError: Invalid backward microbatches for stage {}: I and W must have "
            "equal counts,             but got I={}, W={}",
            stage, i, w);
      }
      if (b + (i + w) / 2 != microbatches_) {
        return fmt::format(
            "AssertionError: Invalid backward microbatches for stage {}: expected {} total "
            "backwards,             but got B={}, I={}, W={}",
            stage, microbatches_, b, i, w);
      }
    }
    return "ok";
  }

 private:
  std::optional<std::string> process_compute(std::int64_t stage, Counted what,
                                             std::int64_t microbatch, std::size_t rank,
                                             std::size_t step) {
    constexpr std::array<const char*, 4> kRunning{"", "Full Backward", "Backward Input",
                                                  "Backward Weight"};
    auto& seen = seen_[stage];
    const Counted needed = what == kWeight ? kInput : kForward;
    if (what != kForward && !seen[needed].contains(microbatch)) {
      return fmt::format(
          "AssertionError: Rank {}, step {}: Running {} for stage {}, microbatch {} without "
          "first running {}",
          rank, step, kRunning[what], stage, shown(microbatch),
          what == kWeight ? "Backward Input" : "Forward");
    }
    seen[what].insert(microbatch);
    return std::nullopt;
  }

  std::int64_t microbatches_;
  std::int64_t stages_;
  // Microbatches that were seen, by stage and kind; a stage that was not seen fails.
  std::map<std::int64_t, std::array<std::set<std::int64_t>, 4>> seen_;
  std::map<std::int64_t, std::size_t> rank_of_;
};

}  // namespace

std::string validate(const Rows& rows, std::int64_t stages, std::int64_t microbatches) {
  std::size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  Validator validator(stages, microbatches);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t step = 0; step < rows[r].size(); ++step) {
      const Slot& slot = rows[r][step];
      std::vector<TorchAction> actions = slot.actions;
      if (slot.composite && actions.empty()) actions = {slot.head()};
      for (const TorchAction& action : actions) {
        const auto error =
            validator.process(action.stage, counted(action.type), action.microbatch, r, step);
        if (!error) continue;
        // torch prints the whole table with this message, and its printer wants as many steps as
        // ranks.
        const bool prints = error->find("without first running") != std::string::npos;
        return prints && longest < rows.size() ? "IndexError: list index out of range" : *error;
      }
    }
  }
  return validator.totals();
}

Predicted predict(const Input& input, std::int64_t stages, std::int64_t microbatches,
                  const Version& version) {
  const Rows rows = rows_of(input, version);
  const std::vector<std::int64_t> ranks = rank_of_stages(input, stages);
  Predicted predicted{.validate = validate(rows, stages, microbatches)};
  if (input.form == Form::TorchComms) {
    if (version.refuse != nullptr) predicted.lower = or_ok(version.refuse(rows));
    predicted.simulate = or_ok(simulate(rows, ranks).error);
    return predicted;
  }
  const Lowered lowered = version.lower(without_reductions(rows), ranks);
  predicted.lower = or_ok(lowered.error);
  if (lowered.error.empty()) predicted.simulate = or_ok(simulate(lowered.rows, ranks).error);
  return predicted;
}

}  // namespace capo::torch

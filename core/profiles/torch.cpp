#include <capo/core/profiles/torch.h>

#include <capo/core/order/torch_table.h>

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace capo::torch {

namespace {

enum Counted : std::size_t { kForward, kWhole, kInput, kWeight };

std::optional<Counted> counted(Kind kind, Delay delay) {
  switch (kind) {
    case Kind::Forward:
      return kForward;
    case Kind::Backward:
      return delay == Delay::Always ? kInput : kWhole;
    case Kind::BackwardInput:
      return kInput;
    case Kind::BackwardWeight:
      return kWeight;
    default:
      return std::nullopt;
  }
}

std::string shown(std::int32_t microbatch) {
  return microbatch == kNoMicrobatch ? "None" : std::to_string(microbatch);
}

// The validator's state, with Python's dicts where their order or their KeyError matters.
class Validator {
 public:
  Validator(std::int64_t stages, std::int64_t microbatches)
      : microbatches_(microbatches), stages_(stages) {}

  std::optional<std::string> process(std::int32_t stage, std::optional<Counted> what,
                                     std::int32_t microbatch, std::size_t rank, std::size_t step) {
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
      const auto found = seen_.find(static_cast<std::int32_t>(stage));
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
  std::optional<std::string> process_compute(std::int32_t stage, Counted what,
                                             std::int32_t microbatch, std::size_t rank,
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
  std::map<std::int32_t, std::array<std::set<std::int32_t>, 4>>
      seen_;  // a stage of which nothing was seen fails
  std::map<std::int32_t, std::size_t> rank_of_;
};

}  // namespace

std::string validate(const Input& input, std::int64_t stages, std::int64_t microbatches) {
  Validator validator(stages, microbatches);
  const auto& ranks = input.schedule.ranks;
  // Composites without members are no entries of the schedule; torch gives them stage -1.
  std::set<std::pair<std::size_t, std::size_t>> empty_composites;
  for (const CellFault& fault : input.cell_faults) {
    if (fault.kind == CellFault::Kind::EmptyComposite) {
      empty_composites.emplace(static_cast<std::size_t>(fault.rank), fault.cell);
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Delay> delay = resolved_delay(ranks[r]);
    std::size_t step = 0;
    for (std::size_t at = 0; at <= ranks[r].order.size(); ++at) {
      const bool begins_cell =
          at == ranks[r].order.size() || ranks[r].order[at].group != Group::Continues;
      if (at > 0 && begins_cell) ++step;
      for (; begins_cell && empty_composites.contains({r, step}); ++step) {
        if (auto error = validator.process(-1, std::nullopt, kNoMicrobatch, r, step)) return *error;
      }
      if (at == ranks[r].order.size()) break;
      const Entry& entry = ranks[r].order[at];
      if (entry.kind == Kind::Idle) continue;
      const auto chunk = static_cast<std::size_t>(entry.chunk) - 1;
      const bool known = chunk < delay.size();
      const std::int32_t stage =
          chunk < ranks[r].stages.size() ? ranks[r].stages[chunk] : entry.chunk - 1;
      const auto what = counted(entry.kind, known ? delay[chunk] : Delay::Never);
      if (auto error = validator.process(stage, what, entry.microbatch, r, step)) return *error;
    }
  }
  return validator.totals();
}

}  // namespace capo::torch

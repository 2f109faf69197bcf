#include "core/frameworks/torch/predict.h"

#include "core/base/index.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace capo::torch {

namespace {

constexpr std::size_t kNever = ~std::size_t{0};

struct Life {
  std::size_t begin = kNever;
  std::size_t end = kNever;
  bool input_half = false;
  bool weight_half = false;

  // Whether torch takes it for a life.
  [[nodiscard]] bool whole() const {
    return begin != kNever && end != kNever && end >= begin && (input_half || !weight_half);
  }
};

class Lives {
 public:
  explicit Lives(std::int64_t microbatches) : microbatches_(microbatches) {}

  // false if torch raises.
  bool add(const TorchAction& action, std::size_t at) {
    const bool computes =
        action.type == TorchType::Forward || action.type == TorchType::FullBackward ||
        action.type == TorchType::BackwardInput || action.type == TorchType::BackwardWeight;
    if (!computes) return true;
    if (action.microbatch < 0 || action.microbatch >= microbatches_) return false;
    stages_.insert(action.stage);
    Life& life = lives_[{action.stage, action.microbatch}];
    if (action.type == TorchType::BackwardInput) return !std::exchange(life.input_half, true);
    life.weight_half = life.weight_half || action.type == TorchType::BackwardWeight;
    return std::exchange(action.type == TorchType::Forward ? life.begin : life.end, at) == kNever;
  }

  [[nodiscard]] std::optional<std::int64_t> at_once(std::size_t length) const {
    if (lives_.size() != stages_.size() * as_index(microbatches_)) return std::nullopt;
    std::vector<std::int64_t> change(length + 1);
    for (const auto& [key, life] : lives_) {
      if (!life.whole()) return std::nullopt;
      ++change[life.begin];
      --change[life.end + 1];
    }
    std::int64_t live = 0;
    std::int64_t most = 0;
    for (const std::int64_t step : change) most = std::max(most, live += step);
    return most;
  }

 private:
  std::int64_t microbatches_;
  std::set<std::int64_t> stages_;
  std::map<std::pair<std::int64_t, std::int64_t>, Life> lives_;  // by stage and microbatch
};

}  // namespace

std::optional<std::int64_t> activation_slots(const std::vector<Slot>& row,
                                             std::int64_t microbatches) {
  Lives lives(microbatches);
  bool raises = false;
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (row[at].idle()) continue;
    row[at].for_each_part(
        [&](const TorchAction& action) { raises = raises || !lives.add(action, at); });
  }
  return raises ? std::nullopt : lives.at_once(row.size());
}

}  // namespace capo::torch

#include "core/frameworks/torch/unshard.h"

#include <algorithm>

namespace capo::torch {

NextStages::NextStages(const std::vector<Slot>& row, Composites counted) {
  for (std::size_t at = 0; at < row.size(); ++at) {
    auto& distinct = stages_.emplace_back();
    std::size_t part = 0;
    const auto add = [&](const TorchAction& action) {
      if (std::find(distinct.begin(), distinct.end(), action.stage) != distinct.end()) return;
      distinct.push_back(action.stage);
      places_[action.stage].emplace_back(at, part++);
    };
    const TorchAction head = row[at].head();
    const bool by_member = counted == Composites::All || head.type == TorchType::Overlap;
    by_member ? row[at].for_each_part(add) : add(head);
  }
  for (const auto& [stage, places] : places_) next_.emplace(places.front(), stage);
}

std::vector<std::int64_t> NextStages::next(std::int64_t count) const {
  std::vector<std::int64_t> found;
  std::size_t last = 0;  // the slot of the stage that was found last
  for (const auto& [place, stage] : next_) {
    const bool enough = static_cast<std::int64_t>(found.size()) >= count;
    if (enough && place.first != last) break;
    found.push_back(stage);
    last = place.first;
  }
  return found;
}

void NextStages::advance() {
  for (const std::int64_t stage : stages_[at_]) {
    const auto& places = places_[stage];
    std::size_t& passed = passed_[stage];
    next_.erase({places[passed], stage});
    if (++passed < places.size()) next_.emplace(places[passed], stage);
  }
  ++at_;
}

}  // namespace capo::torch

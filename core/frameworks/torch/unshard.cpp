#include "core/frameworks/torch/unshard.h"

#include <algorithm>

namespace capo::torch {

namespace {

// CPython looks at so many places behind one that is taken before it goes elsewhere.
constexpr std::size_t kNeighbours = 9;
constexpr std::size_t kShift = 5;

}  // namespace

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

std::size_t PythonSet::free_place(std::int64_t number) const {
  const std::size_t mask = places_.size() - 1;
  auto perturb = static_cast<std::size_t>(number == -1 ? -2 : number);  // Python's hash
  std::size_t at = perturb & mask;
  while (true) {
    const std::size_t last = at + kNeighbours <= mask ? at + kNeighbours : at;
    for (std::size_t i = at; i <= last; ++i) {
      if (places_[i].use == Use::Free) return i;
    }
    perturb >>= kShift;
    at = (at * 5 + 1 + perturb) & mask;
  }
}

void PythonSet::add(std::int64_t number) {
  places_[free_place(number)] = {.use = Use::Taken, .number = number};
  ++used_;
  ++filled_;
  if (filled_ * 5 >= (places_.size() - 1) * 3) rebuild(used_ * 4);
}

void PythonSet::remove(std::int64_t number) {
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.use == Use::Taken && place.number == number;
  });
  found->use = Use::Left;
  --used_;
}

std::vector<std::int64_t> PythonSet::in_order() const {
  std::vector<std::int64_t> numbers;
  for (const Place& place : places_) {
    if (place.use == Use::Taken) numbers.push_back(place.number);
  }
  return numbers;
}

void PythonSet::rebuild(std::size_t size) {
  const std::vector<std::int64_t> numbers = in_order();
  std::size_t places = 8;
  while (places <= size) places *= 2;
  places_.assign(places, {});
  for (const std::int64_t number : numbers) {
    places_[free_place(number)] = {.use = Use::Taken, .number = number};
  }
  filled_ = used_;
}

}  // namespace capo::torch

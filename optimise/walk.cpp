#include "optimise/walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace capo::optimise {

namespace {

constexpr std::uint64_t kFirstCycle = 4096;
constexpr std::uint32_t kChangesOfPath = 24;
/// Stopping is asked for so often.
constexpr std::uint64_t kSlice = 64;

double mean_time(const Problem& problem) {
  double sum = 0;
  for (const Series& series : problem.series) sum += series.takes;
  return sum / static_cast<double>(problem.series.size());
}

}  // namespace

Walk::Walk(const Problem& problem, const Orders& orders, Objective objective, std::uint64_t seed,
           double heat)
    : problem_(problem),
      objective_(objective),
      heat_(heat),
      chance_(seed),
      best_orders_(orders),
      unit_(mean_time(problem)) {
  begin_at(orders);
  best_ = now_.value;
  cycle_ = kFirstCycle;
}

void Walk::begin_at(const Orders& orders) {
  tails_.reset();
  evaluation_.emplace(problem_, orders);
  tails_.emplace(problem_, *evaluation_, objective_);
  now_ = cost();
}

Walk::Cost Walk::cost() const {
  Cost cost{.value =
                objective_ == Objective::Makespan ? evaluation_->makespan() : evaluation_->span()};
  const std::uint32_t last = problem_.tasks_of_rank() - 1;
  for (std::size_t rank = 0; rank < problem_.of_rank.size(); ++rank) {
    cost.tie += evaluation_->end_at(rank, last);
  }
  return cost;
}

// The mean of the ranks' ends counts a tenth of the objective.
double Walk::weighed(const Cost& cost) const {
  return cost.value + 0.1 * cost.tie / static_cast<double>(problem_.of_rank.size());
}

void Walk::begin_cycle() {
  if (!best_is_here_) {
    begin_at(best_orders_);
    best_is_here_ = true;
  }
  cycle_ += cycle_ / 2;
  in_cycle_ = 0;
  critical_.clear();
}

// The tasks from one that ends last back to the beginning, each held up by the next in the list.
void Walk::find_critical() {
  critical_.clear();
  changes_ = 0;
  const std::uint32_t last = problem_.tasks_of_rank() - 1;
  Evaluation::Place at{.rank = 0, .position = last};
  double latest = -1;
  for (std::size_t rank = 0; rank < problem_.of_rank.size(); ++rank) {
    const double begins = objective_ == Objective::Span ? evaluation_->begin_at(rank, 0) : 0;
    const double ends = evaluation_->end_at(rank, last) - begins;
    if (ends <= latest) continue;
    latest = ends;
    at.rank = rank;
  }
  for (;;) {
    critical_.push_back(at);
    if (const auto before = evaluation_->held_up_by(at.rank, at.position)) {
      at = *before;
    } else if (at.position > 0) {
      --at.position;
    } else {
      return;
    }
  }
}

Evaluation::Place Walk::draw_place() {
  if (chance_.below(8) == 0) {
    return {.rank = chance_.below(problem_.of_rank.size()),
            .position = chance_.below(problem_.tasks_of_rank())};
  }
  Evaluation::Place place = critical_[chance_.below(critical_.size())];
  // A neighbour of a critical task may stand in its way.
  const std::uint32_t aside = chance_.below(4);
  if (aside == 0 && place.position > 0) --place.position;
  if (aside == 1 && place.position + 1 < problem_.tasks_of_rank()) ++place.position;
  return place;
}

// The place of a weight gradient beside that of the next microbatch or of the one before, with
// which it may be one call.
std::uint32_t Walk::beside_another(const Evaluation::Place& from) {
  const TaskNumber task = evaluation_->task_at(from.rank, from.position);
  const std::uint32_t microbatch = task % problem_.microbatches();
  if (chance_.below(2) == 0) {
    return microbatch == 0 ? from.position : evaluation_->position_of(task - 1) + 1;
  }
  const bool last = microbatch + 1 == problem_.microbatches();
  return last ? from.position : evaluation_->position_of(task + 1) - 1;
}

// Near places are likelier: the distance doubles with every second draw.
std::uint32_t Walk::draw_target(const Evaluation::Place& from) {
  if (problem_.fuses() && chance_.below(4) == 0) {
    const TaskNumber task = evaluation_->task_at(from.rank, from.position);
    if (half_of(evaluation_->series_of(task)) == Half::Weight) return beside_another(from);
  }
  std::uint32_t reach = 1;
  while (reach < problem_.tasks_of_rank() && chance_.below(2) == 0) reach *= 2;
  const std::uint32_t distance = 1 + chance_.below(reach);
  if (chance_.below(2) == 0) return from.position - std::min(from.position, distance);
  return std::min(from.position + distance, problem_.tasks_of_rank() - 1);
}

// Returns whether a shift was kept.
bool Walk::try_shift() {
  const Evaluation::Place from = draw_place();
  const std::uint32_t to = draw_target(from);
  if (to == from.position) return false;
  // How much worse it may become is drawn before it is known how much worse it is.
  const double most = temperature_ > 0 ? -temperature_ * std::log(1 - chance_.share()) : 0;
  // A shift that may be equal but for rounding is tried.
  const double allowed = (now_.value + most) * (1 + 1e-12);
  if (tails_->foresee(from.rank, from.position, to, now_.value).value > allowed) return false;
  if (!evaluation_->shift(from.rank, from.position, to)) return false;

  const Cost then = cost();
  if (weighed(then) - weighed(now_) > most) {
    evaluation_->undo();
    return false;
  }

  tails_->update(from.rank, from.position, to);
  const bool moved = then.value != now_.value;
  now_ = then;
  best_is_here_ = false;
  if (now_.value < best_ * (1 - 1e-12)) {
    best_ = now_.value;
    best_orders_ = evaluation_->orders();
    best_is_here_ = true;
  }
  if (moved || ++changes_ >= kChangesOfPath) critical_.clear();
  return true;
}

void Walk::run(std::uint64_t shifts, const std::function<bool()>& stopped) {
  for (std::uint64_t i = 0; i < shifts; ++i) {
    if (i % kSlice == 0 && stopped()) return;
    if (in_cycle_++ == cycle_) begin_cycle();
    const double left = 1 - static_cast<double>(in_cycle_) / static_cast<double>(cycle_);
    temperature_ = heat_ * unit_ * left * left;
    if (critical_.empty()) find_critical();
    try_shift();
  }
}

}  // namespace capo::optimise

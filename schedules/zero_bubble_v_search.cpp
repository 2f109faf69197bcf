#include "schedules/zero_bubble_v_search.h"
#include "schedules/zero_bubble_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace capo::published {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

enum class Pass : std::uint8_t { Forward, Backward };
/// A microbatch runs from rank 0 to the last one and back, in the forward pass and again in the
/// backward pass: from stage to stage in the one and against them in the other.
enum class Leg : std::uint8_t { Out, Back };

struct Step {
  Pass pass;
  Leg leg;
};

constexpr std::size_t index_of(Step step) {
  return 2 * static_cast<std::size_t>(step.pass) + static_cast<std::size_t>(step.leg);
}

constexpr std::int32_t chunk_of(Step step) {
  return (step.pass == Pass::Forward) == (step.leg == Leg::Out) ? 1 : 2;
}

constexpr Step kForwardOut{Pass::Forward, Leg::Out};
constexpr Step kForwardBack{Pass::Forward, Leg::Back};
constexpr Step kBackwardOut{Pass::Backward, Leg::Out};
constexpr Step kBackwardBack{Pass::Backward, Leg::Back};

struct Rank {
  Costs costs;
  double clock = 0;
  double idle =
      0;  ///< since its first forward, on top of its work beyond that of the lightest rank
  std::array<std::vector<double>, 4> ends;  ///< by step, then by microbatch
  MemoryLimit::Tasks run;
  std::vector<Move> owed;  ///< the W of every backward that was run, first come, first served
  std::vector<Move> order;

  [[nodiscard]] std::int32_t count(Step step) const {
    return static_cast<std::int32_t>(ends[index_of(step)].size());
  }
  [[nodiscard]] bool owes_weight() const { return run.weights < run.backwards; }
};

/// The ranks of a V pipeline and what they have run so far.
class Pipeline {
 public:
  explicit Pipeline(const Setting& setting)
      : transfer_(setting.transfer()),
        microbatches_(setting.microbatches),
        memory_(setting),
        ranks_(static_cast<std::size_t>(setting.ranks)) {
    const auto steps = static_cast<std::size_t>(microbatches_);
    const double least = least_work(setting);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      rank.costs = setting.costs_of(static_cast<std::int32_t>(r));
      rank.idle = 2 * microbatches_ * (work(rank.costs) - least);
      most_idle_ = std::max(most_idle_, rank.idle);
      for (std::vector<double>& ends : rank.ends) ends.reserve(steps);
      rank.owed.reserve(2 * steps);
      rank.order.reserve(6 * steps);
    }
  }

  [[nodiscard]] const MemoryLimit& memory() const { return memory_; }
  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  [[nodiscard]] const Rank& operator[](std::size_t r) const { return ranks_[r]; }
  [[nodiscard]] double most_idle() const { return most_idle_; }

  /// Whether the next microbatch of the step has run on the rank before, if there is one.
  [[nodiscard]] bool has_input(std::size_t r, Step step) const {
    const auto neighbour = rank_before(r, step.leg);
    return !neighbour || ranks_[*neighbour].count(step) > ranks_[r].count(step);
  }

  /// When the input arrives that another rank sends; never if none does, or none yet.
  [[nodiscard]] double arrival(std::size_t r, Step step) const {
    const auto neighbour = rank_before(r, step.leg);
    if (!neighbour || !has_input(r, step)) return kNever;
    const auto microbatch = static_cast<std::size_t>(ranks_[r].count(step));
    return ranks_[*neighbour].ends[index_of(step)][microbatch] + transfer_;
  }

  /// Whether the step's next microbatch has done all that comes before it.
  [[nodiscard]] bool ready(std::size_t r, Step step) const {
    const Rank& rank = ranks_[r];
    const std::int32_t next = rank.count(step);
    if (next == microbatches_ || !has_input(r, step)) return false;
    const std::size_t before = index_of(step);
    return before == 0 || std::cmp_greater(rank.ends[before - 1].size(), next);
  }

  [[nodiscard]] bool fits(std::size_t r, Pass pass) const {
    return pass == Pass::Forward ? memory_.fits_forwards(ranks_[r].run)
                                 : memory_.fits_backward(ranks_[r].run);
  }

  void run(std::size_t r, Step step) {
    Rank& rank = ranks_[r];
    const bool forward = step.pass == Pass::Forward;
    const double cost = forward ? rank.costs.forward : rank.costs.backward;
    const double end_at_once = rank.clock + cost;
    rank.clock = std::max(end_at_once, arrival(r, step) + cost);
    if (rank.count(kForwardOut) > 0) {
      rank.idle += rank.clock - end_at_once;
      most_idle_ = std::max(most_idle_, rank.idle);
    }
    const Move move{.kind = forward ? Kind::Forward : Kind::BackwardInput,
                    .chunk = chunk_of(step),
                    .microbatch = rank.count(step)};
    rank.order.push_back(move);
    rank.ends[index_of(step)].push_back(rank.clock);
    ++(forward ? rank.run.forwards : rank.run.backwards);
    if (forward) return;
    rank.owed.push_back(
        {.kind = Kind::BackwardWeight, .chunk = move.chunk, .microbatch = move.microbatch});
  }

  void run_weight(std::size_t r) {
    Rank& rank = ranks_[r];
    CAPO_ASSERT(rank.owes_weight(), "a W follows its backward");
    rank.order.push_back(rank.owed[static_cast<std::size_t>(rank.run.weights++)]);
    rank.clock += rank.costs.weight;
  }

  void run_weights_left() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      while (ranks_[r].owes_weight()) run_weight(r);
    }
  }

  [[nodiscard]] PublishedOrders orders() && {
    PublishedOrders orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

  [[nodiscard]] std::optional<std::size_t> rank_after(std::size_t r, Leg leg) const {
    return rank_before(r, leg == Leg::Out ? Leg::Back : Leg::Out);
  }

 private:
  [[nodiscard]] static double work(const Costs& costs) {
    return costs.forward + costs.backward + costs.weight;
  }

  [[nodiscard]] static double least_work(const Setting& setting) {
    double least = work(setting.costs_of(0));
    for (const Costs& costs : setting.rank_costs) least = std::min(least, work(costs));
    return least;
  }

  [[nodiscard]] std::optional<std::size_t> rank_before(std::size_t r, Leg leg) const {
    if (leg == Leg::Out) return r > 0 ? std::optional(r - 1) : std::nullopt;
    return r + 1 < ranks_.size() ? std::optional(r + 1) : std::nullopt;
  }

  double transfer_;
  std::int32_t microbatches_;
  MemoryLimit memory_;
  std::vector<Rank> ranks_;
  double most_idle_ = 0;
};

/// What becomes of a wait that is too short for a W and yet makes its rank the most idle one.
enum class LongWait { Filled, Kept };

struct Choices {
  LongWait before_backward_of_chunk_2;  ///< before that of chunk 1 it is always filled
  LongWait before_forward;
};

/// By rank: how long it may be idle in all, even where no other rank is.
using Allowance = std::vector<double>;

/// The published heuristic, once.
class VSearch {
 public:
  VSearch(const Setting& setting, const Choices& choices, const Allowance& allowance)
      : choices_(choices), allowance_(allowance), pipeline_(setting) {}

  /// Whether an order came of it: with little memory the heuristic may find no way on.
  [[nodiscard]] bool search() {
    if (!send_first_microbatch() || !level_ranks()) return false;
    for (std::int32_t round = 0; round < 2 * pipeline_.microbatches(); ++round) {
      if (!run_backwards() || !run_forwards()) return false;
    }
    pipeline_.run_weights_left();
    return true;
  }

  [[nodiscard]] Pipeline&& pipeline() && { return std::move(pipeline_); }

 private:
  [[nodiscard]] bool run(std::size_t r, Step step) {
    if (!pipeline_.ready(r, step) || !pipeline_.fits(r, step.pass)) return false;
    pipeline_.run(r, step);
    return true;
  }

  // The first microbatch goes down and comes back; ranks that wait for it start others meanwhile.
  [[nodiscard]] bool send_first_microbatch() {
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      if (!run(r, kForwardOut)) return false;
    }
    for (std::size_t r = pipeline_.size(); r-- > 0;) {
      const double arrival = pipeline_.arrival(r, kForwardBack);
      while (has_time_for_another(r, arrival)) {
        for (std::size_t above = 0; above <= r; ++above) {
          if (!run(above, kForwardOut)) return false;
        }
      }
      if (!run(r, kForwardBack)) return false;
    }
    return true;
  }

  // With a place left for the two chunks of a microbatch on each rank on the way to the top.
  [[nodiscard]] bool has_time_for_another(std::size_t r, double arrival) const {
    const Rank& rank = pipeline_[r];
    const auto places = static_cast<std::int32_t>(2 * r + 2);
    return pipeline_.memory().fits_forwards(rank.run, places) &&
           rank.clock + rank.costs.forward <= arrival &&
           rank.count(kForwardOut) < pipeline_.microbatches();
  }

  // Every rank gets as many forwards as the one above it, and more of chunk 2, the chunks in turn.
  [[nodiscard]] bool level_ranks() {
    Step step = kForwardOut;
    for (std::size_t r = 1; r < pipeline_.size(); ++r) {
      while (lags(r)) {
        for (std::size_t below = pipeline_.size(); below-- > r;) {
          const bool left = pipeline_[below].count(step) < pipeline_.microbatches();
          if (left && !run(below, step)) return false;
        }
        step.leg = step.leg == Leg::Out ? Leg::Back : Leg::Out;
      }
    }
    return true;
  }

  [[nodiscard]] bool lags(std::size_t r) const {
    const Rank& rank = pipeline_[r];
    const Rank& above = pipeline_[r - 1];
    const std::int32_t back_above = above.count(kForwardBack);
    return rank.run.forwards < above.run.forwards ||
           (rank.count(kForwardBack) <= back_above && back_above < pipeline_.microbatches());
  }

  [[nodiscard]] bool run_backwards() {
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      if (!make_room(r, Pass::Backward)) return false;
    }
    std::vector<Leg> legs(pipeline_.size());
    for (std::size_t r = 0; r < pipeline_.size(); ++r) legs[r] = backward_leg(r);
    for (std::size_t r = pipeline_.size(); r-- > 0;) {
      if (legs[r] == Leg::Back && !run_backward(r, Leg::Back)) return false;
    }
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      if (legs[r] == Leg::Out && !run_backward(r, Leg::Out)) return false;
    }
    return true;
  }

  [[nodiscard]] Leg backward_leg(std::size_t r) const {
    const Rank& rank = pipeline_[r];
    if (rank.count(kBackwardBack) >= rank.count(kBackwardOut)) return Leg::Out;
    const bool only_back = rank.count(kBackwardOut) == pipeline_.microbatches();
    return only_back || pipeline_.has_input(r, kBackwardBack) ? Leg::Back : Leg::Out;
  }

  [[nodiscard]] bool run_backward(std::size_t r, Leg leg) {
    const Step step{Pass::Backward, leg};
    fill_wait(r, step, leg == Leg::Back ? LongWait::Filled : choices_.before_backward_of_chunk_2);
    return run(r, step);
  }

  [[nodiscard]] bool run_forwards() {
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      const std::optional<Leg> leg = forward_leg(r);
      if (!leg) continue;
      const Step step{Pass::Forward, *leg};
      if (!make_room(r, Pass::Forward)) return false;
      fill_wait(r, step, choices_.before_forward);
      if (!run(r, step)) return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<Leg> forward_leg(std::size_t r) const {
    const Rank& rank = pipeline_[r];
    const std::int32_t all = pipeline_.microbatches();
    if (rank.count(kForwardBack) == all) return std::nullopt;
    if (rank.count(kForwardBack) == rank.count(kForwardOut)) return Leg::Out;
    if (pipeline_.has_input(r, kForwardBack)) return Leg::Back;
    if (rank.count(kForwardOut) < all && pipeline_.has_input(r, kForwardOut)) return Leg::Out;
    return std::nullopt;
  }

  [[nodiscard]] bool make_room(std::size_t r, Pass pass) {
    while (!pipeline_.fits(r, pass)) {
      if (!pipeline_[r].owes_weight()) return false;
      pipeline_.run_weight(r);
    }
    return true;
  }

  void fill_wait(std::size_t r, Step step, LongWait long_wait) {
    const Rank& rank = pipeline_[r];
    // Nobody waits for a rank that is alone, and owing a W wins it nothing.
    const double arrival =
        pipeline_.size() > 1 ? pipeline_.arrival(r, step) : std::numeric_limits<double>::infinity();
    while (rank.owes_weight() && arrival >= rank.clock + rank.costs.weight) {
      pipeline_.run_weight(r);
    }
    if (!rank.owes_weight() || long_wait == LongWait::Kept) return;
    const double harmless = std::max(pipeline_.most_idle(), allowance_[r]) - rank.idle;
    if (arrival - rank.clock > harmless) pipeline_.run_weight(r);
  }

  Choices choices_;
  Allowance allowance_;
  Pipeline pipeline_;
};

std::optional<Pipeline> attempt(const Setting& setting, const Choices& choices,
                                const Allowance& allowance) {
  VSearch search(setting, choices, allowance);
  if (!search.search()) return std::nullopt;
  return std::move(search).pipeline();
}

// A rank that waited less than the one that waited most may wait for longer the next time.
Allowance allowance_after(const Pipeline& pipeline) {
  Allowance allowance;
  for (std::size_t r = 0; r < pipeline.size(); ++r) {
    allowance.push_back(pipeline.most_idle() - pipeline[r].idle);
  }
  return allowance;
}

std::optional<Pipeline> search_with(const Setting& setting, const Choices& choices) {
  std::optional<Pipeline> best =
      attempt(setting, choices, Allowance(static_cast<std::size_t>(setting.ranks), 0));
  while (best) {
    std::optional<Pipeline> next = attempt(setting, choices, allowance_after(*best));
    if (!next || next->most_idle() >= best->most_idle()) break;
    best = std::move(next);
  }
  return best;
}

/// What steps in where the heuristic finds no way on: the task that can start first is run first, a
/// backward before a forward and a forward before a W.
///
/// It always comes to its end. The oldest microbatch of a rank can run both its chunks there, its
/// Ws then free all that it holds, and the next is the oldest; and all ranks have the same oldest
/// ones, since microbatches do not overtake each other.
class FirstComeSchedule {
 public:
  /// At most `at_once` microbatches are under way at a time: where they are too many, ranks fill up
  /// with forwards that wait for each other.
  FirstComeSchedule(const Setting& setting, std::int32_t at_once)
      : at_once_(at_once), pipeline_(setting), next_(pipeline_.size()) {}

  void run() {
    for (std::size_t r = 0; r < next_.size(); ++r) next_[r] = next_of(r);
    for (std::size_t r = first_to_start(); next_[r].start < kNotYet; r = first_to_start()) {
      const std::optional<Step> step = next_[r].step;
      if (step) {
        pipeline_.run(r, *step);
        const auto receiver = pipeline_.rank_after(r, step->leg);
        if (receiver) next_[*receiver] = next_of(*receiver);
      } else {
        pipeline_.run_weight(r);
      }
      next_[r] = next_of(r);
    }
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      CAPO_ASSERT(pipeline_[r].run.weights == 2 * pipeline_.microbatches(),
                  "a microbatch is only started where it can end");
    }
  }

  [[nodiscard]] Pipeline pipeline() && { return std::move(pipeline_); }

 private:
  struct Next {
    double start = kNotYet;    ///< until a neighbour has run more
    std::optional<Step> step;  ///< a W if none
  };

  [[nodiscard]] std::size_t first_to_start() const {
    const auto first = std::min_element(
        next_.begin(), next_.end(), [](const Next& a, const Next& b) { return a.start < b.start; });
    return static_cast<std::size_t>(first - next_.begin());
  }

  [[nodiscard]] Next next_of(std::size_t r) const {
    const Rank& rank = pipeline_[r];
    Next next;
    for (const Step step : {kBackwardBack, kBackwardOut, kForwardBack, kForwardOut}) {
      if (!pipeline_.ready(r, step) || !may_run(r, step)) continue;
      const double start = std::max(rank.clock, pipeline_.arrival(r, step));
      if (start < next.start) next = {.start = start, .step = step};
    }
    if (!rank.owes_weight()) return next;
    const bool has_time = rank.clock + rank.costs.weight <= next.start;
    if (has_time || !pipeline_.fits(r, next.step->pass)) return {.start = rank.clock};
    return next;
  }

  // Whether its memory is there once all Ws that are owed are run, and a forward of chunk 1 leaves
  // the oldest microbatch the place of its chunk 2.
  [[nodiscard]] bool may_run(std::size_t r, Step step) const {
    if (step.pass == Pass::Backward) return true;
    const Rank& rank = pipeline_[r];
    MemoryLimit::Tasks once_paid = rank.run;
    once_paid.weights = once_paid.backwards;
    if (step.leg == Leg::Back) return pipeline_.memory().fits_forwards(once_paid);
    const std::int32_t under_way = rank.count(kForwardOut) - rank.count(kBackwardBack);
    if (r == 0 && under_way >= at_once_) return false;
    const bool oldest_ran_both = rank.count(kForwardBack) > rank.count(kBackwardBack);
    return pipeline_.memory().fits_forwards(once_paid, oldest_ran_both ? 1 : 2);
  }

  static constexpr double kNotYet = std::numeric_limits<double>::infinity();

  std::int32_t at_once_;
  Pipeline pipeline_;
  std::vector<Next> next_;
};

std::optional<Pipeline> heuristic_order(const Setting& setting) {
  std::optional<Pipeline> best;
  for (const LongWait before_backward : {LongWait::Filled, LongWait::Kept}) {
    for (const LongWait before_forward : {LongWait::Filled, LongWait::Kept}) {
      std::optional<Pipeline> found = search_with(
          setting,
          {.before_backward_of_chunk_2 = before_backward, .before_forward = before_forward});
      if (found && (!best || found->most_idle() < best->most_idle())) best = std::move(found);
    }
  }
  return best;
}

// As many microbatches can be under way on every rank as the limit holds whole, and twice as many
// where the ranks between hold them for a part of the way only; a few numbers between are tried.
Pipeline first_come_order(const Setting& setting) {
  const MemoryLimit memory(setting);
  std::int32_t whole = 1;
  while (whole < setting.microbatches && memory.fits_forwards({}, 2 * (whole + 1))) ++whole;
  std::optional<Pipeline> best;
  for (std::int32_t at_once = whole + whole / 4; at_once <= 2 * whole; at_once += 1 + whole / 8) {
    FirstComeSchedule schedule(setting, at_once);
    schedule.run();
    Pipeline found = std::move(schedule).pipeline();
    if (!best || found.most_idle() < best->most_idle()) best = std::move(found);
  }
  return std::move(*best);
}

}  // namespace

Result<PublishedOrders, std::string> zero_bubble_v_search(const Setting& setting) {
  if (auto refusal = refuse_search("zbv", setting, 2)) {
    return std::move(*refusal);
  }
  const Setting whole = in_whole_times(setting);
  std::optional<Pipeline> order = heuristic_order(whole);
  if (!order) order = first_come_order(whole);
  return std::move(*order).orders();
}

}  // namespace capo::published

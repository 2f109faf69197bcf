// The zero bubble search of V pipelines, where every rank holds two chunks and a microbatch runs
// down the ranks and back up. It works as zero_bubble_search.cpp does in a linear pipeline.
//
//   2 ranks, 2 microbatches, F = B = W, limit 4 F:
//   rank 0:  F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0
//   rank 1:  F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0
//
// The first chunk of rank r is stage r, its second stage 2p-1-r of p ranks. The warm-up fills the
// way of the first microbatch; after it every round gives each rank one B and at most one F, and Ws
// go where the rank would wait otherwise or where memory demands one. Four combinations of two
// choices are tried, each again with the waits of its last try as allowance for as long as that
// helps, and the first of those whose most idle rank waits least is kept. Every decision is the one
// of the authors' program, down to the order of the additions, so that equal times decide alike;
// only a rank that is alone runs its Ws earlier than there.
//
// Ranks may differ in their times, which that program does not know. Work that a rank has beyond
// the rank with the least counts as waiting then, so that waits go to ranks that can afford them.
//
// The authors' program gives up if a rank may hold less than about 2p forwards at a time. Here an
// order of another kind steps in: each rank starts what it can start first, and a forward only if
// the oldest microbatch on the rank can still run to its end. It keeps to every limit that holds
// one microbatch. It is no building block with a period: at their memory V-Half and V-Min are often
// shorter by a tenth.
//
// Qi et al., arXiv 2401.10241, section 6; zbv.py of sail-sg/zero-bubble-pipeline-parallelism at
// 39f2c186. Tested by zero_bubble_search_test.cpp.

#include "core/base/assert.h"
#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/zero_bubble_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace capo::schedules {

namespace zero_bubble {
namespace {

Pipeline v_pipeline(const Setting& setting) {
  Pipeline pipeline(setting, Pipeline::Shape::V);
  pipeline.count_surplus_work_as_idle();
  return pipeline;
}

/// Says whether a W fills a wait that is too short for it and yet makes its rank the most idle one.
enum class LongWait { Filled, Kept };

struct VChoices {
  LongWait before_backward_of_chunk_2;  ///< a wait before a backward of chunk 1 is always filled
  LongWait before_forward;
};

/// The time that each rank may be idle in all, even if no other rank is.
using Allowance = std::vector<double>;

/// One try of the published heuristic.
class VSearch {
 public:
  VSearch(const Setting& setting, const VChoices& choices, const Allowance& allowance)
      : choices_(choices), allowance_(allowance), pipeline_(v_pipeline(setting)) {}

  /// False if the heuristic finds no way on, which happens with little memory.
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

  // Memory must leave room for the two chunks of a microbatch on each rank on the way to the top.
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
      if (!pipeline_.make_room(r, Pass::Backward)) return false;
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
      if (!pipeline_.make_room(r, Pass::Forward)) return false;
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

  void fill_wait(std::size_t r, Step step, LongWait long_wait) {
    const Rank& rank = pipeline_[r];
    // A rank that is alone makes no other rank wait, so it gains nothing by owing a W.
    const double arrival =
        pipeline_.size() > 1 ? pipeline_.arrival(r, step) : std::numeric_limits<double>::infinity();
    pipeline_.run_weights_until(r, arrival);
    if (!rank.owes_weight() || long_wait == LongWait::Kept) return;
    const double harmless = std::max(pipeline_.most_idle(), allowance_[r]) - rank.idle;
    if (arrival - rank.clock > harmless) pipeline_.run_weight(r);
  }

  VChoices choices_;
  Allowance allowance_;
  Pipeline pipeline_;
};

std::optional<Pipeline> attempt(const Setting& setting, const VChoices& choices,
                                const Allowance& allowance) {
  VSearch search(setting, choices, allowance);
  if (!search.search()) return std::nullopt;
  return std::move(search).pipeline();
}

// A rank that waited less than the most idle rank may wait longer the next time.
Allowance allowance_after(const Pipeline& pipeline) {
  Allowance allowance;
  for (std::size_t r = 0; r < pipeline.size(); ++r) {
    allowance.push_back(pipeline.most_idle() - pipeline[r].idle);
  }
  return allowance;
}

std::optional<Pipeline> search_with(const Setting& setting, const VChoices& choices) {
  std::optional<Pipeline> best = attempt(setting, choices, Allowance(as_index(setting.ranks), 0));
  while (best) {
    std::optional<Pipeline> next = attempt(setting, choices, allowance_after(*best));
    if (!next || next->most_idle() >= best->most_idle()) break;
    best = std::move(next);
  }
  return best;
}

/// Steps in if the heuristic finds no way on: the task that can start first is run first, a
/// backward before a forward and a forward before a W.
///
/// It always comes to its end. The oldest microbatch of a rank can run both its chunks there, its
/// Ws then free all its memory, and the next microbatch is the oldest. All ranks agree on the
/// oldest one, since microbatches do not overtake each other.
class FirstComeSchedule {
 public:
  /// At most `at_once` microbatches are under way at a time: with too many, ranks fill up with
  /// forwards that wait for each other.
  FirstComeSchedule(const Setting& setting, std::int32_t at_once)
      : at_once_(at_once), pipeline_(v_pipeline(setting)), next_(pipeline_.size()) {}

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
    double start = kNotYet;    ///< kNotYet until a neighbour has run more
    std::optional<Step> step;  ///< nullopt is a W
  };

  [[nodiscard]] std::size_t first_to_start() const {
    const auto first = std::min_element(
        next_.begin(), next_.end(), [](const Next& a, const Next& b) { return a.start < b.start; });
    return as_index(first - next_.begin());
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

  // Whether the step has memory once all owed Ws are run, and leaves room for the chunk 2 of the
  // oldest microbatch if it is a forward of chunk 1.
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

// The limit holds a number of whole microbatches on every rank, and up to twice that number can be
// under way if the ranks hold them for a part of the way only. A few numbers between are tried.
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
}  // namespace zero_bubble

Generated zero_bubble_v_search(const Setting& setting) {
  using namespace zero_bubble;
  if (auto refusal = refuse_search("zbv", setting, 2)) {
    return std::move(*refusal);
  }
  const Setting whole = in_whole_times(setting);
  std::optional<Pipeline> order = heuristic_order(whole);
  if (!order) order = first_come_order(whole);
  return std::move(*order).orders();
}

}  // namespace capo::schedules

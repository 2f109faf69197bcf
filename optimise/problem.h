// The problem that an optimiser solves: which tasks there are, on which rank each runs, how long it
// takes, what it waits for, and what a rank may hold.
//
//   rank 0: F(s0,0) F(s0,1) B(s0,0) W(s0,0) ...     an order of each rank; each task begins as
//   early rank 1: F(s1,0) B(s1,0) F(s1,1) ...             as its rank and what it waits for allow
//
// F(s,k) waits for F(s-1,k), B(s,k) for B(s+1,k) and F(s,k), W(s,k) for B(s,k). What crosses ranks
// is on its way for the time of its link, occupies nobody and never queues. Microbatches are alike,
// so that within one kind of one stage their order 0, 1, 2, ... is no restriction (if two are
// swapped on every rank where they stand the other way round, nothing becomes later): an order of a
// rank is a sequence of series, and the k-th task of a series is microbatch k.
//
// All times and amounts are read off the simulator, on a step of one microbatch, and not computed
// here again; evaluation.h adds them up in the simulator's order, so that its times are the
// simulator's to the last bit. The problem has no whole backwards: one that takes b + w is never
// better than its halves side by side. It has no composites. Memory is taken by forwards, and by
// backwards of chunks that recompute: these take when they begin what they make again.
//
//   one that recomputes, keep=0.1     F +0.1 ... B +0.9 when it begins, +0 when it ends ... W -1
//
// Reasoning that knows forwards alone as what takes memory is given the problem in which nothing is
// made again (relaxed()). Weight gradients of one chunk that stand next to each other may be one
// call, as core/order/fuse_weights.h makes them (calls.h). Tested by problem_test.cpp.

#pragma once

#include "core/base/index.h"
#include "core/base/result.h"
#include "core/order/schedule.h"
#include "sim/simulation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace capo::optimise {

/// The tasks of one kind in one stage, in the order of microbatches: number 3 * stage + kind.
using SeriesId = std::uint32_t;
constexpr SeriesId kNoSeries = 0xffffffff;

/// Number series * microbatches + microbatch.
using TaskNumber = std::uint32_t;

enum class Half : std::uint8_t { Forward, Backward, Weight };

/// All tasks of a series have this in common.
struct Series {
  std::size_t rank = 0;
  double takes = 0;    ///< time
  double further = 0;  ///< time of a weight gradient that is not the first of its call
  double holds = 0;    ///< what it adds to the memory of its rank, less than 0 if it gives up
  double during = 0;   ///< what it adds before that, when it begins: a backward that recomputes
  /// The series on another rank whose task of the same microbatch it waits for, and how long what
  /// that made is on its way; kNoSeries: there is none.
  SeriesId waits_for = kNoSeries;
  double lag = 0;
  SeriesId awaited_by = kNoSeries;  ///< the series on another rank that waits for it
  /// The series on the same rank whose tasks of the same microbatch stand before and behind it.
  std::vector<SeriesId> behind;
  std::vector<SeriesId> before;

  /// Its rank holds this behind a task of the series if it held `held` before, added up as the
  /// simulator does; and this at most until then.
  [[nodiscard]] double held_behind(double held) const { return held + during + holds; }
  [[nodiscard]] double most_held(double held) const {
    return std::max(held + during, held_behind(held));
  }
};

/// The size and placement of the step.
struct Frame {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;        ///< of each rank
  std::int32_t microbatches = 1;  ///< that each chunk runs: of one pipeline
  Topology topology = Topology::Loop;
  std::int32_t weights_in_call = 1;  ///< at most so many weight gradients are one call
  /// Under Custom the stages of each rank's chunks, ascending; else empty.
  std::vector<std::vector<std::int32_t>> stages = {};
};

/// Most tasks of a problem: numbers of tasks have 32 bits, and each takes about 50 bytes.
constexpr std::uint64_t kMostTasks = std::uint64_t{1} << 28;

struct Problem {
  Frame frame;
  std::vector<Series> series;
  std::vector<std::vector<SeriesId>> of_rank;
  double memory_limit = std::numeric_limits<double>::infinity();  ///< of each rank
  Bounds closed_forms;                                            ///< those of sim/bounds.cpp

  [[nodiscard]] std::size_t stages() const { return series.size() / 3; }
  [[nodiscard]] std::uint32_t microbatches() const {
    return static_cast<std::uint32_t>(frame.microbatches);
  }
  [[nodiscard]] std::uint32_t tasks() const {
    return static_cast<std::uint32_t>(series.size()) * microbatches();
  }
  [[nodiscard]] std::uint32_t tasks_of_rank() const {
    return 3 * static_cast<std::uint32_t>(frame.chunks) * microbatches();
  }
  /// Whether weight gradients that stand next to each other are one call.
  [[nodiscard]] bool fuses() const { return frame.weights_in_call > 1; }
  /// Whether a backward takes memory: whether any chunk recomputes and does not keep all.
  [[nodiscard]] bool remakes() const {
    return std::ranges::any_of(series, [](const Series& each) { return each.during > 0; });
  }
  /// Whether a rank may hold so much; rounding alone exceeds nothing, as in choosable().
  [[nodiscard]] bool fits(double held) const { return held <= memory_limit * (1 + 1e-9); }
};

[[nodiscard]] constexpr SeriesId series_of(std::size_t stage, Half half) {
  return static_cast<SeriesId>(3 * stage + as_index(half));
}
[[nodiscard]] constexpr Half half_of(SeriesId series) {
  return static_cast<Half>(series % 3);
}
[[nodiscard]] constexpr std::size_t stage_of(SeriesId series) {
  return series / 3;
}

/// For each rank the series whose next task comes next.
using Orders = std::vector<std::vector<SeriesId>>;

/// The error is a sentence: the frame has no such placement, or the options mean what the problem
/// does not have. `options` say costs, memory and its limit.
[[nodiscard]] Result<Problem, std::string> problem_of(const Frame& frame,
                                                      const SimulationOptions& options);

/// A schedule of the frame's placement, whose ranks have no entries.
[[nodiscard]] Schedule placed(const Frame& frame);

/// The orders as a schedule, every backward in its halves.
[[nodiscard]] Schedule schedule_of(const Problem& problem, const Orders& orders);

/// The orders of a schedule, its whole backwards taken apart into halves side by side, its
/// composites into their members one after the other. The error says in what it differs from the
/// problem's frame.
[[nodiscard]] Result<Orders, std::string> orders_of(const Problem& problem,
                                                    const Schedule& schedule);

/// The problem in which backwards take no memory: a chunk that recomputes holds what it keeps from
/// its forward on, and no more. Orders of the problem hold no less than they do there, so that
/// bounds of it are bounds.
[[nodiscard]] Problem relaxed(Problem problem);

/// The problem in which weight gradients stand directly behind their backwards: a backward takes
/// its weight gradient along, and hands its gradient on before that is done, so that the message's
/// lag is shorter by it.
[[nodiscard]] Problem with_weights_behind(Problem problem);
/// Its orders as orders of the problem that it was made of.
[[nodiscard]] Orders with_weights_behind(const Orders& orders);

}  // namespace capo::optimise

#include "optimise/windows.h"

#include "optimise/bounds.h"
#include "optimise/search.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

constexpr std::uint64_t kEnough = 1'000'000'000;

Problem stepped(const Frame& frame, const std::string& costs, std::optional<double> limit) {
  SimulationOptions options{.memory_limit = limit};
  options.costs = simulated::costs(costs);
  options.costs.per = CostPer::Rank;
  return *problem_of(frame, options);
}

bool refutes(const Problem& problem, double until) {
  std::uint64_t budget = kEnough;
  return Narrowing(problem, std::nullopt).refutes(until, budget);
}

// All sequences of a rank in which no task stands before what it waits for on the rank.
class Sequences {
 public:
  Sequences(const Problem& problem, std::size_t rank)
      : problem_(problem), of_rank_(problem.of_rank[rank]), count_(problem.series.size(), 0) {
    add();
  }
  [[nodiscard]] const std::vector<std::vector<SeriesId>>& all() const { return all_; }

 private:
  void add() {
    if (sequence_.size() == problem_.tasks_of_rank()) {
      all_.push_back(sequence_);
      return;
    }
    for (const SeriesId series : of_rank_) {
      const auto& behind = problem_.series[series].behind;
      const bool waits = std::any_of(behind.begin(), behind.end(),
                                     [&](SeriesId each) { return count_[each] <= count_[series]; });
      if (waits || count_[series] == problem_.microbatches()) continue;
      ++count_[series];
      sequence_.push_back(series);
      add();
      sequence_.pop_back();
      --count_[series];
    }
  }

  const Problem& problem_;
  const std::vector<SeriesId>& of_rank_;
  std::vector<std::uint32_t> count_;
  std::vector<SeriesId> sequence_;
  std::vector<std::vector<SeriesId>> all_;
};

// The least makespan and span of all orders that there are and that fit.
Figures optimum_of_all(const Problem& problem) {
  std::vector<Sequences> sequences;
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    sequences.emplace_back(problem, rank);
  }
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Figures best{.makespan = kNone, .span = kNone};
  std::vector<std::size_t> at(sequences.size(), 0);
  for (std::size_t rank = 0; rank < at.size();) {
    Orders orders;
    for (std::size_t each = 0; each < at.size(); ++each) {
      orders.push_back(sequences[each].all()[at[each]]);
    }
    const auto figures = evaluate(problem, orders);
    if (figures && fits(problem, *figures)) {
      best.makespan = std::min(best.makespan, figures->makespan);
      best.span = std::min(best.span, figures->span);
    }
    // Counts up, the first rank the fastest.
    for (rank = 0; rank < at.size() && ++at[rank] == sequences[rank].all().size(); ++rank) {
      at[rank] = 0;
    }
  }
  return best;
}

TEST(Narrowing, RefutesWhatIsBelowAnOptimumOfManyRanksAndNotTheOptimum) {
  // Proved by an exhaustive search; no closed form and no rule of one machine gets above 273.
  const Problem problem =
      stepped({.ranks = 4, .chunks = 2, .microbatches = 8, .topology = Topology::V},
              "f=10,b=16,w=4,comm=1", 4);
  EXPECT_TRUE(refutes(problem, 285));
  EXPECT_FALSE(refutes(problem, 286));
}

TEST(Narrowing, KnowsWhatMemoryLeavesTimeFor) {
  // One microbatch at a time on a single rank: any other time is as good.
  const Problem problem = stepped({.ranks = 1, .microbatches = 3}, "f=1,b=2,w=1", 1);
  EXPECT_TRUE(refutes(problem, 11.9));
  EXPECT_FALSE(refutes(problem, 12));
}

TEST(Narrowing, RefutesMoreByHalves) {
  // 427 was proved to be the optimum by an integer program.
  const Problem problem = stepped({.ranks = 8, .microbatches = 16}, "f=5,b=6,w=4", 4);
  Narrowing narrowing(problem, std::nullopt);
  std::uint64_t budget = kEnough;
  EXPECT_FALSE(narrowing.refutes(426, budget));
  EXPECT_TRUE(narrowing.refutes_by_halves(426, budget));
  EXPECT_FALSE(narrowing.refutes_by_halves(427, budget));
}

TEST(Narrowing, GivesUpWithoutABudgetAndForChunksThatDiffer) {
  const Frame frame{.ranks = 4, .chunks = 2, .microbatches = 8, .topology = Topology::V};
  const Problem problem = stepped(frame, "f=10,b=16,w=4,comm=1", 4);
  Narrowing narrowing(problem, std::nullopt);
  std::uint64_t budget = narrowing.states() - 1;
  EXPECT_FALSE(narrowing.refutes(285, budget));
  budget = kEnough;
  EXPECT_TRUE(narrowing.refutes(285, budget));
  EXPECT_LE(budget, kEnough - narrowing.states());

  SimulationOptions options{.memory_limit = 4};
  options.costs.set(
      {.scope = {.rank = -1, .chunk = 1}, .key = CostSetting::Key::Forward, .value = 3});
  const Problem uneven = *problem_of(frame, options);
  EXPECT_EQ(Narrowing(uneven, std::nullopt).states(), 0);
}

TEST(Narrowing, BoundsAreNotAboveTheBestOfAllOrders) {
  std::mt19937 engine(11);
  int met = 0;
  int compared = 0;
  while (compared < 150) {
    Problem problem = problem_by_chance(engine);
    const Frame& frame = problem.frame;
    const int size = frame.ranks * frame.microbatches;
    if (size > 6 || frame.chunks * frame.microbatches > 3 || (frame.chunks > 1 && size > 2)) {
      continue;
    }
    // From what one microbatch needs to what all need.
    double most = 0;
    double least = 0;
    for (const auto& rank : problem.of_rank) {
      double each = 0;
      for (const SeriesId series : rank) each += std::max(0.0, problem.series[series].holds);
      least = std::max(least, each);
      most = std::max(most, each * problem.microbatches());
    }
    problem.memory_limit = least + (most - least) * 0.5 * below(engine, 3);
    const Figures best = optimum_of_all(problem);
    const LowerBounds bounds = lower_bounds(problem);
    SCOPED_TRACE(fmt::format("{} ranks, {} chunks, {} microbatches, memory {}", frame.ranks,
                             frame.chunks, frame.microbatches, problem.memory_limit));
    ASSERT_LE(bounds.makespan.value, best.makespan) << bounds.makespan.by;
    ASSERT_LE(bounds.span.value, best.span) << bounds.span.by;
    ++compared;
    if (reaches(best.makespan, bounds.makespan.value)) ++met;
  }
  fmt::print("{} of {} optima are the bound\n", met, compared);
  EXPECT_GE(met, 140);
}

// A search finds no optimum of larger steps, but comes close to it, whatever the memory.
TEST(Narrowing, BoundsAreNotAboveWhatASearchFinds) {
  std::mt19937 engine(5);
  for (int round = 0; round < 60; ++round) {
    Problem problem = problem_by_chance(engine);
    double least = 0;
    for (const auto& rank : problem.of_rank) {
      double each = 0;
      for (const SeriesId series : rank) each += std::max(0.0, problem.series[series].holds);
      least = std::max(least, each);
    }
    problem.memory_limit = least * (1 + below(engine, 4) * 0.5);
    const LowerBounds bounds = lower_bounds(problem);
    for (const auto objective : {Objective::Makespan, Objective::Span}) {
      const auto& bound = objective == Objective::Makespan ? bounds.makespan : bounds.span;
      const auto found = search(
          problem, [] { return std::vector<Start>{}; },
          {.objective = objective, .bound = bound.value, .moves = 200'000}, [](const Found&) {});
      ASSERT_TRUE(found.has_value());
      ASSERT_LE(bound.value, value_of(found->figures, objective)) << bound.by << " in " << round;
    }
  }
}

// A checker that narrows by itself shows no more than all of narrowing does.
TEST(Narrowing, FromNothingShowsWhatACheckerFindsAgain) {
  const Problem problem =
      stepped({.ranks = 4, .chunks = 2, .microbatches = 8, .topology = Topology::V},
              "f=10,b=16,w=4,comm=1", 3);
  const LowerBounds bounds = lower_bounds(problem);
  ASSERT_EQ(bounds.makespan.by, "narrowing");
  const auto refuted = refuted_plainly(problem, std::nullopt, 290);
  ASSERT_TRUE(refuted.has_value());
  EXPECT_EQ(refuted->unit, 1);
  EXPECT_EQ(refuted->units, 312U);
  EXPECT_EQ(refuted->bound(), 313);
  EXPECT_LE(refuted->bound(), bounds.makespan.value * (1 + 1e-9));
  EXPECT_FALSE(refuted_plainly(problem, std::nullopt, 313).has_value());
  // Times that are no decimals of six places have no unit.
  const Problem odd = stepped({.ranks = 4, .chunks = 2, .microbatches = 8, .topology = Topology::V},
                              "f=10,b=16,w=4,comm=1.00000003", 3);
  EXPECT_FALSE(refuted_plainly(odd, std::nullopt, 290).has_value());
}

}  // namespace
}  // namespace capo::optimise

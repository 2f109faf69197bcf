#include "optimise/search.h"

#include "optimise/bounds.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

std::vector<Start> no_starts() {
  return {};
}

void nobody_listens(const Found& /*found*/) {
}

SearchOptions options_for(const Problem& problem, Objective objective) {
  const LowerBounds bounds = lower_bounds(problem, 300'000);
  return {.objective = objective,
          .bound = objective == Objective::Makespan ? bounds.makespan.value : bounds.span.value,
          .moves = 500'000};
}

// From rules alone; the verifier and the simulator agree with what is found.
TEST(Search, MeetsProvenOptima) {
  int met = 0;
  for (const auto& row : golden::published_rows("optimum")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const bool of_span = row.at("objective") == "span";
    const auto objective = of_span ? Objective::Span : Objective::Makespan;
    const Problem problem = problem_of_row(row);
    const auto found = search(problem, no_starts, options_for(problem, objective), nobody_listens);
    ASSERT_TRUE(found.has_value());
    (void)verified(problem, found->orders, found->figures, golden::options_of(row));
    const double value = value_of(found->figures, objective);
    const auto optimum = row.at(of_span ? "span" : "makespan").get<double>();
    EXPECT_GE(value, optimum * (1 - 1e-12));
    if (golden::equal(value, optimum)) ++met;
    if (found->ended == Ended::Proof) {
      EXPECT_TRUE(golden::equal(value, optimum));
    }
  }
  fmt::print("{} of 218 optima are met\n", met);
  EXPECT_GE(met, 217);
}

TEST(Search, IsAFunctionOfSeedAndMovesAndNotOfThreads) {
  const auto& rows = golden::published_rows("schedule");
  const Problem problem = problem_of_row(rows.front());
  SearchOptions options{.seed = 3, .moves = 400'000};
  const auto one = search(problem, no_starts, options, nobody_listens);
  options.threads = 4;
  const auto four = search(problem, no_starts, options, nobody_listens);
  ASSERT_TRUE(one && four);
  EXPECT_EQ(one->orders, four->orders);
  EXPECT_EQ(one->moves, four->moves);
  EXPECT_EQ(one->ended, Ended::Budget);
}

TEST(Search, IsNeverWorseThanItsStarts) {
  for (const auto& row : golden::published_rows("schedule")) {
    if (row.at("p").get<int>() > 4 || row.value("overlap_factor", 1.0) != 1) continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    Problem problem = problem_of_row(row);
    const auto schedule = schedules::schedule_named(golden::request_of(row));
    const auto orders = orders_of(problem, *schedule);
    const Figures figures = *evaluate(problem, *orders);
    problem.memory_limit = figures.highest_peak();
    SearchOptions options = options_for(problem, Objective::Makespan);
    options.moves = 1;
    const auto found = search(
        problem, [&] { return std::vector<Start>{{.name = "start", .orders = *orders}}; }, options,
        nobody_listens);
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->figures.makespan, figures.makespan);
    EXPECT_TRUE(fits(problem, found->figures));
  }
}

// Bounds and shifts leave a gap here that all orders close. Under two pipelines, with uneven ranks.
TEST(Search, ProvesSmallProblemsByAllOrders) {
  SimulationOptions costs{.memory_limit = 2};
  costs.costs = simulated::costs("f=5,b=8,w=2,comm=1");
  const Problem problem = *problem_of(
      {.ranks = 3, .chunks = 2, .microbatches = 2, .topology = Topology::Bidirectional}, costs);
  SearchOptions options = options_for(problem, Objective::Makespan);
  const auto without = search(problem, no_starts, options, nobody_listens);
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->ended, Ended::Budget);
  EXPECT_EQ(without->nodes, 0U);

  options.exhaustive_tasks = problem.tasks();
  const auto proved = search(problem, no_starts, options, nobody_listens);
  ASSERT_TRUE(proved.has_value());
  EXPECT_EQ(proved->ended, Ended::Proof);
  EXPECT_GT(proved->nodes, 0U);
  EXPECT_GT(proved->figures.makespan, options.bound);
  EXPECT_LE(proved->figures.makespan, without->figures.makespan);
  (void)verified(problem, proved->orders, proved->figures, costs);

  options.exhaustive_tasks = problem.tasks() - 1;
  const auto larger = search(problem, no_starts, options, nobody_listens);
  EXPECT_EQ(larger->nodes, 0U) << "there is one task more";

  SearchOptions of_span = options_for(problem, Objective::Span);
  of_span.exhaustive_tasks = problem.tasks();
  const auto span = search(problem, no_starts, of_span, nobody_listens);
  ASSERT_TRUE(span.has_value());
  EXPECT_EQ(span->ended, Ended::Proof);
  EXPECT_GT(span->nodes, 0U);
}

TEST(Search, StopsAndTellsOfWhatIsBetter) {
  const Problem problem = problem_of_row(golden::published_rows("schedule").front());
  std::atomic<int> asked = 0;
  std::vector<double> told;
  const SearchOptions options{.moves = std::uint64_t{1} << 60,
                              .stopped = [&] { return ++asked > 2000; }};
  const auto found = search(problem, no_starts, options,
                            [&](const Found& each) { told.push_back(each.figures.makespan); });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->ended, Ended::Stopped);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), found->figures.makespan);
  EXPECT_TRUE(std::is_sorted(told.rbegin(), told.rend()));
}

TEST(Search, FindsNothingIfStoppedAtOnceOrIfNothingFits) {
  Problem problem = problem_of_row(golden::published_rows("schedule").front());
  EXPECT_FALSE(search(problem, no_starts, {.stopped = [] { return true; }}, nobody_listens));
  problem.memory_limit = 0.1;
  EXPECT_FALSE(search(problem, no_starts, {}, nobody_listens));
}

TEST(Verified, BelievesNoOtherTimes) {
  const auto& row = golden::published_rows("optimum").front();
  const Problem problem = problem_of_row(row);
  const Orders orders = *construct(problem, {});
  Figures figures = *evaluate(problem, orders);
  const auto options = golden::options_of(row);
  EXPECT_EQ(verified(problem, orders, figures, options).ranks.size(), orders.size());
  figures.makespan += 1e-9;
  EXPECT_THROW((void)verified(problem, orders, figures, options), InternalError);
}

}  // namespace
}  // namespace capo::optimise

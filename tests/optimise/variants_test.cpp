#include "optimise/variants.h"

#include "optimise/exhaustive.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

std::vector<Start> without_starts(const Problem& /*problem*/, const SimulationOptions& /*of*/) {
  return {};
}

void hear_nothing(const Found& /*found*/) {
}

Variants variants_for(const Frame& frame, const SimulationOptions& options) {
  Variants all{.frame = frame, .options = options, .named = {}, .starts_of = without_starts};
  all.named.push_back(with_placement(frame, [&] {
    Placement v;
    for (std::int32_t pass = 0; pass < frame.chunks; ++pass) {
      for (std::int32_t rank = 0; rank < frame.ranks; ++rank) {
        v.push_back(static_cast<std::uint32_t>(pass % 2 == 0 ? rank : frame.ranks - 1 - rank));
      }
    }
    return v;
  }()));
  return all;
}

SimulationOptions options_with(std::initializer_list<const char*> costs, double memory) {
  SimulationOptions options{.memory_limit = memory};
  for (const char* text : costs) {
    const auto settings = read_costs(text);
    EXPECT_TRUE(settings.has_value());
    for (const CostSetting& setting : *settings) options.costs.set(setting);
  }
  return options;
}

// Every order of each of the six placements of two ranks with two chunks.
TEST(Variants, FindTheBestOfAllPlacements) {
  std::mt19937 engine(3);
  for (int round = 0; round < 14; ++round) {
    SimulationOptions options{.memory_limit = 1 + 0.5 * below(engine, 3)};
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      for (std::int32_t chunk = 1; chunk <= 2; ++chunk) {
        for (const auto key :
             {CostSetting::Key::Forward, CostSetting::Key::Backward, CostSetting::Key::Weight}) {
          options.costs.set({.scope = {.rank = rank, .chunk = round % 2 == 0 ? -1 : chunk},
                             .key = key,
                             .value = 1.0 + below(engine, 5)});
        }
      }
    }
    options.costs.set(
        {.scope = {}, .key = CostSetting::Key::Latency, .value = 0.5 * below(engine, 4)});
    const Frame frame{
        .ranks = 2, .chunks = 2, .microbatches = 2 + static_cast<std::int32_t>(round % 2)};
    const Problem loop = *problem_of(frame, options);
    if (why_impossible(loop)) continue;
    double least = std::numeric_limits<double>::infinity();
    const RankCosts costs = rank_costs_of(loop, options.costs);
    const auto all = all_placements(costs, 6, alike(costs));
    ASSERT_TRUE(all.has_value());
    for (const Placement& placement : *all) {
      const Problem problem = *problem_of(with_placement(frame, placement), options);
      const Orders orders = *construct(problem, {});
      const double first = evaluate(problem, orders)->makespan;
      const Exhausted best = exhaust(problem, Objective::Makespan, first, 50'000'000);
      ASSERT_TRUE(best.complete);
      least = std::min(least, best.better ? evaluate(problem, *best.better)->makespan : first);
    }
    const LowerBounds bounds = bounds_of_variants(variants_for(frame, options), 1'000'000);
    EXPECT_LE(bounds.makespan.value, least);
    const auto found = search_variants(
        variants_for(frame, options),
        {.bound = bounds.makespan.value, .moves = 40'000'000, .exhaustive_tasks = 150},
        hear_nothing);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(found->found.figures.makespan, least, 1e-9);
    EXPECT_EQ(found->found.ended, Ended::Proof);
    EXPECT_LE(found->tried, all->size());
    (void)verified(found->problem, found->found.orders, found->found.figures, options);
  }
}

// Every order of each choice of four chunks that recompute, on a V of two ranks: no bound is above
// the best of all, and what few moves find is close to it.
TEST(Variants, FindChunksToRecompute) {
  for (const double memory : {1.0, 1.7, 3.0}) {
    SimulationOptions options = options_with({"f=3,b=4,w=2,comm=1", "r1:f=2", "c2:re=1"}, memory);
    options.memory = MemoryChange{.forward = 1, .backward = 0, .weight = -1, .keep = 0.2};
    const Frame frame{.ranks = 2, .chunks = 2, .microbatches = 2, .topology = Topology::V};
    const Variants variants{.frame = frame,
                            .options = options,
                            .places = false,
                            .recomputes = true,
                            .named = {},
                            .starts_of = without_starts};
    double least = std::numeric_limits<double>::infinity();
    for (int subset = 0; subset < 16; ++subset) {
      SimulationOptions of = options;
      for (int at = 0; at < 4; ++at) {
        if ((subset >> at) % 2 == 0) continue;
        of.costs.recomputed.scopes.push_back({.rank = at / 2, .chunk = at % 2 + 1});
      }
      const Problem problem = *problem_of(frame, of);
      if (why_impossible(problem)) continue;
      const Orders orders = *construct(problem, {});
      const double first = evaluate(problem, orders)->makespan;
      const Exhausted best = exhaust(problem, Objective::Makespan, first, 50'000'000);
      ASSERT_TRUE(best.complete);
      least = std::min(least, best.better ? evaluate(problem, *best.better)->makespan : first);
    }
    const LowerBounds bounds = bounds_of_variants(variants, 1'000'000);
    EXPECT_LE(bounds.makespan.value, least);
    EXPECT_LE(bounds_of_variants(variants).makespan.value, least) << "of none one by one";
    const auto found = search_variants(
        variants, {.bound = bounds.makespan.value, .moves = 4'000'000, .exhaustive_tasks = 150},
        hear_nothing);
    ASSERT_TRUE(found.has_value());
    EXPECT_GE(found->found.figures.makespan, least * (1 - 1e-9));
    EXPECT_LE(found->found.figures.makespan, least * 1.02);
    EXPECT_EQ(found->options.costs.recomputed.any(), memory < 3) << memory;
    (void)verified(found->problem, found->found.orders, found->found.figures, found->options);
  }
}

TEST(Variants, AreTheSameWhateverTheNumberOfThreads) {
  const SimulationOptions options =
      options_with({"f=5,b=6,w=4,comm=2", "r1:f=8", "r3:b=9", "r0-r1:comm=6"}, 2);
  const Frame frame{.ranks = 5, .chunks = 2, .microbatches = 8};
  Variants variants = variants_for(frame, options);
  variants.recomputes = true;
  SearchOptions how{.seed = 4, .moves = 1'500'000};
  const auto one = search_variants(variants, how, hear_nothing);
  how.threads = 3;
  const auto three = search_variants(variants, how, hear_nothing);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->found.orders, three->found.orders);
  EXPECT_EQ(placement_of(one->problem.frame), placement_of(three->problem.frame));
  EXPECT_EQ(one->options.costs.recomputed, three->options.costs.recomputed);
  EXPECT_EQ(one->found.moves, three->found.moves);
  EXPECT_EQ(one->tried, three->tried);
  EXPECT_EQ(one->found.ended, Ended::Budget);
  EXPECT_GT(one->tried, 20U);
}

// Both named placements cross two slow links, which other orders of the ranks do not.
TEST(Variants, FindWhatIsBetterThanLoopAndV) {
  SimulationOptions options =
      options_with({"f=5,b=6,w=4,comm=1", "r0-r1:comm=15", "r2-r3:comm=15"}, 2.5);
  options.costs.per = CostPer::Rank;
  const Frame frame{.ranks = 4, .chunks = 2, .microbatches = 12};
  const Variants variants = variants_for(frame, options);
  double named = std::numeric_limits<double>::infinity();
  for (const Frame& each : {frame, variants.named.front()}) {
    const Problem problem = *problem_of(each, options);
    const auto found = search(
        problem, [] { return std::vector<Start>(); }, {.moves = 1'000'000}, hear_nothing);
    named = std::min(named, found->figures.makespan);
  }
  std::vector<double> told;
  const auto found = search_variants(variants, {.moves = 1'500'000}, [&](const Found& each) {
    told.push_back(each.figures.makespan);
  });
  ASSERT_TRUE(found.has_value());
  EXPECT_LT(found->found.figures.makespan, named);
  EXPECT_EQ(found->problem.frame.topology, Topology::Custom);
  EXPECT_TRUE(std::is_sorted(told.rbegin(), told.rend()));
  EXPECT_EQ(told.back(), found->found.figures.makespan);
}

TEST(Variants, MakeTheBestOfShorterStepsLonger) {
  const SimulationOptions options = options_with({"f=5,b=6,w=4,comm=2", "r0-r1:comm=20"}, 2);
  const Frame frame{.ranks = 4, .chunks = 2, .microbatches = 1000};
  const auto found =
      search_variants(variants_for(frame, options), {.moves = 1'000'000}, hear_nothing);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->problem.frame.microbatches, 1000);
  (void)verified(found->problem, found->found.orders, found->found.figures, options);
}

// A V from the last rank to the first and back is the one that is named but for its ranks.
TEST(Variants, BeginWithStartsOfRanksThatAreAlike) {
  const SimulationOptions options = options_with({"f=5,b=6,w=4,comm=2"}, 8);
  const Frame frame{.ranks = 3, .chunks = 2, .microbatches = 4};
  Variants variants = variants_for(frame, options);
  const Placement other{2, 1, 0, 0, 1, 2};
  variants.named.push_back(with_placement(frame, other));
  const Problem problem = *problem_of(variants.named.back(), options);
  const auto own = search(
      problem, [] { return std::vector<Start>(); }, {.moves = 3'000'000}, hear_nothing);
  ASSERT_TRUE(own.has_value());
  bool asked = false;
  variants.starts_of = [&](const Problem& of, const SimulationOptions& /*with*/) {
    if (placement_of(of.frame) != other) return std::vector<Start>();
    asked = true;
    return std::vector<Start>{{.name = "mine", .orders = own->orders, .figures = {}}};
  };
  const auto found = search_variants(variants, {.moves = 1}, hear_nothing);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(asked);
  EXPECT_LE(found->found.figures.makespan, own->figures.makespan);
}

TEST(Variants, StopAndKeepWhatTheyHave) {
  const SimulationOptions options = options_with({"f=5,b=6,w=4,comm=2"}, 2);
  const Variants variants = variants_for({.ranks = 6, .chunks = 2, .microbatches = 12}, options);
  std::atomic<int> asked = 0;
  const auto found = search_variants(
      variants, {.moves = std::uint64_t{1} << 60, .stopped = [&] { return ++asked > 3000; }},
      hear_nothing);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->found.ended, Ended::Stopped);
  const auto none =
      search_variants(variants, {.moves = 1, .stopped = [] { return true; }}, hear_nothing);
  EXPECT_FALSE(none.has_value());
}

}  // namespace
}  // namespace capo::optimise

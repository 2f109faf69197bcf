#include "optimise/rounds.h"

#include "core/order/input.h"
#include "optimise/evaluation.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <string>

namespace capo::optimise {
namespace {

/// A published schedule on four ranks and what it costs.
struct Published {
  std::string name;
  Frame frame;
  SimulationOptions options;
  std::optional<std::int32_t> group = std::nullopt;

  [[nodiscard]] Schedule of(std::int32_t microbatches) const {
    return *schedules::schedule_named({.name = name,
                                       .ranks = frame.ranks,
                                       .microbatches = microbatches,
                                       .chunks = frame.chunks,
                                       .group = group});
  }
  [[nodiscard]] Problem problem(std::int32_t microbatches) const {
    Frame with = frame;
    with.microbatches = microbatches / (frame.topology == Topology::Bidirectional ? 2 : 1);
    return *problem_of(with, options);
  }
  [[nodiscard]] Orders orders(std::int32_t microbatches) const {
    return *orders_of(problem(microbatches), of(microbatches));
  }
  [[nodiscard]] Figures figures(std::int32_t microbatches) const {
    return *evaluate(problem(microbatches), orders(microbatches));
  }
  [[nodiscard]] TimedOrders timed(std::int32_t microbatches) const {
    return timed_orders(problem(microbatches), orders(microbatches));
  }
  /// Rounds have 16 microbatches.
  [[nodiscard]] std::optional<double> later() const {
    return later_by_round(timed(3 * 16 + 5), timed(4 * 16 + 5), timed(6 * 16 + 5));
  }
};

Published on_four_ranks(const std::string& name, const std::string& costs, Topology topology,
                        std::int32_t chunks) {
  Published published{
      .name = name, .frame = {.ranks = 4, .chunks = chunks, .topology = topology}, .options = {}};
  published.options.costs = simulated::costs(costs);
  return published;
}

// All those that are functions of the counts and whose orders repeat themselves. With the five
// microbatches that are left over those by groups have other counts than rounds.
TEST(Rounds, OfPublishedSchedulesTellWhatAllFurtherOnesComeTo) {
  struct Row {
    std::string name;
    Topology topology;
    std::int32_t chunks;
  };
  for (const Row& row : {Row{"1f1b", Topology::Loop, 1}, Row{"zb-h1", Topology::Loop, 1},
                         Row{"zb-h2", Topology::Loop, 1}, Row{"gis", Topology::Loop, 2},
                         Row{"gis", Topology::Loop, 3}, Row{"1f1b-v", Topology::V, 2},
                         Row{"v-half", Topology::V, 2}, Row{"v-min", Topology::V, 2}}) {
    for (const char* costs : {"f=3,b=4,w=2,comm=1", "f=1", "f=2.9,b=3.3,w=1.7,comm=0.7"}) {
      SCOPED_TRACE(row.name + " " + std::to_string(row.chunks) + " " + costs);
      Published published = on_four_ranks(row.name, costs, row.topology, row.chunks);
      const bool by_groups = row.name == "gis";
      const auto microbatches = [&](int rounds) { return rounds * 16 + (by_groups ? 4 : 5); };
      const auto later =
          later_by_round(published.timed(microbatches(3)), published.timed(microbatches(4)),
                         published.timed(microbatches(6)));
      ASSERT_TRUE(later.has_value());
      const Figures few = published.figures(microbatches(6));
      const Figures many = published.figures(microbatches(50));
      EXPECT_NEAR(few.makespan + 44 * *later, many.makespan, 1e-9 * many.makespan);
      EXPECT_NEAR(few.span + 44 * *later, many.span, 1e-9 * many.span);
      EXPECT_EQ(few.peaks, many.peaks);
    }
  }
}

TEST(Rounds, OfSimulatedTasksTellAsMuch) {
  Published published = on_four_ranks("dualpipe", "f=3,b=4,w=2,comm=1", Topology::Bidirectional, 2);
  published.options.ideal_links = true;
  const auto simulated = [&](std::int32_t microbatches, const auto& look_at) {
    const Input input{.form = Form::OrderFile, .schedule = published.of(microbatches)};
    const auto simulation = simulation_of(input, published.options);
    ASSERT_TRUE(simulation.has_value());
    look_at(**simulation);
  };
  std::vector<TimedOrders> rounds;
  double few = 0;
  double many = 0;
  for (const int count : {3, 4, 6}) {
    simulated(16 * count, [&](const Simulation& simulation) {
      rounds.push_back(timed_orders(simulation));
      few = simulation.makespan();
    });
  }
  simulated(16 * 30, [&](const Simulation& simulation) { many = simulation.makespan(); });
  ASSERT_EQ(rounds.size(), 3U);
  const auto later = later_by_round(rounds[0], rounds[1], rounds[2]);
  ASSERT_TRUE(later.has_value());
  EXPECT_NEAR(few + 24 * *later, many, 1e-9 * many);
}

// Rank 0 takes a hair longer than the others, which have a lead at first: for very many rounds the
// makespan is that of the others, and grows evenly, and then it is rank 0's.
TEST(Rounds, TellNothingAsLongAsAnyRankFallsBehind) {
  Published published = on_four_ranks("zb-h2", "f=3,b=4,w=2,comm=1", Topology::Loop, 1);
  published.options.costs.set(
      {.scope = {.rank = 0}, .key = CostSetting::Key::Forward, .value = 3.01});
  const double two = published.figures(2 * 16).makespan;
  const double four = published.figures(4 * 16).makespan;
  const double eight = published.figures(8 * 16).makespan;
  ASSERT_NEAR(eight - four, 2 * (four - two), 1e-9);
  const double many = published.figures(3200).makespan;
  EXPECT_GT(many, eight + (200 - 8) * (eight - four) / 4 + 1);
  EXPECT_FALSE(published.later().has_value());
}

TEST(Rounds, TellNothingWhereNoPieceIsPutInAgain) {
  EXPECT_FALSE(on_four_ranks("gpipe", "f=3,b=4,w=2,comm=1", Topology::Loop, 1).later().has_value());
  EXPECT_FALSE(
      on_four_ranks("looped-bfs", "f=3,b=4,w=2,comm=1", Topology::Loop, 2).later().has_value());
}

// Orders of which one rank's differ in one place.
TEST(Rounds, TellNothingOfOrdersThatDifferAnywhere) {
  const Published published = on_four_ranks("1f1b", "f=3,b=4,w=2,comm=1", Topology::Loop, 1);
  const TimedOrders few = published.timed(48);
  const TimedOrders more = published.timed(64);
  const TimedOrders most = published.timed(96);
  ASSERT_TRUE(later_by_round(few, more, most).has_value());
  EXPECT_FALSE(later_by_round(more, few, most).has_value());
  EXPECT_FALSE(later_by_round(few, more, published.timed(97)).has_value());
  for (std::size_t i = 0; i < most[2].size(); ++i) {
    TimedOrders other = most;
    other[2][i].what += 3;
    EXPECT_FALSE(later_by_round(few, more, other).has_value()) << i;
  }
  for (std::size_t i = 0; i < few[2].size(); ++i) {
    TimedOrders other = few;
    ++other[2][i].microbatch;
    EXPECT_FALSE(later_by_round(other, more, most).has_value()) << i;
  }
  // The times that are looked at are those of the round before the cut, of every rank.
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    std::size_t looked_at = 0;
    for (std::size_t i = 0; i < few[rank].size(); ++i) {
      TimedOrders other = few;
      other[rank][i].end += 0.5;
      looked_at += later_by_round(other, more, most).has_value() ? 0 : 1;
    }
    EXPECT_EQ(looked_at, 3U * 16U) << rank;
  }
}

}  // namespace
}  // namespace capo::optimise

#include <capo/testing/generators/arbitrary_schedule.h>

#include <capo/testing/representable.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <set>

namespace capo::testing {
namespace {

TEST(ArbitrarySchedule, KeepsTheInvariantsAndSoDoesWhatItShrinksTo) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_schedule(), 100)) {
    EXPECT_EQ(unrepresentable(shrinkable.value()).value_or(""), "");
    auto shrinks = shrinkable.shrinks();
    for (auto smaller = shrinks.next(); smaller; smaller = shrinks.next()) {
      EXPECT_EQ(unrepresentable(smaller->value()).value_or(""), "")
          << rc::toString(smaller->value());
    }
  }
}

TEST(ArbitrarySchedule, HasEverythingThatASchedulesCanHave) {
  std::set<Topology> topologies;
  std::set<Naming> namings;
  std::set<Kind> kinds;
  std::set<Group> groups;
  std::set<Layers::Form> layers;
  std::set<Delay> delays;
  std::set<std::size_t> ranks;
  bool replay = false;
  bool unknown_chunk = false;
  bool nothing_declared = false;
  for (const Schedule& schedule : sample(arbitrary_schedule(), 500)) {
    topologies.insert(schedule.topology);
    namings.insert(schedule.naming);
    ranks.insert(schedule.ranks.size());
    nothing_declared = nothing_declared || (!schedule.microbatches && !schedule.stages);
    for (const RankOrder& rank : schedule.ranks) {
      replay = replay || rank.replay.has_value();
      layers.insert(rank.layers.form);
      if (rank.delay) delays.insert(rank.delay->begin(), rank.delay->end());
      for (const Entry& entry : rank.order) {
        kinds.insert(entry.kind);
        groups.insert(entry.group);
        unknown_chunk = unknown_chunk || entry.chunk > rank.chunks;
      }
    }
  }
  EXPECT_EQ(topologies.size(), 6u);
  EXPECT_EQ(namings.size(), 2u);
  EXPECT_EQ(ranks, (std::set<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(kinds.size(), static_cast<std::size_t>(Kind::Idle) + 1);
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_EQ(layers.size(), 4u);
  EXPECT_EQ(delays.size(), 3u);
  EXPECT_TRUE(replay && unknown_chunk && nothing_declared);
}

TEST(ArbitrarySchedule, ShrinksToOneEmptyRank) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_schedule(), 50)) {
    EXPECT_EQ(rc::toString(shrink_path(shrinkable).back()), "capo 1\nranks 1\nrank 0:\n");
  }
}

}  // namespace
}  // namespace capo::testing

#include <capo/testing/generators/sound_schedule.h>

#include <capo/core/rules/check.h>
#include <capo/testing/representable.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <set>

namespace capo::testing {
namespace {

bool accepted(const Schedule& schedule) {
  return check({.form = Form::OrderFile, .schedule = schedule}).verdict == Verdict::Accepted;
}

TEST(SoundSchedule, IsAcceptedAndSoIsWhatItShrinksTo) {
  for (const auto& shrinkable : sample_shrinkables(sound_schedule(), 100)) {
    EXPECT_TRUE(accepted(shrinkable.value())) << rc::toString(shrinkable.value());
    EXPECT_FALSE(unrepresentable(shrinkable.value()));
    auto shrinks = shrinkable.shrinks();
    for (auto smaller = shrinks.next(); smaller; smaller = shrinks.next()) {
      EXPECT_TRUE(accepted(smaller->value())) << rc::toString(smaller->value());
    }
  }
}

TEST(SoundSchedule, HasEveryTopologyNamingDelayAndSomeReplays) {
  std::set<Topology> topologies;
  std::set<Naming> namings;
  std::set<Delay> delays;
  std::set<Layers::Form> layers;
  std::size_t replays = 0;
  for (const Schedule& schedule : sample(sound_schedule(), 300)) {
    topologies.insert(schedule.topology);
    namings.insert(schedule.naming);
    for (const RankOrder& rank : schedule.ranks) {
      delays.insert(rank.delay->begin(), rank.delay->end());
      layers.insert(rank.layers.form);
      replays += rank.replay ? 1u : 0u;
    }
  }
  EXPECT_EQ(topologies.size(), 5u);
  EXPECT_EQ(namings.size(), 2u);
  EXPECT_EQ(delays.size(), 3u);
  EXPECT_EQ(layers.size(), 4u);
  EXPECT_GT(replays, 50u);
}

// First in, first out is one way among many; where microbatches are named the others occur.
TEST(SoundSchedule, RunsNamedMicrobatchesInAnyOrder) {
  bool out_of_turn = false;
  for (const Schedule& schedule : sample(sound_named_schedule(), 100)) {
    EXPECT_EQ(schedule.naming, Naming::Named);
    for (const RankOrder& rank : schedule.ranks) {
      EXPECT_FALSE(rank.replay);
      for (const Entry& entry : rank.order) {
        if (entry.kind != Kind::Forward || entry.chunk != 1) continue;
        out_of_turn = out_of_turn || entry.microbatch != 0;
        break;
      }
    }
  }
  EXPECT_TRUE(out_of_turn);
}

TEST(SoundSchedule, ShrinksToOneRankAndOneMicrobatch) {
  for (const auto& shrinkable : sample_shrinkables(sound_schedule(), 50)) {
    const Schedule smallest = shrink_path(shrinkable).back();
    EXPECT_EQ(smallest.ranks.size(), 1u);
    EXPECT_EQ(smallest.microbatches, 1);
    EXPECT_EQ(smallest.topology, Topology::Chain);
  }
}

}  // namespace
}  // namespace capo::testing

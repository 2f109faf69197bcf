#include "testing/generators/sound_schedule.h"

#include "core/rules/check.h"
#include "testing/generators/topology.h"
#include "testing/representable.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

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

TEST(SoundSchedule, IsOfEverySizeTopologyAndNamingAsOftenAsItClaims) {
  const auto schedules = sample(sound_schedule(), 2000);
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return one.topology; }),
                       std::vector(kOnePipeline.begin(), kOnePipeline.end())));
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return one.ranks.size(); }),
                       numbers<std::size_t>(1, 4)));
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return *one.microbatches; }),
                       numbers(1, 4)));
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return one.ranks[0].chunks; }),
                       numbers(1, 3)));
  const auto named = [](const Schedule& one) { return one.naming == Naming::Named; };
  EXPECT_TRUE(is_share(count_of(schedules, named), schedules.size(), 2.0 / 3));
  std::vector<bool> stages;
  for (const Schedule& one : schedules) {
    if (one.topology == Topology::Independent) {
      EXPECT_FALSE(one.stages);
    } else {
      stages.push_back(one.stages.has_value());
    }
  }
  EXPECT_TRUE(are_even(stages, {false, true}));
}

TEST(SoundSchedule, DeclaresDelaysLayersAndReplaysAsOftenAsItClaims) {
  std::vector<Delay> named;
  std::vector<Delay> counted;
  std::vector<Layers::Form> layers;
  std::vector<std::int64_t> layer_counts;
  std::size_t replays = 0;
  std::size_t ranks = 0;
  for (const Schedule& schedule : sample(sound_schedule(), 2000)) {
    auto& delays = schedule.naming == Naming::Named ? named : counted;
    for (const RankOrder& rank : schedule.ranks) {
      ++ranks;
      delays.insert(delays.end(), rank.delay->begin(), rank.delay->end());
      if (rank.layers.form != Layers::Form::Unstated) layers.push_back(rank.layers.form);
      layer_counts.insert(layer_counts.end(), rank.layers.values.begin(), rank.layers.values.end());
      replays += rank.replay ? 1 : 0;
    }
  }
  EXPECT_TRUE(are_even(named, {Delay::Never, Delay::Always, Delay::Mixed}));
  EXPECT_TRUE(are_even(counted, {Delay::Never, Delay::Always}));
  EXPECT_TRUE(is_share(layers.size(), ranks, 1.0 / 3));
  EXPECT_TRUE(are_even(layers, {Layers::Form::Null, Layers::Form::Count, Layers::Form::List}));
  EXPECT_TRUE(are_even(layer_counts, numbers<std::int64_t>(1, 3)));
  EXPECT_TRUE(is_share(replays, ranks, 1.0 / 4));
}

// A rank whose chunks are not wired may still run an action of every microbatch of a chunk that has
// not run to its end.
std::size_t choices(const std::vector<Entry>& order, std::size_t from) {
  std::set<std::pair<std::int32_t, std::int32_t>> left;
  for (std::size_t at = from; at < order.size(); ++at) {
    if (order[at].kind != Kind::Idle) left.emplace(order[at].chunk, order[at].microbatch);
  }
  return left.size();
}

TEST(SoundSchedule, SplitsIdlesAndComposesAsOftenAsItClaims) {
  std::vector<bool> split;     // only backwards of a mixed chunk
  std::vector<bool> idle;      // before an action that is drawn
  std::vector<bool> composed;  // only entries that two others could have joined
  std::vector<bool> of_three;
  for (const Schedule& schedule : sample(sound_named_schedule(), 3000)) {
    for (const RankOrder& rank : schedule.ranks) {
      const auto& order = rank.order;
      for (std::size_t at = 0; at < order.size(); ++at) {
        const Entry& entry = order[at];
        if (entry.kind == Kind::Idle) continue;
        if ((entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput) &&
            (*rank.delay)[static_cast<std::size_t>(entry.chunk) - 1] == Delay::Mixed)
          split.push_back(entry.kind == Kind::BackwardInput);
        if (entry.group == Group::Continues) continue;
        idle.push_back(at > 0 && order[at - 1].kind == Kind::Idle);
        if (schedule.topology != Topology::Independent || choices(order, at) < 3) continue;
        composed.push_back(entry.group == Group::Opens);
        if (composed.back()) of_three.push_back(order[at + 2].group == Group::Continues);
      }
    }
  }
  const auto is = [](bool it) { return it; };
  EXPECT_TRUE(are_even(split, {false, true}));
  EXPECT_TRUE(is_share(count_of(idle, is), idle.size(), 1.0 / 10));
  EXPECT_TRUE(is_share(count_of(composed, is), composed.size(), 1.0 / 6));
  EXPECT_TRUE(are_even(of_three, {false, true}));
}

// First in, first out is one way among many; where microbatches are named each is as likely.
TEST(SoundSchedule, BeginsWithAnyOfTheNamedMicrobatchesEquallyOften) {
  std::vector<std::int32_t> first;
  for (const Schedule& schedule : sample(sound_named_schedule(), 4000)) {
    EXPECT_EQ(schedule.naming, Naming::Named);
    for (const RankOrder& rank : schedule.ranks) {
      EXPECT_FALSE(rank.replay);
      if (schedule.topology != Topology::Independent || schedule.microbatches != 3) continue;
      first.push_back(rank.order[rank.order.front().kind == Kind::Idle ? 1 : 0].microbatch);
    }
  }
  EXPECT_TRUE(are_even(first, numbers(0, 2)));
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

#include <capo/testing/generators/sound_planned.h>

#include <capo/core/rules/check.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace capo::testing {
namespace {

TEST(SoundPlanned, IsAcceptedWithBothPlansAndWithout) {
  for (Declared& one : sample(sound_planned(), 200)) {
    for (const std::optional<PlanKind> plan :
         {std::optional<PlanKind>(), std::optional(PlanKind::Te), std::optional(PlanKind::Safe)}) {
      one.options.plan.kind = plan;
      const CheckResult result =
          check({.form = Form::OrderFile, .schedule = one.schedule}, one.options);
      EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(one);
      EXPECT_TRUE(result.diagnostics.kept().empty()) << rc::toString(one);
    }
  }
}

TEST(SoundPlanned, StaysSoundAsItShrinks) {
  for (const auto& one : sample_shrinkables(sound_planned(), 50)) {
    for (const Declared& smaller : shrink_path(one)) {
      const CheckResult result =
          check({.form = Form::OrderFile, .schedule = smaller.schedule}, smaller.options);
      EXPECT_TRUE(result.diagnostics.kept().empty()) << rc::toString(smaller);
    }
  }
}

TEST(SoundPlanned, ReadsTheSharedBuffersAndKnowsTheirSizes) {
  for (const Declared& one : sample(sound_planned(), 20)) {
    const BufferTable table(one.schedule, *one.schedule.microbatches, one.options.modules,
                            one.options.plan);
    EXPECT_TRUE(table.sized());
    EXPECT_TRUE(table.aliases_declared());
    for (const LayerFacts& facts : table.facts_of(0)) {
      EXPECT_EQ(facts.aliases, (Aliases{true, true}));
      EXPECT_EQ(facts.input_key, table.facts_of(0).front().input_key);
      EXPECT_EQ(facts.output_key, table.facts_of(0).front().output_key);
    }
  }
}

TEST(SoundPlanned, ComesWiredAndUnwiredDelayedAndWhole) {
  std::set<Topology> topologies;
  std::set<Delay> delays;
  std::set<std::size_t> ranks;
  for (const Declared& one : sample(sound_planned(), 200)) {
    topologies.insert(one.schedule.topology);
    ranks.insert(one.schedule.ranks.size());
    for (const RankOrder& rank : one.schedule.ranks)
      delays.insert(rank.delay->begin(), rank.delay->end());
  }
  EXPECT_EQ(topologies, (std::set{Topology::Chain, Topology::Independent}));
  EXPECT_EQ(delays, (std::set{Delay::Never, Delay::Always}));
  EXPECT_EQ(ranks, (std::set<std::size_t>{1, 2, 3}));
}

}  // namespace
}  // namespace capo::testing

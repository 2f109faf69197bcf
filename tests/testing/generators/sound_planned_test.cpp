#include "testing/generators/sound_planned.h"

#include "core/rules/check.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

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

TEST(SoundPlanned, ComesWiredAndUnwiredDelayedAndWholeAsOftenAsItClaims) {
  std::vector<std::int32_t> chunks;
  std::vector<std::int32_t> microbatches;
  std::vector<Topology> topologies;
  std::vector<std::size_t> ranks;  // only schedules whose chunks are not wired
  std::vector<Delay> delays;
  std::vector<Kind> seconds;  // the first of two that may come
  for (const Declared& one : sample(sound_planned(), 2000)) {
    const Schedule& schedule = one.schedule;
    chunks.push_back(schedule.ranks.front().chunks);
    microbatches.push_back(*schedule.microbatches);
    topologies.push_back(schedule.topology);
    if (schedule.topology == Topology::Chain) {
      EXPECT_EQ(schedule.ranks.size(), 1u);
    } else {
      ranks.push_back(schedule.ranks.size());
    }
    for (const RankOrder& rank : schedule.ranks) {
      EXPECT_EQ(rank.chunks, chunks.back());
      delays.insert(delays.end(), rank.delay->begin(), rank.delay->end());
      if (rank.chunks == 1 && schedule.microbatches == 2) seconds.push_back(rank.order[1].kind);
    }
  }
  EXPECT_TRUE(are_even(chunks, numbers(1, 3)));
  EXPECT_TRUE(are_even(microbatches, numbers(1, 4)));
  EXPECT_TRUE(are_even(topologies, {Topology::Chain, Topology::Independent}));
  EXPECT_TRUE(are_even(ranks, numbers<std::size_t>(1, 3)));
  EXPECT_TRUE(are_even(delays, {Delay::Never, Delay::Always}));
  EXPECT_TRUE(are_even(seconds, {Kind::Forward, Kind::Backward}));
}

}  // namespace
}  // namespace capo::testing

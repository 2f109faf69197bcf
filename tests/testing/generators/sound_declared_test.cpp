#include "testing/generators/sound_declared.h"

#include "core/rules/check.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace capo::testing {
namespace {

bool reduces(const Declared& one) {
  const auto& order = one.schedule.ranks.front().order;
  return std::any_of(order.begin(), order.end(),
                     [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
}

// The chunk's weight gradients; `chunk` from 0.
std::vector<Entry> weights_of(const Declared& one, std::size_t rank, std::size_t chunk) {
  std::vector<Entry> weights;
  for (const Entry& entry : one.schedule.ranks[rank].order) {
    if (entry.kind == Kind::BackwardWeight && entry.chunk == static_cast<std::int32_t>(chunk) + 1)
      weights.push_back(entry);
  }
  return weights;
}

TEST(SoundDeclared, LeavesAllWeightGradientsOfAChunkToTheirOwnActionsOrNone) {
  std::set<bool> split_off;
  for (const Declared& one : sample(sound_declared(), 200)) {
    for (std::size_t r = 0; r < one.schedule.ranks.size(); ++r) {
      const auto& delay = *one.schedule.ranks[r].delay;
      for (std::size_t c = 0; c < delay.size(); ++c) {
        const std::size_t weights = weights_of(one, r, c).size();
        EXPECT_TRUE(weights == 0 || weights == static_cast<std::size_t>(*one.schedule.microbatches))
            << rc::toString(one);
        if (delay[c] == Delay::Mixed) split_off.insert(weights > 0);
      }
    }
  }
  EXPECT_EQ(split_off.size(), 2u);
}

TEST(SoundDeclared, IsAcceptedWithoutAPlanAndWithCapos) {
  for (Declared& one : sample(sound_declared(), 200)) {
    for (const std::optional<PlanKind> plan :
         {std::optional<PlanKind>(), std::optional(PlanKind::Safe)}) {
      one.options.plan.kind = plan;
      const CheckResult result =
          check({.form = Form::OrderFile, .schedule = one.schedule}, one.options);
      EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(one);
    }
  }
}

TEST(SoundDeclared, IsReducedInOneOfTwoAndOfEachModuleThatFitsEquallyOften) {
  const auto all = sample(sound_declared(), 1000);
  EXPECT_TRUE(is_share(count_of(all, reduces), all.size(), 1.0 / 2));
  std::vector<std::int32_t> whole;
  std::vector<std::int32_t> delayed;
  for (const Declared& one : all) {
    EXPECT_EQ(one.options.modules.list.size(), 4u);
    for (const auto& rank : one.options.modules.layers) {
      for (const auto& chunk : rank)
        (one.options.modules.list[static_cast<std::size_t>(chunk.at(0))].flags.delay_wgrad ? delayed
                                                                                           : whole)
            .push_back(chunk.at(0));
    }
  }
  EXPECT_TRUE(are_even(delayed, {0, 1}));
  EXPECT_TRUE(are_even(whole, {2, 3}));
}

TEST(SoundDeclared, StaysSoundAsItShrinks) {
  for (const auto& one : sample_shrinkables(sound_declared(), 30)) {
    for (Declared& smaller : shrink_path(one)) {
      smaller.options.plan.kind = PlanKind::Safe;
      const CheckResult result =
          check({.form = Form::OrderFile, .schedule = smaller.schedule}, smaller.options);
      EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(smaller);
    }
  }
}

TEST(SoundDeclared, DelaysWhereItsScheduleDoes) {
  for (const Declared& one : sample(sound_declared(), 50)) {
    for (std::size_t r = 0; r < one.schedule.ranks.size(); ++r) {
      const auto& delay = *one.schedule.ranks[r].delay;
      for (std::size_t c = 0; c < delay.size(); ++c) {
        const Module* module = one.options.modules.of(static_cast<std::int32_t>(r),
                                                      static_cast<std::int32_t>(c) + 1, 0);
        ASSERT_NE(module, nullptr);
        EXPECT_EQ(module->flags.delay_wgrad, !weights_of(one, r, c).empty());
        if (delay[c] == Delay::Mixed) continue;
        EXPECT_EQ(module->flags.delay_wgrad, delay[c] == Delay::Always);
      }
    }
  }
}

}  // namespace
}  // namespace capo::testing

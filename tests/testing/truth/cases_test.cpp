// Cases are functions of seed and number; the fixed ones come first and are complete.

#include "testing/truth/cases.h"

#include "core/rules/undeclared.h"
#include "testing/faults/faults.h"
#include "testing/truth/drawn_modules.h"
#include "testing/truth/fixed_cases.h"
#include "testing/truth/paste.h"
#include "tests/testing/share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

TEST(TruthCases, AreFunctionsOfSeedAndNumber) {
  for (std::uint64_t number = 5'000; number < 5'040; ++number) {
    const TruthCase one = truth_case(3, number);
    EXPECT_EQ(paste_text(one, "host"), paste_text(truth_case(3, number), "host"));
    EXPECT_NE(paste_text(one, "host"), paste_text(truth_case(4, number), "host"));
    EXPECT_EQ(one.number, number);
    EXPECT_EQ(one.made == Made::Sound, number % 2 == 0);
  }
}

TEST(TruthCases, HaveEveryNameKindAndGranularityAmongTheFixedOnes) {
  std::set<std::string> orders;
  std::set<std::string> all;
  std::size_t count = 0;
  for (; const auto of = fixed_sound_case(count); ++count) {
    orders.insert(of->words);
    all.insert(of->words + of->module + (of->graphs == Granularity::PerStep ? " step" : ""));
  }
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(count, orders.size() * kTruthKinds.size() * 2);
  for (const char* list : {"te2376/order", "te2376/after", "te2376/fixed", "te2376/late"}) {
    EXPECT_TRUE(orders.contains(list)) << list;
  }
  EXPECT_TRUE(orders.contains("torch:DualPipeV of 2 ranks, 4 microbatches"));
  EXPECT_TRUE(fixed_faulty_case(0));
  EXPECT_EQ(truth_case(1, 0).words, truth_case(2, 0).words);
}

TEST(TruthCases, OfThePullRequestHaveEightExpertsAndEightMicrobatches) {
  for (std::size_t index = 0; index < 4 * kTruthKinds.size(); ++index) {
    const TruthCase of = *fixed_sound_case(index);
    ASSERT_TRUE(of.words.starts_with("te2376/")) << of.words;
    const auto& shape = of.declared.modules.list.front().shape;
    EXPECT_EQ(shape.groups.value_or(8), 8);
    std::int32_t last = 0;
    for (const Entry& entry : of.input.schedule.ranks.front().order) {
      last = std::max<std::int32_t>(last, entry.microbatch);
    }
    EXPECT_EQ(last, 7);
  }
}

bool is_replayed_otherwise(const TruthCase& of) {
  const auto& ranks = of.input.schedule.ranks;
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankOrder& rank) { return rank.replay.has_value(); });
}

bool is_under_te(const TruthCase& of) {
  return of.declared.plan.kind == PlanKind::Te;
}

TEST(TruthCases, AreDrawnWithTheChancesThatAreStated) {
  std::vector<TruthCase> sound;
  std::vector<TruthCase> faulty;
  for (std::uint64_t number = 100'000; number < 102'000; ++number)
    (number % 2 == 0 ? sound : faulty).push_back(truth_case(1, number));

  EXPECT_TRUE(is_share(count_of(sound, is_under_te), sound.size(), 3.0 / 6));
  const auto has_a = [](std::span<const Fault<Declared>> faults) {
    return [faults](const TruthCase& of) {
      return std::any_of(faults.begin(), faults.end(),
                         [&](const Fault<Declared>& fault) { return fault.name == of.fault; });
    };
  };
  const auto undeclared = [](const TruthCase& of) {
    return has_undeclared(of.input.schedule, of.declared.environment);
  };
  const std::size_t undeclared_faulty = count_of(faulty, undeclared);
  EXPECT_EQ(undeclared_faulty, faulty.size() / 8);
  const std::size_t others = faulty.size() - undeclared_faulty;
  EXPECT_TRUE(is_share(count_of(faulty, has_a(plan_faults())), others, 1.0 / 4));
  EXPECT_TRUE(is_share(count_of(faulty, has_a(module_faults())), others, 1.0 / 4));
  const auto drawn = count_of(faulty, [](const TruthCase& of) { return of.made == Made::Drawn; });
  EXPECT_TRUE(is_share(drawn - undeclared_faulty, others, 1.0 / 2));
  EXPECT_LT(count_of(faulty, is_under_te), faulty.size()) << "some are faults under any plan";

  const auto zipf = [](const TruthCase& of) { return of.sizes == run::SizeKind::Zipf; };
  EXPECT_TRUE(is_share(count_of(sound, zipf), sound.size(), 1.0 / 3));
  const auto one_graph = [](const TruthCase& of) { return of.graphs == Granularity::PerStep; };
  EXPECT_TRUE(is_share(count_of(sound, one_graph), sound.size(), 1.0 / 2));
  const auto whole =
      count_of(faulty, [](const TruthCase& of) { return !is_replayed_otherwise(of); });
  EXPECT_TRUE(is_share(count_of(faulty, one_graph), whole, 1.0 / 2));
}

TEST(TruthCases, LeaveUndeclaredWhatOrdersAreRunUnderEachValueOf) {
  std::map<std::string, std::size_t> values;
  std::size_t sound = 0;
  for (std::uint64_t number = 100'000; number < 108'000; ++number) {
    if (number % 16 != 15 && number % 2 == 1) continue;
    const TruthCase of = truth_case(1, number);
    if (!has_undeclared(of.input.schedule, of.declared.environment)) continue;
    ++values[fmt::format("{} {}", name_of(of.layout), name_of(of.mode))];
    sound += of.made == Made::Sound ? 1 : 0;
  }
  EXPECT_EQ(values.size(), 6U);
  for (const auto& [value, count] : values) EXPECT_GT(count, 100U) << value;
  EXPECT_GT(sound, 100U);
}

TEST(TruthCases, AreSmall) {
  for (std::uint64_t number = 5'000; number < 5'200; ++number) {
    for (const Module& module : truth_case(1, number).declared.modules.list) {
      EXPECT_LE(*module.shape.tokens, 32);
      EXPECT_LE(*module.shape.hidden, 32);
      EXPECT_LE(module.shape.ffn.value_or(0), 32);
      EXPECT_LE(module.shape.heads.value_or(0) * module.shape.head_dim.value_or(0), 96);
    }
  }
}

bool reduces(const TruthCase& of) {
  const auto& ranks = of.input.schedule.ranks;
  return std::any_of(ranks.begin(), ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
  });
}

TEST(TruthCases, ThatReduceHaveTwoOrThreeReplicasAndNoOthersHave) {
  std::map<std::int32_t, int> counts;
  for (std::uint64_t number = 100'000; number < 101'000; ++number) {
    const TruthCase of = truth_case(1, number);
    EXPECT_EQ(reduces(of), of.replicas > 1) << of.words;
    ++counts[of.replicas];
  }
  EXPECT_EQ(counts.size(), 3U);
  for (const std::int32_t replicas : {1, 2, 3}) EXPECT_GT(counts[replicas], 10) << replicas;
}

}  // namespace
}  // namespace capo::testing

// Costs by chance: what comes, that it reads as flags, and how it shrinks.

#include "testing/generators/arbitrary_costs.h"

#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <vector>

namespace capo::testing {
namespace {

std::string words_for(const Costs& costs) {
  std::ostringstream out;
  showValue(costs, out);
  return out.str();
}

using Key = CostSetting::Key;

// The values of a key where it is set for everything; nothing, or one.
std::vector<double> everywhere(const Costs& costs, Key key) {
  std::vector<double> values;
  for (const CostSetting& setting : costs.settings) {
    if (setting.scope.everything() && setting.key == key) values.push_back(setting.value);
  }
  return values;
}

std::vector<CostSetting> scoped(const Costs& costs) {
  std::vector<CostSetting> settings;
  std::copy_if(costs.settings.begin(), costs.settings.end(), std::back_inserter(settings),
               [](const CostSetting& setting) { return !setting.scope.everything(); });
  return settings;
}

TEST(ArbitraryCosts, OfEveryTaskAreFrom1To20OrAWeightIsFree) {
  std::vector<double> forwards;
  std::vector<double> backwards;
  std::vector<double> weights;
  const auto all = sample(arbitrary_costs(), 6000);
  for (const Costs& costs : all) {
    forwards.push_back(everywhere(costs, Key::Forward).at(0));
    backwards.push_back(everywhere(costs, Key::Backward).at(0));
    if (const double weight = everywhere(costs, Key::Weight).at(0); weight > 0)
      weights.push_back(weight);
    EXPECT_EQ(costs.slowdown, 1);
  }
  EXPECT_TRUE(are_even(forwards, numbers(1.0, 20.0)));
  EXPECT_TRUE(are_even(backwards, numbers(1.0, 20.0)));
  EXPECT_TRUE(are_even(weights, numbers(1.0, 20.0)));
  EXPECT_TRUE(is_share(weights.size(), all.size(), 3.0 / 4));
}

TEST(ArbitraryCosts, OfLinksAreDrawnAsOftenAsStated) {
  std::vector<double> latencies;
  std::vector<double> bytes;
  std::vector<double> bandwidths;
  const auto all = sample(arbitrary_costs(), 16000);
  for (const Costs& costs : all) {
    for (const double value : everywhere(costs, Key::Latency)) latencies.push_back(value);
    for (const double value : everywhere(costs, Key::Bytes)) bytes.push_back(value);
    for (const double value : everywhere(costs, Key::Bandwidth)) bandwidths.push_back(value);
    EXPECT_EQ(everywhere(costs, Key::Bytes).size(), everywhere(costs, Key::Bandwidth).size());
  }
  EXPECT_TRUE(is_share(latencies.size(), all.size(), 1.0 / 2));
  EXPECT_TRUE(is_share(bytes.size(), latencies.size(), 1.0 / 3));
  EXPECT_TRUE(are_even(latencies, numbers(0.0, 5.0)));
  EXPECT_TRUE(are_even(bytes, numbers(1.0, 8.0)));
  EXPECT_TRUE(are_even(bandwidths, numbers(1.0, 4.0)));
}

TEST(ArbitraryCosts, OfOneRankOrChunkAreDrawnAsOftenAsStated) {
  std::vector<std::size_t> counts;
  std::vector<int> scopes;  // 1: a rank, 2: a chunk, 3: both
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;
  std::vector<Key> keys;
  std::vector<double> values;
  const auto all = sample(arbitrary_costs(), 6000);
  for (const Costs& costs : all) {
    const auto settings = scoped(costs);
    if (!settings.empty()) counts.push_back(settings.size());
    for (const auto& [scope, key, value] : settings) {
      scopes.push_back((scope.rank >= 0 ? 1 : 0) + (scope.chunk >= 0 ? 2 : 0));
      if (scope.rank >= 0) ranks.push_back(scope.rank);
      if (scope.chunk >= 0) chunks.push_back(scope.chunk);
      keys.push_back(key);
      values.push_back(value);
    }
  }
  EXPECT_TRUE(is_share(counts.size(), all.size(), 1.0 / 3));
  EXPECT_TRUE(are_even(counts, numbers<std::size_t>(1, 3)));
  EXPECT_TRUE(are_even(scopes, {1, 2, 3}));
  EXPECT_TRUE(are_even(ranks, numbers(0, 3)));
  EXPECT_TRUE(are_even(chunks, numbers(1, 3)));
  EXPECT_TRUE(are_even(keys, {Key::Forward, Key::Backward, Key::Weight}));
  EXPECT_TRUE(are_even(values, numbers(1.0, 20.0)));
}

// One of six in one of four is a whole overlap again.
TEST(ArbitraryCosts, OverlapInTenthsInOneOfFour) {
  const auto all = sample(arbitrary_costs(), 6000);
  std::size_t whole = all.size();
  for (const double overlap : {0.5, 0.6, 0.7, 0.8, 0.9}) {
    const auto count = count_of(all, [&](const Costs& costs) { return costs.overlap == overlap; });
    EXPECT_TRUE(is_share(count, all.size(), 1.0 / 24)) << overlap;
    whole -= count;
  }
  EXPECT_EQ(whole, count_of(all, [](const Costs& costs) { return costs.overlap == 1; }));
}

TEST(ArbitraryCosts, AreShownAsFlagsThatReadBack) {
  for (const Costs& costs : sample(arbitrary_costs(), 100)) {
    Costs again;
    std::istringstream flags(words_for(costs));
    for (std::string flag, value; flags >> flag >> value;) {
      if (flag == "--cost-per") {
        EXPECT_EQ(value, "chunk");
        continue;
      }
      EXPECT_EQ(flag, "--cost");
      const auto settings = read_costs(value);
      ASSERT_TRUE(settings.has_value()) << value;
      for (const CostSetting& setting : *settings) again.set(setting);
    }
    EXPECT_EQ(again.settings, costs.settings);
    EXPECT_EQ(again.overlap, costs.overlap);
  }
}

TEST(ArbitraryCosts, ShrinkToWhatIsTakenWhereNothingIsSaid) {
  for (const auto& costs : sample_shrinkables(arbitrary_costs(), 20)) {
    const Costs least = shrink_path(costs).back();
    EXPECT_TRUE(least.settings.empty());
    EXPECT_EQ(least.overlap, 1);
  }
}

}  // namespace
}  // namespace capo::testing

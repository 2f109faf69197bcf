// Costs by chance: what comes, that it reads as flags, and how it shrinks.

#include <capo/testing/generators/arbitrary_costs.h>

#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace capo::testing {
namespace {

std::string words_for(const Costs& costs) {
  std::ostringstream out;
  showValue(costs, out);
  return out.str();
}

bool has(const Costs& costs, CostSetting::Key key) {
  return std::any_of(costs.settings.begin(), costs.settings.end(),
                     [&](const CostSetting& setting) { return setting.key == key; });
}

TEST(ArbitraryCosts, AreOfEverySort) {
  const auto costs = sample(arbitrary_costs(), 200);
  const auto some = [&](const auto& fits) {
    const auto count = std::count_if(costs.begin(), costs.end(), fits);
    return count > 0 && count < 200;
  };
  EXPECT_TRUE(some([](const Costs& one) { return has(one, CostSetting::Key::Latency); }));
  EXPECT_TRUE(some([](const Costs& one) { return has(one, CostSetting::Key::Bandwidth); }));
  EXPECT_TRUE(some([](const Costs& one) { return one.overlap < 1; }));
  EXPECT_TRUE(some([](const Costs& one) { return !one.uniform(); }));
  EXPECT_TRUE(some([](const Costs& one) { return one.of_chunk(0, 1, 1).weight == 0; }));
}

TEST(ArbitraryCosts, AreShownAsFlagsThatReadBack) {
  for (const Costs& costs : sample(arbitrary_costs(), 100)) {
    Costs again;
    std::istringstream flags(words_for(costs));
    for (std::string flag, value; flags >> flag >> value;) {
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

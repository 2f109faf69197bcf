#include "core/base/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace capo {
namespace {

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("layer", "layers"), 1U);
  EXPECT_EQ(edit_distance("layers", "leyers"), 1U);
  EXPECT_EQ(edit_distance("layesr", "layers"), 1U);
  EXPECT_EQ(edit_distance("order", "order"), 0U);
}

TEST(Nearest, SuggestsTheClosestWordAndNothingFarAway) {
  constexpr std::array<std::string_view, 3> kKnown{"layers", "microbatches", "placement"};
  EXPECT_EQ(nearest("layer", kKnown), "layers");
  EXPECT_EQ(nearest("microbatchs", kKnown), "microbatches");
  EXPECT_EQ(nearest("rank", kKnown), "");
}

TEST(Nearest, TakesCapitalLettersForSmallOnes) {
  constexpr std::array<std::string_view, 3> kKnown{"I01", "B01", "1f1b"};
  EXPECT_EQ(nearest("b01", kKnown), "B01");
  EXPECT_EQ(nearest("1F1B", kKnown), "1f1b");
}

TEST(Nearest, SuggestsTheFirstThatBeginsAsALongWordDoes) {
  constexpr std::array<std::string_view, 3> kKnown{"tiny", "deepseek-v3", "deepseek-v4"};
  EXPECT_EQ(nearest("deepseek", kKnown), "deepseek-v3");
  EXPECT_EQ(nearest("DeepSeek", kKnown), "deepseek-v3");
  EXPECT_EQ(nearest("deep", kKnown), "");
}

TEST(Nearest, AsksForTheClosestWordOrSaysWhatTheCallerSays) {
  constexpr std::array<std::string_view, 2> kKnown{"layers", "placement"};
  EXPECT_EQ(did_you_mean("layer", kKnown), "did you mean `layers`?");
  EXPECT_EQ(did_you_mean("rank", kKnown, "docs/cli.md lists them"), "docs/cli.md lists them");
  EXPECT_EQ(did_you_mean("rank", kKnown), "");
}

}  // namespace
}  // namespace capo

#include "testing/oracle_question.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

const TeList kTwoChunks{
    .entries = {{.value = 1}, {.value = 2}, {.value = -2.5, .type = NumberType::Float}}};

TEST(OracleQuestion, KeepsNumbersAndTheirTypes) {
  const auto order = oracle_order(kTwoChunks);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[1].value, 2);
  EXPECT_FALSE(order[1].floating);
  EXPECT_EQ(order[2].value, -2.5);
  EXPECT_TRUE(order[2].floating);
}

TEST(OracleQuestion, KeepsTheFormOfLayers) {
  EXPECT_EQ(oracle_layers({.form = Layers::Form::Null}, kTwoChunks).form, oracle::Layers::None);
  const auto count = oracle_layers({.form = Layers::Form::Count, .values = {3}}, kTwoChunks);
  EXPECT_EQ(count.form, oracle::Layers::Int);
  EXPECT_EQ(count.values, (std::vector<long long>{3}));
  EXPECT_EQ(oracle_layers({.form = Layers::Form::List, .values = {1, 2}}, kTwoChunks).values,
            (std::vector<long long>{1, 2}));
}

TEST(OracleQuestion, TakesUnstatedLayersForOnePerChunk) {
  EXPECT_EQ(oracle_layers({}, kTwoChunks).values, (std::vector<long long>{1, 1}));
  EXPECT_TRUE(oracle_layers({}, {}).values.empty());
  EXPECT_EQ(oracle_layers({}, {.entries = {{.value = 1e300}}}).values.size(), 2u);
}

}  // namespace
}  // namespace capo::testing

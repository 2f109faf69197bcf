#include "core/text/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace capo {
namespace {

void expect_number(const char* text, double value, NumberType type) {
  const auto number = read_number(text);
  ASSERT_TRUE(number) << text;
  EXPECT_EQ(number->value, value) << text;
  EXPECT_EQ(number->type, type) << text;
}

TEST(Number, ReadsIntegersAndFloatsAsPythonDoes) {
  expect_number("1", 1, NumberType::Integer);
  expect_number("-12", -12, NumberType::Integer);
  expect_number("+3", 3, NumberType::Integer);
  expect_number("0", 0, NumberType::Integer);
  expect_number("-1.5", -1.5, NumberType::Float);
  expect_number("1.0", 1, NumberType::Float);
  expect_number("1.", 1, NumberType::Float);
  expect_number(".5", 0.5, NumberType::Float);
  expect_number("1e3", 1000, NumberType::Float);
  expect_number("00.5", 0.5, NumberType::Float);
  expect_number("123456789012", 123456789012.0, NumberType::Integer);
}

TEST(Number, KnowsNoNegativeZeroAmongIntegers) {
  EXPECT_FALSE(std::signbit(read_number("-0")->value));
  EXPECT_TRUE(std::signbit(read_number("-0.0")->value));
}

TEST(Number, ReadsWhatPythonPrintsForItsOtherFloats) {
  EXPECT_TRUE(std::isnan(read_number("nan")->value));
  EXPECT_TRUE(std::isnan(read_number("-NaN")->value));
  expect_number("inf", INFINITY, NumberType::Float);
  expect_number("-Infinity", -INFINITY, NumberType::Float);
}

TEST(Number, RoundsBeyondADoubleAsPythonDoes) {
  expect_number("1e400", INFINITY, NumberType::Float);
  expect_number("-1e400", -INFINITY, NumberType::Float);
  expect_number("1e-400", 0, NumberType::Float);
  expect_number("0e999", 0, NumberType::Float);
  EXPECT_EQ(read_number(std::string(400, '9'))->type, NumberType::Integer);
}

TEST(Number, RefusesWhatPythonRefuses) {
  for (const char* text : {"", "-", "+", ".", "1.5.2", "01", "-007", "0x1f", "1_000", "1e", "e5",
                           "1,5", "--1", "n", "1 2"}) {
    EXPECT_FALSE(read_number(text)) << text;
  }
}

TEST(Number, PrintsTheShortestTextThatReadsBack) {
  for (const char* text : {"1", "-1.5", "1.0", "-0.0", "nan", "inf", "-inf", "0.1", "1e+300"}) {
    const std::string printed = to_text(*read_number(text));
    EXPECT_EQ(printed, text);
  }
}

TEST(NamedNumbers, HoldWhatStandsBetweenCommas) {
  const auto numbers = named_numbers("f=12,b,=3,,w=x");
  ASSERT_EQ(numbers.size(), 5U);
  EXPECT_EQ(numbers[0].item, "f=12");
  EXPECT_EQ(numbers[0].name, "f");
  EXPECT_EQ(numbers[0].value, 12);
  EXPECT_EQ(numbers[1].name, "b");
  EXPECT_EQ(numbers[1].value, std::nullopt);
  EXPECT_EQ(numbers[2].name, "");
  EXPECT_EQ(numbers[2].value, 3);
  EXPECT_EQ(numbers[3].item, "");
  EXPECT_EQ(numbers[4].value, std::nullopt);
  EXPECT_EQ(named_numbers("").size(), 1U);
}

}  // namespace
}  // namespace capo

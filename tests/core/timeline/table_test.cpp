#include "core/timeline/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <random>
#include <sstream>
#include <string>

namespace capo {
namespace {

TEST(Table, Figures) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(-0.0), "0");
  EXPECT_EQ(figure(1e-13), "0");
  EXPECT_EQ(figure(1.0 / 3), "0.333333");
  EXPECT_EQ(figure(123456789), "123456789");
  EXPECT_EQ(figure(1337409.6), "1337410") << "and never 1.33741e+06";
  EXPECT_EQ(figure(99999.95), "99999.9");
  EXPECT_EQ(figure(999999.7), "1000000");
  EXPECT_EQ(figure(0.0000133741), "0.0000133741");
  EXPECT_EQ(figure(-2.5), "-2.5");
  EXPECT_EQ(figure(1e20), "100000000000000000000");
  EXPECT_EQ(percent(0.10554), "10.55 %");
  EXPECT_EQ(percent(-0.0), "0.00 %");
}

// Numbers of usual size are written by other means, and no figure may show it.
TEST(Table, FiguresOfUsualSizeAreThoseOfAllSizes) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-4, 7);
  std::uniform_int_distribution<int> digits(0, 9);
  for (int draw = 0; draw < 20'000; ++draw) {
    const double scale = std::pow(10, digits(random));
    const double value = std::round(std::pow(10, exponent(random)) * scale) / scale;
    if (value == 0) continue;
    const int decimals = std::clamp(5 - static_cast<int>(std::floor(std::log10(value))), 0, 17);
    std::ostringstream plain;
    plain << std::fixed << std::setprecision(decimals) << value;
    std::string expected = plain.str();
    if (decimals > 0) expected.erase(expected.find_last_not_of('0') + 1);
    if (expected.ends_with('.')) expected.pop_back();
    EXPECT_EQ(figure(value), expected);
    EXPECT_EQ(figure(-value), "-" + expected);
  }
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(table({{"rank", "busy", "word"}, {"0", "12.5", "a"}, {"10", "3", "", ""}}, 2),
            "rank  busy  word\n"
            "0     12.5  a\n"
            "10       3\n");
}

}  // namespace
}  // namespace capo

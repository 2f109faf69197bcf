#include "core/timeline/table.h"

#include <gtest/gtest.h>

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

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(table({{"rank", "busy", "word"}, {"0", "12.5", "a"}, {"10", "3", "", ""}}, 2),
            "rank  busy  word\n"
            "0     12.5  a\n"
            "10       3\n");
}

}  // namespace
}  // namespace capo

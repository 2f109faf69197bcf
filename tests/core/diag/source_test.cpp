#include <capo/core/diag/source.h>

#include <gtest/gtest.h>

namespace capo {
namespace {

const Source kSource{.name = "x", .text = "one\r\ntwo\n\nend"};

TEST(Source, FindsLineAndColumnFromOne) {
  EXPECT_EQ(kSource.line_column(0), (LineColumn{1, 1}));
  EXPECT_EQ(kSource.line_column(2), (LineColumn{1, 3}));
  EXPECT_EQ(kSource.line_column(5), (LineColumn{2, 1}));
  EXPECT_EQ(kSource.line_column(9), (LineColumn{3, 1}));
  EXPECT_EQ(kSource.line_column(10), (LineColumn{4, 1}));
}

TEST(Source, TakesAnOffsetBeyondTheEndForTheEnd) {
  EXPECT_EQ(kSource.line_column(1000), (LineColumn{4, 4}));
  EXPECT_EQ(kSource.slice({.offset = 11, .length = 99}), "nd");
  EXPECT_EQ(kSource.slice({.offset = 99, .length = 1}), "");
}

TEST(Source, GivesALineWithoutItsEnd) {
  EXPECT_EQ(kSource.line_at(1), "one");
  EXPECT_EQ(kSource.line_at(6), "two");
  EXPECT_EQ(kSource.line_at(9), "");
  EXPECT_EQ(kSource.line_at(13), "end");
}

TEST(Source, ASecondTextCountsItsOwnLines) {
  Source both{.name = "a", .text = "one\ntwo"};
  EXPECT_EQ(both.append({.name = "b", .text = "three\nfour"}), 8U);
  EXPECT_EQ(both.name_at(6), "a");
  EXPECT_EQ(both.line_column(6), (LineColumn{2, 3}));
  EXPECT_EQ(both.name_at(8), "b");
  EXPECT_EQ(both.line_column(8), (LineColumn{1, 1}));
  EXPECT_EQ(both.line_column(15), (LineColumn{2, 2}));
  EXPECT_EQ(both.line_at(15), "four");
  EXPECT_EQ(both.line_at(5), "two");
}

}  // namespace
}  // namespace capo

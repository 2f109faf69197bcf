#include "core/diag/lines.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

const Source kSource{.name = "x", .text = "one\r\ntwo\n\nend"};

TEST(Lines, AndColumnsCountFromOne) {
  const Lines lines(kSource);
  EXPECT_EQ(lines.place(0), (LineColumn{1, 1}));
  EXPECT_EQ(lines.place(2), (LineColumn{1, 3}));
  EXPECT_EQ(lines.place(5), (LineColumn{2, 1}));
  EXPECT_EQ(lines.place(8), (LineColumn{2, 4}));  // a line end belongs to its line
  EXPECT_EQ(lines.place(9), (LineColumn{3, 1}));
  EXPECT_EQ(lines.place(10), (LineColumn{4, 1}));
}

TEST(Lines, TakeAnOffsetBeyondTheTextForItsEnd) {
  EXPECT_EQ(Lines(kSource).place(1000), (LineColumn{4, 4}));
  EXPECT_EQ(Lines(kSource).line_at(1000), "end");
}

TEST(Lines, AreGivenWithoutTheirEnd) {
  const Lines lines(kSource);
  EXPECT_EQ(lines.line_at(1), "one");
  EXPECT_EQ(lines.line_at(6), "two");
  EXPECT_EQ(lines.line_at(9), "");
  EXPECT_EQ(lines.line_at(13), "end");
}

TEST(Lines, OfAnEmptyTextAreOne) {
  const Source empty{.name = "x", .text = ""};
  EXPECT_EQ(Lines(empty).place(0), (LineColumn{1, 1}));
  EXPECT_EQ(Lines(empty).line_at(0), "");
}

TEST(Lines, OfASecondTextCountFromOneAgain) {
  Source both{.name = "a", .text = "one\ntwo"};
  EXPECT_EQ(both.append({.name = "b", .text = "three\nfour"}), 8U);
  const Lines lines(both);
  EXPECT_EQ(lines.place(6), (LineColumn{2, 3}));
  EXPECT_EQ(lines.place(7), (LineColumn{2, 4}));  // the line end between the two
  EXPECT_EQ(lines.place(8), (LineColumn{1, 1}));
  EXPECT_EQ(lines.place(15), (LineColumn{2, 2}));
  EXPECT_EQ(lines.line_at(15), "four");
  EXPECT_EQ(lines.line_at(5), "two");
}

}  // namespace
}  // namespace capo

#include "core/text/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

TEST(Printable, LeavesUtf8AloneAndShowsTheRestByItsCode) {
  EXPECT_EQ(printable("F1 \u00e9 \u6f22 \U0001f600"), "F1 \u00e9 \u6f22 \U0001f600");
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(printable("\xff\xc3("), "\\xff\\xc3(");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a C1 control acts as ESC [ does";
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("\u00e9\u00e9\u00e9", 3), "\u00e9\u00e9...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(Printable, KnowsWhereACharacterEnds) {
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("\u00e9"), 2U);
  EXPECT_EQ(utf8_length("\u6f22"), 3U);
  EXPECT_EQ(utf8_length("\U0001f600"), 4U);
  for (const char* broken :
       {"", "\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe6\xbc"}) {
    EXPECT_EQ(utf8_length(broken), 0U);
  }
}

}  // namespace
}  // namespace capo

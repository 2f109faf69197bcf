#include "core/frameworks/te/list_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

std::string read(std::string_view text, const Limits& limits = {}) {
  const auto list = read_te_list(text, limits);
  if (list) return print_te_list(*list);
  const Diagnostic& finding = list.error().finding;
  return finding.message + " @" + std::to_string(finding.labels.at(0).span.offset);
}

TEST(TeListReader, TakesCommasBlanksBracketsAnnotationsAndComments) {
  for (const char* text :
       {"[1, -1, -1.5]", "1 -1 -1.5", "1,-1,-1.5", "[1,-1,-1.5,]",
        "1 -1(dgrad) -1.5(delayed wgrad)", "# an order\n[1, # forward\n -1 -1.5]\r\n"}) {
    EXPECT_EQ(read(text), "[1, -1, -1.5]\n") << text;
  }
  EXPECT_EQ(read("[]"), "[]\n");
}

TEST(TeListReader, KeepsOddNumbersForTheRules) {
  EXPECT_EQ(read("[nan, 0, 1.0, -1.25, inf]"), "[nan, 0, 1.0, -1.25, inf]\n");
}

TEST(TeListReader, KnowsThePlaceOfEveryEntry) {
  const TeList list = read_te_list("[1,  -1.5]", {}).value();
  EXPECT_EQ(list.entries.at(0).span(), (Span{1, 1}));
  EXPECT_EQ(list.entries.at(1).span(), (Span{5, 4}));
}

TEST(TeListReader, RefusesTheRestWithItsPlace) {
  EXPECT_EQ(read(""), "the input holds no order @0");
  EXPECT_EQ(read("[1, -1"), "this bracket is never closed @0");
  EXPECT_EQ(read("[1,, -1]"), "a comma with no entry before it @3");
  EXPECT_EQ(read("[1, x]"), "`x` is not a number @4");
  EXPECT_EQ(read("[1] 2"), "text after the end of the list @4");
  EXPECT_EQ(read("[1, [2]]"), "a bracket inside the list @4");
  EXPECT_EQ(read("1, -1]"), "unexpected `]` @5");
  EXPECT_EQ(read("(x) 1"), "an annotation with no entry before it @0");
  EXPECT_EQ(read("1(x\n)"), "this annotation is never closed @1");
}

TEST(TeListReader, StopsAtItsLimitOfEntries) {
  EXPECT_EQ(read("1 -1", {.entries = 2}), "[1, -1]\n");
  EXPECT_EQ(read("1 -1 2", {.entries = 2}), "the input has more than 2 entries @5");
}

}  // namespace
}  // namespace capo

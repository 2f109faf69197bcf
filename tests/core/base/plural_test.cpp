#include "core/base/plural.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

TEST(Plural, AddsAnSUnlessThePluralIsGiven) {
  EXPECT_EQ(plural(1, "chunk"), "chunk");
  EXPECT_EQ(plural(0, "chunk"), "chunks");
  EXPECT_EQ(plural(2, "entry", "entries"), "entries");
}

TEST(Plural, PutsTheNumberBeforeItsNoun) {
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(3, "chunk"), "3 chunks");
  EXPECT_EQ(counted(-1, "chunk"), "-1 chunks");
}

TEST(Plural, ListsWordsAsASentenceDoes) {
  constexpr std::array<std::string_view, 3> kWords{"text", "json", "sarif"};
  EXPECT_EQ(listed(kWords), "text, json and sarif");
  EXPECT_EQ(listed(std::span(kWords).first(2)), "text and json");
}

TEST(Plural, NumbersThingsFromZero) {
  EXPECT_EQ(numbered(1), "only 0");
  EXPECT_EQ(numbered(4), "0 to 3");
}

TEST(Plural, WrapsWholeWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("", 5), (Lines{""}));
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(wrapped("a longerword b", 4), (Lines{"a", "longerword", "b"}));
}

}  // namespace
}  // namespace capo

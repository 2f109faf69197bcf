#include "core/base/plural.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace capo

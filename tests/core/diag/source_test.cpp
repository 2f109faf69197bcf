#include "core/diag/source.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

TEST(Source, CutsASliceToItsText) {
  const Source source{.name = "x", .text = "one\r\ntwo\n\nend"};
  EXPECT_EQ(source.slice({.offset = 5, .length = 3}), "two");
  EXPECT_EQ(source.slice({.offset = 11, .length = 99}), "nd");
  EXPECT_EQ(source.slice({.offset = 99, .length = 1}), "");
}

TEST(Source, ASecondTextKeepsItsName) {
  Source both{.name = "a", .text = "one\ntwo"};
  EXPECT_EQ(both.append({.name = "b", .text = "three\nfour"}), 8U);
  EXPECT_EQ(both.name_at(6), "a");
  EXPECT_EQ(both.name_at(8), "b");
}

}  // namespace
}  // namespace capo

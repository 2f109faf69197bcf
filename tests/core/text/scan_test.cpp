#include "core/text/scan.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

std::string refusal_of(std::string_view text, const Limits& limits = {}) {
  const auto refusal = refuse_bytes(text, limits);
  return refusal ? refusal->finding.message : "";
}

TEST(Scan, RefusesBytesThatNoInputMayHold) {
  EXPECT_EQ(refusal_of("\xef\xbb\xbf[1]"), "the input begins with a byte order mark");
  EXPECT_EQ(refusal_of(std::string_view("\xff\xfe[\0", 4)), "the input is UTF-16");
  EXPECT_EQ(refusal_of(std::string_view("[1\0]", 4)), "the input holds a NUL byte");
  EXPECT_EQ(refusal_of("[1]\r[2]"), "a carriage return that ends no line");
  EXPECT_EQ(refusal_of("[1]\r"), "a carriage return that ends no line");
}

TEST(Scan, TakesEitherLineEnd) {
  EXPECT_EQ(refusal_of("[1]\n[2]\r\n"), "");
}

TEST(Scan, CountsBytesToTheLimit) {
  EXPECT_EQ(refusal_of("[1]", {.bytes = 3}), "");
  EXPECT_EQ(refusal_of("[1] ", {.bytes = 3}), "the input has more than 3 bytes");
}

TEST(Scan, RefusesASizeThatIsOnlyDeclared) {
  Schedule schedule;
  schedule.ranks = {{.chunks = 3}, {.chunks = 2}};
  EXPECT_FALSE(refuse_size(schedule, {.counts = 5}));
  EXPECT_TRUE(refuse_size(schedule, {.counts = 4}));
  schedule.ranks = {{.chunks = 1, .stages = {7}}};
  EXPECT_FALSE(refuse_size(schedule, {.counts = 7}));
  EXPECT_TRUE(refuse_size(schedule, {.counts = 6}));
}

TEST(Scan, ShowsWhatDoesNotPrint) {
  EXPECT_EQ(shown('x'), "`x`");
  EXPECT_EQ(shown('\t'), "byte 0x09");
  EXPECT_EQ(shown(std::string(50, 'a')), "`" + std::string(40, 'a') + "...`");
}

}  // namespace
}  // namespace capo

#include "core/base/index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace capo {

namespace {

enum class Colour : std::uint8_t { Red, Green };

TEST(Index, CountsComeThroughUnchanged) {
  EXPECT_EQ(as_index(0), 0U);
  EXPECT_EQ(as_index(std::numeric_limits<std::int64_t>::max()), 9223372036854775807U);
  EXPECT_EQ(as_index(std::int8_t{127}), 127U);
}

TEST(Index, ANegativeCountIsAnErrorOfCapo) {
  EXPECT_THROW((void)as_index(-1), InternalError);
  EXPECT_THROW((void)as_index(std::numeric_limits<std::int64_t>::min()), InternalError);
}

TEST(Index, AnEnumeratorIsItsRow) {
  static_assert(as_index(Colour::Red) == 0);
  static_assert(as_index(Colour::Green) == 1);
}

}  // namespace

}  // namespace capo

#include "core/base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{ErrorKind::Unreadable, "odd", ""};
  return number / 2;
}

TEST(Result, HoldsTheValueOrTheReason) {
  EXPECT_EQ(*half(8), 4);
  EXPECT_FALSE(half(3));
  EXPECT_EQ(half(3).error().message, "odd");
}

TEST(Result, ChainsUntilTheFirstError) {
  EXPECT_EQ(*half(8).and_then(half), 2);
  EXPECT_EQ(half(6).and_then(half).error().message, "odd");
}

TEST(Result, FailsAnAssertionWhereTheOtherSideIsAskedFor) {
  const auto even = half(2);
  const auto odd = half(1);
  EXPECT_THROW((void)even.error(), InternalError);
  EXPECT_THROW((void)odd.value(), InternalError);
}

}  // namespace
}  // namespace capo

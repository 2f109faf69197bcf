#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace capo {
namespace {

TEST(ErrorText, IsEnglish) {
  EXPECT_EQ(error_text(ENOSPC), "No space left on device");
  EXPECT_EQ(error_text(EFBIG), "File too large");
}

}  // namespace
}  // namespace capo

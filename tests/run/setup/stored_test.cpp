// Bytes of stored numbers, by hand, and the way there and back.

#include "run/setup/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace capo::run {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

// Little endian: 1 is 3f80 as bf16, 3c00 as fp16 and 3f800000 as fp32.
TEST(Stored, EachTypeHasItsBytes) {
  const std::array values{1.0F, -2.0F};
  EXPECT_EQ(to_stored(values, DataType::Bf16), bytes({0x80, 0x3f, 0x00, 0xc0}));
  EXPECT_EQ(to_stored(values, DataType::Fp16), bytes({0x00, 0x3c, 0x00, 0xc0}));
  EXPECT_EQ(to_stored(values, DataType::Fp32),
            bytes({0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0xc0}));
}

TEST(Stored, EachTypeIsReadFromItsBytes) {
  EXPECT_EQ(from_stored(bytes({0x80, 0x3f, 0x00, 0xc0}), DataType::Bf16),
            (std::vector{1.0F, -2.0F}));
  EXPECT_EQ(from_stored(bytes({0x00, 0x3c, 0x01, 0x00}), DataType::Fp16),
            (std::vector{1.0F, 0x1p-24F}));
  EXPECT_EQ(from_stored(bytes({0x00, 0x00, 0x80, 0x3f}), DataType::Fp32), (std::vector{1.0F}));
}

// Seven bits behind the point in bf16, ten in fp16: half a last place goes to the even one.
TEST(Stored, NumbersAreRoundedToNearestEven) {
  const auto there_and_back = [](float value, DataType type) {
    return from_stored(to_stored(std::array{value}, type), type)[0];
  };
  EXPECT_EQ(there_and_back(1 + 0x1p-8F, DataType::Bf16), 1.0F);
  EXPECT_EQ(there_and_back(1 + 0x3p-8F, DataType::Bf16), 1 + 0x1p-6F);
  EXPECT_EQ(there_and_back(1 + 0x1p-8F + 0x1p-20F, DataType::Bf16), 1 + 0x1p-7F);
  EXPECT_EQ(there_and_back(1 + 0x1p-11F, DataType::Fp16), 1.0F);
  EXPECT_EQ(there_and_back(1 + 0x3p-11F, DataType::Fp16), 1 + 0x1p-9F);
  EXPECT_EQ(there_and_back(70000, DataType::Fp16), kInfinity);
  EXPECT_EQ(there_and_back(1 + 0x1p-23F, DataType::Fp32), 1 + 0x1p-23F);
}

TEST(Stored, SignsInfinitiesAndNansStay) {
  const std::array values{-0.0F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    const std::vector<float> back = from_stored(to_stored(values, type), type);
    ASSERT_EQ(back.size(), 4U);
    EXPECT_TRUE(back[0] == 0 && std::signbit(back[0]));
    EXPECT_EQ(back[1], kInfinity);
    EXPECT_EQ(back[2], -kInfinity);
    EXPECT_TRUE(std::isnan(back[3]));
  }
}

// A number that was stored once changes no more.
TEST(Stored, BytesComeBackFromTheFloatsThatTheyAre) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    std::vector<std::byte> all;
    for (int bits = 0; bits < 0x10000; ++bits) {
      const bool nan = (bits & 0x7fff) > (type == DataType::Bf16 ? 0x7f80 : 0x7c00);
      if (nan) continue;
      all.push_back(static_cast<std::byte>(bits & 0xff));
      all.push_back(static_cast<std::byte>(bits >> 8));
    }
    EXPECT_EQ(to_stored(from_stored(all, type), type), all);
  }
}

TEST(Stored, NothingIsStoredAsNothing) {
  EXPECT_TRUE(to_stored({}, DataType::Bf16).empty());
  EXPECT_TRUE(from_stored({}, DataType::Fp32).empty());
}

}  // namespace
}  // namespace capo::run

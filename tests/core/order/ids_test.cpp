#include "core/order/ids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

namespace capo {
namespace {

template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a == b;
};

static_assert(std::is_trivially_copyable_v<ChunkId> && sizeof(ChunkId) == 4);
static_assert(!std::is_convertible_v<ChunkId, StageId>);
static_assert(!std::is_convertible_v<StageId, RankId>);
static_assert(!Comparable<ChunkId, StageId>);
static_assert(Comparable<ChunkId, ChunkId> && Comparable<ChunkId, std::int32_t>);

TEST(Ids, CountTheirPositionsFromWhereTheyBegin) {
  EXPECT_EQ(ChunkId(1).index(), 0u);
  EXPECT_EQ(ChunkId(7).index(), 6u);
  EXPECT_EQ(StageId(0).index(), 0u);
  EXPECT_EQ(RankId(7).index(), 7u);
}

TEST(Ids, CompareAndCountAsTheirNumbersDo) {
  StageId stage = 2;
  EXPECT_EQ(++stage, 3);
  EXPECT_EQ(stage -= 2, StageId(1));
  EXPECT_LT(StageId(1), StageId(2));
  EXPECT_LT(kNoMicrobatch, MicrobatchId(0));
  EXPECT_EQ(stage + 1, 2);
}

}  // namespace
}  // namespace capo

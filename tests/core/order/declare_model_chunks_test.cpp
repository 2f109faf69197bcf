#include "core/order/declare.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

Schedule of_chunks(const std::vector<std::int32_t>& chunks) {
  Schedule schedule;
  for (const std::int32_t count : chunks) schedule.ranks.push_back({.chunks = count});
  return schedule;
}

TEST(DeclareModelChunks, HoldsForEveryRankThatHasChunks) {
  Schedule schedule = of_chunks({3, 0, 3});
  EXPECT_EQ(declare_model_chunks(schedule, {1, 2}), std::nullopt);
  EXPECT_EQ(schedule.ranks[0].model_chunks, (std::vector<std::int32_t>{1, 2}));
  EXPECT_TRUE(schedule.ranks[1].model_chunks.empty());
  EXPECT_EQ(schedule.ranks[2].model_chunks, (std::vector<std::int32_t>{1, 2}));
}

TEST(DeclareModelChunks, LayersAddUpToTheChunksOfEachRank) {
  Schedule schedule = of_chunks({3, 4});
  EXPECT_EQ(declare_model_chunks(schedule, {1, 2}),
            "model chunks add up to 3, but rank 1 has 4 chunks");
  EXPECT_TRUE(schedule.ranks[0].model_chunks.empty());
}

TEST(DeclareModelChunks, WhatTheInputSaysIsNotOverruled) {
  Schedule schedule = of_chunks({3});
  schedule.ranks[0].model_chunks = {2, 1};
  EXPECT_EQ(declare_model_chunks(schedule, {2, 1}), std::nullopt);
  EXPECT_EQ(declare_model_chunks(schedule, {1, 2}),
            "the input itself says otherwise which layers of rank 0 make a chunk of the model");
}

}  // namespace
}  // namespace capo

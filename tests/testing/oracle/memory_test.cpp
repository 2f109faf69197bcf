// The replay with tagged cells against orders that one can follow by hand and against what
// graph.py did with two hundred longer ones.

#include "testing/oracle/memory.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

namespace capo::oracle {
namespace {

using nlohmann::json;

/// A TE list of chunks of these layers, all of one key.
Capture capture_of(const std::vector<double>& order, const std::vector<int>& layers) {
  Capture capture;
  for (const int count : layers) capture.chunks.emplace_back(static_cast<std::size_t>(count));
  for (const double entry : order) {
    const bool whole = std::trunc(entry) == entry;
    const Capture::Kind kind = entry > 0 ? Capture::Forward
                               : whole   ? Capture::Backward
                                         : Capture::Weight;
    capture.order.push_back({kind, static_cast<int>(std::abs(entry)) - 1});
  }
  return capture;
}

using Misreads = std::vector<Misread>;

TEST(Memory, AForwardTakesTheInputOfAWeightGradientToCome) {
  const Replay one = replay(capture_of({1, -1, 1, -1.5, -1, -1.5}, {1}));
  EXPECT_EQ(one.misreads, (Misreads{{0, 0, 0, Misread::Input, 3}}));
  EXPECT_EQ(one.inputs, 1);
  const Replay two = replay(capture_of({1, -1, 2, -1.5, -2, -2.5}, {1, 1}));
  EXPECT_EQ(two.misreads, (Misreads{{0, 0, 0, Misread::Input, 3}}));
}

TEST(Memory, ABackwardTakesTheGradientOfAWeightGradientToCome) {
  const Replay one = replay(capture_of({1, 2, -2, -1, -2.5, -1.5}, {1, 1}));
  EXPECT_EQ(one.misreads, (Misreads{{1, 0, 0, Misread::Gradient, 4}}));
  EXPECT_EQ(one.inputs, 2);
  EXPECT_EQ(one.gradients, 1);
}

TEST(Memory, OneWeightGradientCanLoseBoth) {
  const Replay one = replay(capture_of({1, -1, 2, -2, -1.5, -2.5}, {1, 1}));
  EXPECT_EQ(one.misreads,
            (Misreads{{0, 0, 0, Misread::Input, 4}, {0, 0, 0, Misread::Gradient, 4}}));
}

TEST(Memory, KeysKeepCellsApart) {
  Capture capture = capture_of({1, -1, 2, -2, -1.5, -2.5}, {1, 1});
  capture.chunks[1][0] = {.input = 1, .output = 1};
  EXPECT_TRUE(replay(capture).misreads.empty());
  EXPECT_EQ(replay(capture).inputs, 2);
  EXPECT_EQ(replay(capture).gradients, 2);
}

TEST(Memory, LayersTakeEachOthersGradient) {
  const Replay one = replay(capture_of({1, -1, -1.5}, {3}));
  EXPECT_EQ(one.misreads,
            (Misreads{{0, 1, 0, Misread::Gradient, 2}, {0, 2, 0, Misread::Gradient, 2}}));
}

// The third backward of chunk 2 takes what the first handed back, and each of chunk 1 then what the
// next one reads.
TEST(Memory, InAChainBackwardsTakeWhatOthersHandedBack) {
  Capture capture = capture_of({1, 1, 1, 2, 2, 2, -2, -2, -2, -1, -1, -1}, {1, 1});
  EXPECT_TRUE(replay(capture).misreads.empty());
  capture.chain = true;
  EXPECT_EQ(replay(capture).misreads, (Misreads{{0, 0, 0, Misread::HandedBack, 9},
                                                {0, 0, 1, Misread::HandedBack, 10},
                                                {0, 0, 2, Misread::HandedBack, 11}}));
}

TEST(Memory, FindsTheVictimsAndSlotsOfGraphPy) {
  std::size_t agree = 0;
  const json data = testing_support::read_data("te_hazards.json");
  for (const json& row : data.at("rows")) {
    SCOPED_TRACE(row.dump());
    const std::vector<int> layers(row.at("chunks").get<std::size_t>(), 1);
    const Replay found = replay(capture_of(row.at("order").get<std::vector<double>>(), layers));
    std::set<std::pair<int, int>> input;
    std::set<std::pair<int, int>> gradient;
    for (const Misread& misread : found.misreads) {
      (misread.operand == Misread::Input ? input : gradient)
          .emplace(misread.chunk, misread.microbatch);
    }
    const auto expected = [&](const char* key) {
      std::set<std::pair<int, int>> cells;
      for (const json& pair : row.at(key)) cells.emplace(pair.at(0), pair.at(1));
      return cells;
    };
    EXPECT_EQ(input, expected("static_input_victims"));
    EXPECT_EQ(gradient, expected("grad_output_victims"));
    EXPECT_EQ(found.inputs, row.at("static_input_slots").get<int>());
    ++agree;
  }
  std::printf("%zu rows of graph.py\n", agree);
  EXPECT_EQ(agree, 200U);
}

}  // namespace
}  // namespace capo::oracle

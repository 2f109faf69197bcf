// The expected flaws are made by hand, from what graph.py does with such captures.

#include "testing/oracle/declared.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace capo::oracle {
namespace {

// 2: a forward of the second chunk; -2 its backward. Weight gradients take nothing.
std::vector<Capture::Entry> order_of(const std::vector<int>& entries) {
  std::vector<Capture::Entry> order;
  for (const int entry : entries) {
    order.push_back({entry > 0 ? Capture::Forward : Capture::Backward, std::abs(entry) - 1});
  }
  return order;
}

DeclaredCapture capture_of(std::vector<DeclaredLayer> chunks, const std::vector<int>& entries) {
  return {.chunks = std::move(chunks), .order = order_of(entries)};
}

using Flaws = std::vector<Flaw>;

TEST(DeclaredOracle, AnInputThatNeedsNoGradientLosesThatOfWhoTakesIt) {
  const std::vector<DeclaredLayer> without_first{{.needs_gradient = false}, {}};
  EXPECT_EQ(flaws(capture_of(without_first, {1, -1, 2, -2})), (Flaws{{Flaw::Lost, 2}}));
  EXPECT_EQ(flaws(capture_of(without_first, {1, 2, -2, -1})), Flaws{}) << "both have cells";
  EXPECT_EQ(flaws(capture_of(without_first, {2, -2, 1, -1})), Flaws{}) << "the other way round";
  const std::vector<DeclaredLayer> other_keys{{.keys = {0, 0}, .needs_gradient = false},
                                              {.keys = {1, 0}}};
  EXPECT_EQ(flaws(capture_of(other_keys, {1, -1, 2, -2})), Flaws{});
}

TEST(DeclaredOracle, TheMakerOfACellDecidesHoweverOftenItIsTaken) {
  const std::vector<DeclaredLayer> chunks{{.needs_gradient = false}, {}};
  EXPECT_EQ(flaws(capture_of(chunks, {1, -1, 2, -2, 2, -2})),
            (Flaws{{Flaw::Lost, 2}, {Flaw::Lost, 4}}));
}

TEST(DeclaredOracle, GradientsOfOneKeyAreThoseOfTheFirstBackward) {
  const std::vector<DeclaredLayer> chunks{{.output_position = 1}, {}};
  EXPECT_EQ(flaws(capture_of(chunks, {1, 2, -2, -1})), (Flaws{{Flaw::Misplaced, 3}}));
  EXPECT_EQ(flaws(capture_of(chunks, {1, 2, -1, -2})), (Flaws{{Flaw::Misplaced, 3}}));
  const std::vector<DeclaredLayer> other_keys{{.output_position = 1}, {.keys = {0, 1}}};
  EXPECT_EQ(flaws(capture_of(other_keys, {1, 2, -2, -1})), Flaws{});
}

// The essay of B04: two layers make a chunk of the model.
TEST(DeclaredOracle, WhatIsSentLastsToTheEndOfTheNextThatSends) {
  const std::vector<DeclaredLayer> one_of_two{{.sends = true}, {}};
  EXPECT_EQ(flaws(capture_of(one_of_two, {1, 2, 1, 2, -2, -1, -2, -1})),
            (Flaws{{Flaw::CutOff, 7}}));
  const std::vector<DeclaredLayer> both{{.sends = true}, {.sends = true}};
  EXPECT_EQ(flaws(capture_of(both, {1, 2, 1, 2, -2, -1, -2, -1})), Flaws{});
}

TEST(DeclaredOracle, WhatIsSentLastLastsToTheEndOfTheOrder) {
  const std::vector<DeclaredLayer> one_of_three{{.sends = true}, {}, {}};
  EXPECT_EQ(flaws(capture_of(one_of_three, {1, -1, 2, -2, 3, -3})), (Flaws{{Flaw::CutOff, 5}}));
  EXPECT_EQ(flaws(capture_of(one_of_three, {1, -1, 2, -2, 2, 3, -2, -3})),
            (Flaws{{Flaw::CutOff, 7}}));
  EXPECT_EQ(flaws(capture_of(one_of_three, {1, 2, 3, -3, -2, -1})), Flaws{});
  const std::vector<DeclaredLayer> all{{.sends = true}, {.sends = true}, {.sends = true}};
  EXPECT_EQ(flaws(capture_of(all, {1, -1, 2, -2, 3, -3})), Flaws{});
}

// The gradient that chunk 1 sends is given back at -3, and the next -3 takes it; chunk 2 sees the
// end of the send.
TEST(DeclaredOracle, CellsOfThePoolAreSharedBySize) {
  const std::vector<int> entries{1, 2, 3, 3, -1, -3, -3, -2};
  const std::vector<DeclaredLayer> alike{{.sends = true}, {.sends = true}, {}};
  EXPECT_EQ(flaws(capture_of(alike, entries)), (Flaws{{Flaw::CutOff, 7}}));
  const std::vector<DeclaredLayer> of_three_sizes{
      {.input_bytes = 2, .sends = true}, {.input_bytes = 3, .sends = true}, {.input_bytes = 4}};
  EXPECT_EQ(flaws(capture_of(of_three_sizes, entries)), Flaws{});
}

// F: input and output of a microbatch; B: the gradient that comes in and the one that goes out.
TEST(DeclaredOracle, NeedsAllCellsThatWereGivenOut) {
  const std::vector<DeclaredLayer> one{
      {.input_bytes = 10, .output_bytes = 100, .weight_bytes = 1000}};
  EXPECT_EQ(need(capture_of(one, {1, -1})), (Need{1000 + 110 + 110, 1}));
  EXPECT_EQ(need(capture_of(one, {1, -1, 1, -1})), (Need{1000 + 220 + 10, 3}))
      << "what the first hands back is held until the second has";
  EXPECT_EQ(need(capture_of(one, {1, 1, -1, -1})), (Need{1000 + 220 + 110 + 10, 3}));
}

// All inputs are there from the beginning; weight gradients are no entries of the passes.
TEST(DeclaredOracle, NeedsBeforeCaptureWhatThePassesHold) {
  const std::vector<DeclaredLayer> one{
      {.input_bytes = 10, .output_bytes = 100, .weight_bytes = 1000}};
  const DeclaredCapture apart = capture_of(one, {1, -1, 1, -1});
  EXPECT_EQ(need_of_warm_up(apart, false), (Need{1000 + 10 + 100 + 110, 1}));
  EXPECT_EQ(need_of_warm_up(apart, true), (Need{1000 + 10 + 200 + 110, 3}));
  const DeclaredCapture together = capture_of(one, {1, 1, -1, -1});
  EXPECT_EQ(need_of_warm_up(together, false), (Need{1000 + 20 + 200 + 110, 2}));
  EXPECT_EQ(need_of_warm_up(together, true), (Need{1000 + 20 + 200 + 110, 2}));
}

}  // namespace
}  // namespace capo::oracle

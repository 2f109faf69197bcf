#include "testing/oracle/captures.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo::oracle {
namespace {

using CaptureFaults = std::vector<CaptureFault>;
using Kind = GraphToCapture::Kind;
using enum Capturer;

// A chunk has two microbatches, both forward first.
std::vector<GraphToCapture> two_microbatches(Kind first, Kind second) {
  std::vector<GraphToCapture> order{{}, {}};
  for (const Kind kind : {first, second}) {
    order.push_back({.kind = kind});
    if (kind == Kind::HalfBackward) order.push_back({.kind = Kind::Weight});
  }
  return order;
}

TEST(OracleCaptures, HoldWholeBackwards) {
  const auto order = two_microbatches(Kind::Backward, Kind::Backward);
  for (const Capturer who : {TransformerEngine, Megatron})
    EXPECT_EQ(faults_of_capture(who, {{}}, order), CaptureFaults());
}

TEST(OracleCaptures, AreTransformerEnginesWhereHooksCount) {
  const auto order = two_microbatches(Kind::Backward, Kind::Backward);
  const std::vector<ChunkToCapture> hooked{{.hooks = true, .hooks_each_call = true}};
  EXPECT_EQ(faults_of_capture(TransformerEngine, hooked, order),
            (CaptureFaults{{0, CaptureFault::Refused}, {0, CaptureFault::HooksNotRun}}));
  EXPECT_EQ(faults_of_capture(Megatron, hooked, order), CaptureFaults());
}

TEST(OracleCaptures, ReadWhatWasMovedAtTheFirstBackward) {
  const auto order = two_microbatches(Kind::Backward, Kind::Backward);
  for (const Capturer who : {TransformerEngine, Megatron})
    EXPECT_EQ(faults_of_capture(who, {{.offloaded = true}}, order),
              (CaptureFaults{{2, CaptureFault::Moved}}));
}

TEST(OracleCaptures, DelayAllWeightGradientsOfAChunkOrNone) {
  EXPECT_EQ(faults_of_capture(TransformerEngine, {{}},
                              two_microbatches(Kind::HalfBackward, Kind::HalfBackward)),
            CaptureFaults());
  EXPECT_EQ(faults_of_capture(TransformerEngine, {{}},
                              two_microbatches(Kind::HalfBackward, Kind::Backward)),
            (CaptureFaults{{4, CaptureFault::HalfDelayed}}));
  EXPECT_EQ(faults_of_capture(Megatron, {{}}, two_microbatches(Kind::Backward, Kind::HalfBackward)),
            (CaptureFaults{{4, CaptureFault::InNoGraph}}));
}

TEST(OracleCaptures, FindALayerUnreadWhereABackwardRunsBesideSeveral) {
  const std::vector<GraphToCapture> order{
      {}, {}, {.kind = Kind::Backward, .beside = true}, {.kind = Kind::Backward}};
  EXPECT_EQ(faults_of_capture(Megatron, {{.layers = 2}}, order),
            (CaptureFaults{{2, CaptureFault::BetweenLayers}}));
  EXPECT_EQ(faults_of_capture(Megatron, {{.layers = 1}}, order), CaptureFaults());
  EXPECT_EQ(faults_of_capture(TransformerEngine, {{.layers = 2}}, order), CaptureFaults());
}

}  // namespace
}  // namespace capo::oracle

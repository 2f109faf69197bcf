// Counted references against orders that one can follow by hand.

#include "testing/oracle/local_graphs.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo::oracle {
namespace {

using T = LocalTensor;

const LocalChunks kOneLayer{{{.input = 2, .kept = 5, .output = 3}}};

TEST(LocalGraphs, ABackwardLetsGoOfAllThatItsForwardKept) {
  const LocalMemory memory =
      capture_locally(kOneLayer, {{true, 0, 0}, {false, 0, 0}, {true, 0, 1}, {false, 0, 1}});
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::Input}), 0);
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::Kept}), 2);
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::Output}), 7) << "copied at once";
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::GradOutput}), 7) << "where the output was made";
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::GradInput}), 10);
  EXPECT_EQ(memory.offset.at({0, 0, 1, T::Kept}), 2);
  EXPECT_EQ(memory.bytes, 12);
}

TEST(LocalGraphs, ALayerReadsTheTensorThatTheOneBeforeMade) {
  const LocalMemory memory =
      capture_locally({{{1, 4, 2}, {2, 4, 2}}}, {{true, 0, 0}, {false, 0, 0}});
  EXPECT_FALSE(memory.offset.contains({0, 1, 0, T::Input}));
  EXPECT_FALSE(memory.offset.contains({0, 0, 0, T::GradOutput}));
  EXPECT_EQ(memory.offset.at({0, 0, 0, T::Output}), 5);
}

TEST(LocalGraphs, AReplayInTheOrderOfCaptureMisreadsNothing) {
  const std::vector<LocalWork> order{{true, 0, 0}, {true, 0, 1}, {false, 0, 0}, {false, 0, 1}};
  EXPECT_TRUE(replay_locally(kOneLayer, capture_locally(kOneLayer, order), order).empty());
}

TEST(LocalGraphs, AForwardThatComesEarlierOverwritesWhatABackwardHasYetToRead) {
  const LocalMemory memory =
      capture_locally(kOneLayer, {{true, 0, 0}, {false, 0, 0}, {true, 0, 1}, {false, 0, 1}});
  const auto misreads =
      replay_locally(kOneLayer, memory, {{true, 0, 0}, {true, 0, 1}, {false, 0, 0}, {false, 0, 1}});
  ASSERT_EQ(misreads.size(), 2U);
  EXPECT_EQ(misreads[0], (LocalMisread{{0, 0, 0, T::Input}, 2}));
  EXPECT_EQ(misreads[1], (LocalMisread{{0, 0, 0, T::Kept}, 2}));
}

}  // namespace
}  // namespace capo::oracle

#include "testing/oracle/resets.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo::oracle {
namespace {

using Faults = std::vector<ResetFault>;
using enum ResetFault;

constexpr int kAll = OfResets::kAll;

OfResets replay(int chunk, int microbatch) {
  return {.chunk = chunk, .microbatch = microbatch};
}

OfResets reset(int chunk, int microbatch = kAll) {
  return {.kind = OfResets::Reset, .chunk = chunk, .microbatch = microbatch};
}

TEST(OracleResets, BehindAllReplaysAreFine) {
  EXPECT_EQ(faults_of_resets({replay(1, 0), replay(1, 0), reset(1)}), (Faults{None, None, None}));
  EXPECT_EQ(faults_of_resets({replay(1, 0), reset(1, 0), replay(1, 1), reset(kAll)}),
            (Faults{None, None, None, None}));
}

TEST(OracleResets, ReplaysBehindThemHaveNoGraph) {
  EXPECT_EQ(faults_of_resets({reset(kAll), replay(1, 0), replay(1, 0)}),
            (Faults{None, After, None}));
  EXPECT_EQ(faults_of_resets({replay(1, 0), reset(1), replay(1, 1), replay(2, 0)}),
            (Faults{None, None, After, None}));
}

TEST(OracleResets, CutShortWhatHasBegun) {
  EXPECT_EQ(faults_of_resets({replay(1, 0), reset(1, 0), replay(1, 0), replay(1, 0)}),
            (Faults{None, None, CutShort, None}));
  EXPECT_EQ(faults_of_resets({replay(1, 0), replay(2, 0), reset(2), replay(2, 0), replay(1, 0)}),
            (Faults{None, None, None, CutShort, None}));
}

TEST(OracleResets, LeaveThePoolToSendsWhileAGraphIsLeft) {
  const OfResets backward{.kind = OfResets::Backward};
  const OfResets output{.kind = OfResets::SendOutput};
  const OfResets gradient{.kind = OfResets::SendGradient};
  EXPECT_EQ(faults_of_resets({replay(1, 0), backward, output, reset(1), output, gradient}),
            (Faults{None, None, None, None, Sent, None}));
  EXPECT_EQ(faults_of_resets({replay(1, 0), replay(2, 0), reset(1), output, reset(2), output}),
            (Faults{None, None, None, None, None, Sent}));
}

TEST(OracleResets, FindNothingWhereAllIsGoneOrNoneWas) {
  EXPECT_EQ(faults_of_resets({replay(1, 0), reset(1), reset(1, 0), reset(kAll)}),
            (Faults{None, None, Again, Again}));
  EXPECT_EQ(faults_of_resets({replay(1, 0), reset(2), reset(1, 1), reset(1)}),
            (Faults{None, NoGraph, NoGraph, None}));
  EXPECT_EQ(faults_of_resets({reset(kAll)}), (Faults{NoGraph}));
}

}  // namespace
}  // namespace capo::oracle

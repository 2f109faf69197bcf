#include "testing/oracle/parameters.h"

#include <gtest/gtest.h>

namespace capo::oracle {
namespace {

using enum OfParameters;
using Places = std::vector<std::size_t>;

TEST(ParametersOracle, HasNothingToSayWhereNothingMoves) {
  EXPECT_EQ(without_parameters({}), Places{});
  EXPECT_EQ(without_parameters({Compute, Compute}), Places{});
}

TEST(ParametersOracle, LetsAChunkComputeBetweenTheTwo) {
  EXPECT_EQ(without_parameters({Gather, Compute, GiveUp, Gather, Compute, GiveUp}), Places{});
  EXPECT_EQ(without_parameters({Compute, GiveUp, Gather, Compute}), Places{});
}

TEST(ParametersOracle, SeesTheFirstThatComputesWithout) {
  EXPECT_EQ(without_parameters({Gather, Compute, GiveUp, Compute, Compute}), Places{3});
  EXPECT_EQ(without_parameters({Compute, Compute, Gather}), Places{0});
  EXPECT_EQ(without_parameters({GiveUp, Compute, Gather, GiveUp, Compute}), (Places{1, 4}));
}

TEST(ParametersOracle, SeesWhatIsDoneTwice) {
  EXPECT_EQ(without_parameters({Gather, Gather, Compute}), Places{1});
  EXPECT_EQ(without_parameters({Compute, GiveUp, GiveUp, GiveUp}), (Places{2, 3}));
  EXPECT_EQ(without_parameters({GiveUp, Compute, GiveUp, Compute}), (Places{1, 3}));
}

}  // namespace
}  // namespace capo::oracle

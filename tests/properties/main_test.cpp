// The properties' own main: a fixed seed and number of cases, so that a run can be repeated.
// rapidcheck prints both, and a failure prints the line that replays it; RC_PARAMS in the
// environment wins.

#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  setenv("RC_PARAMS", "seed=2376 max_success=1000", /*overwrite=*/0);
  return RUN_ALL_TESTS();
}

// `capo-fuzz --across --transport nccl` on CUDA and NCCL in software: orders that are stuck are
// given up, their communicators made anew, and nothing is waited for without an end.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

// Runs so many orders over two devices in software, whose large messages move while nobody waits
// for them and whose small ones need not be received. `asked` is what NCCL is to do besides.
Outcome across(int orders, const std::string& asked = "", const std::string& timeout = "20") {
  return run_capo(
      {"--across", "--orders", std::to_string(orders), "--seed", "11", "--transport", "nccl",
       "--message-mib", "0.1", "--timeout", timeout},
      {.environment = {"CAPO_SOFT_CUDA_DEVICES=2", "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY,
                       "CAPO_FAKE_NCCL=later:100000,room:100000," + asked},
       .program = CAPO_FUZZ_ON_SOFT_CUDA});
}

TEST(AcrossNccl, OrdersThatAreStuckAreGivenUpAndTheNextRun) {
  const Outcome outcome = across(50);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("50 orders over processes\n")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, " equal to eager execution in the 3 that were run\n"))
      << outcome.out;
  EXPECT_TRUE(holds(outcome.err, "50 of 50 orders, 27 of them stuck, after ")) << outcome.err;
}

TEST(AcrossNccl, ARankThatDoesNotComeBackFromJoiningIsTold) {
  const Outcome outcome = across(50, "silent:1", "1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(holds(outcome.out,
                    "disagreement: order 0 (per-edge, rendezvous): rank 0: NCCL does not come back "
                    "from making communicators"))
      << outcome.out;
}

TEST(AcrossNccl, AnErrorOfAnotherRankIsTold) {
  const Outcome outcome = across(50, "fail_of_one:4", "2");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(
      holds(outcome.out, ": rank 1: ncclGroupEnd gave `unhandled system error` (asked for)"))
      << outcome.out;
}

TEST(AcrossNccl, ARankThatStopsEndsAllAfterTheTimeout) {
  const Outcome outcome = across(50, "stop:4", "0.5");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(holds(outcome.out, "does not answer")) << outcome.out;
}

// What nothing else limits: a call that never returns.
TEST(AcrossNccl, AnOrderThatTakesTooLongIsNamedWithItsPart) {
  const Outcome outcome = across(50, "hang:4", "0.5");
  EXPECT_EQ(outcome.exit_code, 5) << outcome.out;
  EXPECT_TRUE(holds(outcome.err, ", which is walked, takes longer than 3 s\n")) << outcome.err;
}

}  // namespace
}  // namespace capo

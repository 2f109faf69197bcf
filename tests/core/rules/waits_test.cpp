// The rules of core/rules/waits.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::expect_findings;
using testing_support::Found;

const std::string kAnswer = "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n";

TEST(WaitWithoutSend, StandsAtEachWaitThatFindsNothingPending) {
  expect_findings({
      {"None", check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0WAIT_SEND_B0\n" + kAnswer),
       "T11@5"},
      {"Again", check_csv("0F0,0SEND_F0,0WAIT_SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n" + kAnswer),
       "T11@5"},
      {"EachOfThree",
       check_csv("0F0,0SEND_F0,0WAIT_SEND_F0,0WAIT_SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n" + kAnswer),
       "T11@3 T11@6"},
      {"BeforeItsSend", check_csv("0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0\n" + kAnswer), "T09@1"},
  });
}

TEST(WaitWithoutSend, NeverEndsAndAWaitTooManyDoes) {
  const auto none = check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0WAIT_SEND_B0\n" + kAnswer);
  EXPECT_EQ(none.result.finishes, false);
  const auto again = check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0WAIT_SEND_F0\n" + kAnswer);
  EXPECT_EQ(again.result.finishes, true);
}

TEST(SendWithoutWait, IsAFaultWhereAnotherIsWaitedFor) {
  expect_findings({
      {"None", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), ""},
      {"One", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n" + kAnswer), "T12@1"},
      {"Both", check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n" + kAnswer), ""},
  });
}

TEST(ReductionWithoutWait, IsOneOfAnyRankWhereAnotherIsWaitedFor) {
  expect_findings({
      {"None", check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n"), ""},
      {"One",
       check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1 wait-reduce1\n"),
       "G17@2"},
  });
}

TEST(WaitWithoutReduction, LooksAtTheChunkAlone) {
  expect_findings({
      {"TwoPending",
       check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,1WAIT_REDUCE_GRAD\n"),
       ""},
      {"AnotherChunks",
       check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0WAIT_REDUCE_GRAD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,"
                 "1WAIT_REDUCE_GRAD\n"),
       "G16@4"},
  });
}

}  // namespace
}  // namespace capo

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(SendTooEarly, ShowsTheSendAndWhatMakesItsMessage) {
  const Checked checked = check_csv("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T06@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0SEND_F0` at index 0 of rank 0 comes before `0F0`, which makes what it sends");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{0, 8}, ""}, {{9, 3}, "what it sends is made here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move it behind `0F0`"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 0, "0SEND_F0", "send-F(c1,m0)"},
                                                               {0, 1, "0F0", "F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(SendTooEarly, ConcernsGradientsAndTheInputHalf) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n").findings(),
            Findings{"T06@2"});
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n").findings(),
            Findings{"T06@2"});
  EXPECT_TRUE(
      check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1W0,1SEND_B0\n").accepted());
}

TEST(SendTooEarly, AllowsOtherComputationsBetween) {
  EXPECT_TRUE(check_csv("0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(SendTooEarly, IsBeforeACompositeThatMakesItsMessage) {
  const Checked checked = check_csv(
      "0F0,0SEND_F0,0RECV_B0,0SEND_F1,(0F1;0B0)OVERLAP_F_B,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  ASSERT_EQ(checked.findings(), Findings{"T06@3"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`0SEND_F1` at index 3 of rank 0 comes before `(0F1;0B0)OVERLAP_F_B`, which makes what it "
      "sends");
}

TEST(SendTooEarly, IsNoDeadlockAsWell) {
  const Checked checked = check_csv(
      "0SEND_F0,0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(checked.findings(), Findings{"T06@0"}) << "a deadlock shows when this is cured";
}

TEST(SendTooEarly, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string rank1 = "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Checked replay = check_text(
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: send-F1.0 F1.0 recv-B1.0 B1.0\n" +
      rank1);
  ASSERT_EQ(replay.findings(), Findings{"T06@0"});
  EXPECT_EQ(
      replay.result.diagnostics.kept().at(0).message,
      "`send-F1.0` at index 0 of rank 0's replay order comes before `F1.0`, which makes what it "
      "sends");
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: send-F1.0 F1.0 recv-B1.0 B1.0\n" + rank1 +
                       "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T06@0"});
}

}  // namespace
}  // namespace capo

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr Environment kWeightStream{.weight_stream = true};
constexpr Aliases kBoth{.input = true, .grad_output = true};

Checked check_beside(const std::string& text,
                     const PlanOptions& plan = {.kind = PlanKind::Te, .aliases = kBoth}) {
  return check_in({.environment = kWeightStream, .plan = plan}, text);
}

TEST(SlotRace, ShowsWhatNothingOrders) {
  const Checked checked = check_beside("[1, -1, -1.5, 1, -1, -1.5]");
  ASSERT_EQ(checked.findings(), (Findings{"E01@0", "E01@1"}));
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`-1.5` at index 2 reads the static input of chunk 1, microbatch 0 while `1` at index 3 "
      "may overwrite it: nothing orders the two");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 4}, "it is read here"},
                                                {{14, 1},
                                                 "its memory goes to the static input of chunk 1, "
                                                 "microbatch 1"},
                                                {{1, 1}, "it is written here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "let `1` at index 3 wait for `-1.5` at index 2"}));
  EXPECT_EQ(finding.family, Family::Streams);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 0, "1", "F(c1,m0)"}, {0, 3, "1", "F(c1,m1)"}, {0, 2, "-1.5", "W(c1,m0)"}}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(1).message,
      "`-1.5` at index 2 reads the grad output of chunk 1, microbatch 0 while `-1` at index 4 "
      "may overwrite it: nothing orders the two");
  EXPECT_FALSE(checked.accepted());
}

TEST(SlotRace, IsNoneOnOneStream) {
  EXPECT_TRUE(
      check_in({.plan = {.kind = PlanKind::Te, .aliases = kBoth}}, "[1, -1, -1.5, 1, -1, -1.5]")
          .findings()
          .empty());
}

TEST(SlotRace, IsNoneWhereNothingComesBehind) {
  EXPECT_TRUE(check_beside("[1, -1, -1.5]").findings().empty());
}

TEST(SlotRace, LeavesWhatIsOverwrittenForCertainToTheRulesOfBuffers) {
  // The forward was launched before the weight gradient, the backward behind it.
  EXPECT_EQ(check_beside("[1, -1, 1, -1.5, -1, -1.5]").findings(), (Findings{"B01@0", "E01@1"}));
}

TEST(SlotRace, ConcernsMemoryOfThePool) {
  const Checked checked =
      check_beside("[1, 1, -1, -1.5, -1, -1.5]", {.kind = PlanKind::Te, .aliases = Aliases{}});
  ASSERT_FALSE(checked.findings().empty());
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`-1.5` at index 3 reads the operands of chunk 1, microbatch 0 while `-1` at index 4 may "
      "overwrite it: nothing orders the two");
}

TEST(SlotRace, SaysWhereMemoryIsWrittenAndReadByOnePieceOfWork) {
  const Checked checked = check_beside("[1, 2, -2, -2.5, -1, -1.5]",
                                       {.kind = PlanKind::Te, .aliases = Aliases{.input = true}});
  const auto found = checked.of(Family::Streams);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(
      found[1].message,
      "`-2.5` at index 3 reads the scratch of chunk 2, microbatch 0 while `-1` at index 4 may "
      "overwrite it: nothing orders the two");
  EXPECT_EQ(found[1].labels.size(), 2u);
  EXPECT_EQ(found[1].witness.tasks.front(), (TaskReference{0, 3, "-2.5", "W(c2,m0)"}));
}

TEST(SlotRace, OfUndeclaredOperandsIsAWarning) {
  const Checked checked = check_beside("[1, -1, -1.5, 1, -1, -1.5]", {.kind = PlanKind::Te});
  ASSERT_EQ(checked.findings(), (Findings{"E01@0", "E01@1"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "if the module reads the input itself there, `-1.5` at index 2 reads the static input of "
      "chunk 1, microbatch 0 while `1` at index 3 may overwrite it: nothing orders the two");
  EXPECT_TRUE(checked.accepted());
}

TEST(SlotRace, WithoutAPlanIsAWarning) {
  const Checked checked = check_beside("[1, -1, 1, -1.5, -1, -1.5]", {.aliases = kBoth});
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.severity, Severity::Warning);
    EXPECT_TRUE(finding.message.starts_with("under TransformerEngine's reuse of buffers, "));
  }
  EXPECT_EQ(checked.findings(), (Findings{"B01@0", "E01@1"}));
  EXPECT_TRUE(checked.accepted());
}

TEST(SlotRace, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_beside("[1, -1, -1.5, 1, -1, -1.5]", {.kind = PlanKind::Safe, .aliases = kBoth})
                  .findings()
                  .empty());
}

constexpr const char* kSender =
    "capo 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 F1.2 send-F1.2 recv-B1.0 B1.0 recv-B1.1 B1.1 recv-B1.2 "
    "B1.2\n"
    "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 recv-F1.2 F1.2 B1.0 send-B1.0 B1.1 send-B1.1 B1.2 "
    "send-B1.2\n";

TEST(SlotRace, IsBetweenASendAndWhatTakesItsMemory) {
  const Checked checked = check_in({.plan = {.kind = PlanKind::Te}}, kSender);
  ASSERT_EQ(checked.findings(), Findings{"E01@6"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`send-B1.0` at index 7 of rank 1 reads the grad input of chunk 1, microbatch 0 while "
            "`B1.2` at index 10 of rank 1 may overwrite it: nothing orders the two");
  EXPECT_EQ(finding.labels.at(0).text, "it is sent here");
  EXPECT_EQ(finding.help, (Help{.text = "let `B1.2` at index 10 of rank 1 wait for `send-B1.0` at "
                                        "index 7 of rank 1"}));
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Safe}}, kSender).findings().empty());
}

TEST(SlotRace, SeesSendsThatPyTorchAdds) {
  const Checked checked = testing_support::check_in(
      {.plan = {.kind = PlanKind::Te}}, "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
  ASSERT_EQ(checked.findings(), Findings{"E01@3"});
  EXPECT_TRUE(checked.result.diagnostics.kept().at(0).message.starts_with(
      "the send of `1B0` at index 3 of rank 1 reads the grad input of stage 1, microbatch 0 "
      "while "));
}

TEST(SlotRace, IsNoneWhereAnAnswerSaysThatTheSendIsOver) {
  // Each forward of rank 1 needs one of rank 0, which comes behind the gradient that it got.
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Te}},
                       "capo 1\nplacement chain\n"
                       "rank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n")
                  .findings()
                  .empty());
}

TEST(SlotRace, IsNoneWhereMegatronWaits) {
  const std::string order =
      "capo 1\nplacement chain\nrank 0: F1 F1 F1 B1 B1 B1\nrank 1: F1 F1 F1 B1 B1 B1\n";
  const PlanOptions plan{.kind = PlanKind::Te};
  EXPECT_EQ(check_in({.plan = plan}, order).findings(), Findings{"E01@3"});
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Batch}, .plan = plan}, order)
                  .findings()
                  .empty());
}

TEST(SlotRace, LooksAtEveryRank) {
  const Checked checked = check_beside(
      "capo 1\n"
      "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n");
  std::vector<std::int32_t> ranks;
  for (const Diagnostic& finding : checked.result.diagnostics.kept())
    ranks.push_back(finding.witness.tasks.front().rank);
  EXPECT_EQ(ranks, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

}  // namespace
}  // namespace capo

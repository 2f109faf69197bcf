#include "core/rules/check.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Checked check_called(MegatronCalls calls, const std::string& text) {
  return check_in({.environment = {.p2p = calls}}, text);
}

constexpr const char* kNote =
    "it runs warm-up forwards, then pairs of a forward and a backward, then the remaining "
    "backwards, with the microbatches of each chunk in ascending order";

TEST(MegatronForm, ShowsTheFirstEntryThatDiffers) {
  const Checked checked = check_called(MegatronCalls::Batch,
                                       "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1 F1 B1\n"
                                       "rank 1: F1 B1 F1 B1 F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"R01@4"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`F1` at index 4 of rank 0 is not what Megatron's loop runs next");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{42, 2}, ""}}));
  EXPECT_EQ(finding.notes, (std::vector<Note>{{.text = kNote}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "`capo generate megatron` prints the orders that it runs"}));
  EXPECT_EQ(finding.family, Family::Routing);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 4, "F1", "F(c1,m2)"}}));
}

TEST(MegatronForm, AsksForTheFormInEveryWayOfCalling) {
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    EXPECT_EQ(check_called(calls,
                           "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1 F1 B1\n"
                           "rank 1: F1 B1 F1 B1 F1 B1\n")
                  .findings()
                  .front(),
              "R01@4");
  }
}

TEST(MegatronForm, AcceptsWhatTheLoopRuns) {
  EXPECT_TRUE(check_called(MegatronCalls::Batch,
                           "capo 1\nplacement loop\nrank 0: F1 F1 B1 F1 B1 B1\n"
                           "rank 1: F1 B1 F1 B1 F1 B1\n")
                  .accepted());
  EXPECT_TRUE(check_called(MegatronCalls::Batch,
                           "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1\nrank 1: F1 F1 B1 B1\n")
                  .accepted())
      << "all forwards can be warm-up";
}

TEST(MegatronForm, NeedsTheMicrobatchesOfAChunkInTurn) {
  const Checked checked = check_called(MegatronCalls::Batch,
                                       "capo 1\nplacement loop\nrank 0: F1.1 F1.0 B1.1 B1.0\n"
                                       "rank 1: F1.1 B1.1 F1.0 B1.0\n");
  EXPECT_EQ(checked.findings(), (Findings{"R01@0", "R01@0"})) << "one for each rank";
}

TEST(MegatronForm, LetsWeightGradientsStandAnywhere) {
  EXPECT_TRUE(check_called(MegatronCalls::Batch,
                           "capo 1\nplacement loop\nrank 0: F1 F1 B1 W1 F1 B1 B1 W1 W1\n"
                           "rank 1: F1 B1 F1 W1 B1 W1 F1 B1 W1\n")
                  .accepted());
}

TEST(MegatronForm, NeedsStagesInALoop) {
  const std::string ranks = "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n";
  const Checked checked = check_called(MegatronCalls::Batch, "capo 1\nplacement chain\n" + ranks);
  ASSERT_EQ(checked.findings(), Findings{"R01@-"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "Megatron's transfers need stages that go around the ranks in a loop, with as many "
            "chunks on every rank");
  EXPECT_TRUE(finding.labels.empty());
  EXPECT_EQ(finding.help, (Help{.text = "place the stages in a loop, or leave --p2p out"}));
  EXPECT_TRUE(
      check_called(MegatronCalls::Batch, "capo 1\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n")
          .accepted())
      << "with one chunk a rank a chain is a loop";
}

TEST(MegatronForm, OfTheLoopWithoutModelChunksDoesNotOverlap) {
  const std::string text =
      "capo 1\nplacement loop\nrank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n";
  EXPECT_TRUE(check_called(MegatronCalls::Batch, text).accepted());
  for (const MegatronCalls calls : {MegatronCalls::Overlap, MegatronCalls::Flush}) {
    const Checked checked = check_called(calls, text);
    ASSERT_EQ(checked.findings(), Findings{"R01@-"}) << name_of(calls);
    const Diagnostic& finding = checked.result.diagnostics.kept().front();
    EXPECT_EQ(
        finding.message,
        "the warm-up on rank 0 is that of Megatron's loop without model chunks, which does not "
        "overlap");
    EXPECT_EQ(finding.help,
              (Help{.text = "--p2p batch; the loop with model chunks has twice the warm-up"}));
  }
  EXPECT_TRUE(check_called(MegatronCalls::Overlap,
                           "capo 1\nplacement loop\nrank 0: F1 F1 F1 B1 F1 B1 B1 B1\n"
                           "rank 1: F1 B1 F1 B1 F1 B1 F1 B1\n")
                  .accepted())
      << "with a single model chunk it does";
}

TEST(MegatronForm, AsksNothingWhereMegatronDoesNotCall) {
  const std::string text =
      "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1 F1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n";
  EXPECT_TRUE(check_in({}, text).accepted());
}

TEST(MegatronForm, AsksNothingOfASingleRank) {
  EXPECT_TRUE(
      check_called(MegatronCalls::Batch, "capo 1\nplacement chain\nrank 0: F1.1 F1.0 B1.0 B1.1\n")
          .accepted());
}

TEST(MegatronForm, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string right = "rank 1: F1 B1 F1 B1 F1 B1\nrank 1 replay: F1 B1 F1 B1 F1 B1\n";
  EXPECT_EQ(check_called(MegatronCalls::Batch,
                         "capo 1\nplacement loop\n"
                         "rank 0: F1 F1 B1 B1 F1 B1\n" +
                             right)
                .findings(),
            Findings{"R01@4"});
  const Checked replay = check_called(MegatronCalls::Batch,
                                      "capo 1\nplacement loop\nrank 0: F1 F1 B1 F1 B1 B1\n"
                                      "rank 0 replay: F1 F1 B1 B1 F1 B1\n" +
                                          right);
  ASSERT_EQ(replay.findings(), Findings{"R01@4"});
  EXPECT_EQ(replay.result.diagnostics.kept().at(0).message,
            "`F1` at index 4 of rank 0's replay order is not what Megatron's loop runs next");
}

// Node by node beside its own forward a backward has nothing to read.
TEST(MegatronForm, WhereExchangesOverlapABackwardIsOfAnEarlierStep) {
  const auto checked = [](bool overlap, const std::string& last) {
    return check_in({.environment = {.p2p = MegatronCalls::Batch, .ep_overlap = overlap}},
                    "capo 1\nmicrobatches 2\nplacement loop\n"
                    "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
                    "rank 1: " +
                        last + "\n");
  };
  const std::string warm_up = "F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1";
  EXPECT_TRUE(checked(false, warm_up).accepted());
  EXPECT_TRUE(checked(true, "F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1").accepted());
  const Checked beside = checked(true, warm_up);
  ASSERT_EQ(beside.findings(), Findings{"R01@3"});
  EXPECT_EQ(beside.result.diagnostics.kept().front().message,
            "`B2.0` at index 3 of rank 1 runs beside the forward whose activations it reads: where "
            "exchanges overlap, Megatron runs each forward behind the warm-up together with the "
            "backward of its step");
}

TEST(MegatronForm, CountsWhatItDoesNotDescribe) {
  const auto kept = [](const Environment& environment, const std::string& ranks) {
    const Input input = check_in({}, "capo 1\nplacement loop\n" + ranks).input;
    const CheckResult result = check(input, {.findings_per_rule = 0, .environment = environment});
    EXPECT_EQ(result.verdict, Verdict::Rejected);
    return result.diagnostics.kept().size();
  };
  EXPECT_EQ(
      kept({.p2p = MegatronCalls::Batch}, "rank 0: F1 F1 B1 B1 F1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n"),
      0u);
  EXPECT_EQ(kept({.p2p = MegatronCalls::Overlap},
                 "rank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n"),
            0u);
  EXPECT_EQ(kept({.p2p = MegatronCalls::Batch, .ep_overlap = true},
                 "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
                 "rank 1: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1\n"),
            0u);
}

}  // namespace
}  // namespace capo

// The rules of core/rules/routing.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/frameworks/megatron/orders.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"
#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_in;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::warns;

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
  ASSERT_EQ(checked.findings(), Found{"R01@4"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{42, 2}, ""}}));
  EXPECT_EQ(finding.notes, (std::vector<Note>{{.text = kNote}}));
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 4, "F1", "F(c1,m2)"}}));
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

TEST(MegatronForm, NeedsStagesInALoop) {
  const std::string ranks = "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n";
  const Checked checked = check_called(MegatronCalls::Batch, "capo 1\nplacement chain\n" + ranks);
  ASSERT_EQ(checked.findings(), Found{"R01@-"});
  EXPECT_TRUE(checked.first().labels.empty());
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
    ASSERT_EQ(checked.findings(), Found{"R01@-"}) << name_of(calls);
    const Diagnostic& finding = checked.first();
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

TEST(MegatronForm, StandsHereAndNotThere) {
  const std::string text =
      "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1 F1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n";
  const std::string right = "rank 1: F1 B1 F1 B1 F1 B1\nrank 1 replay: F1 B1 F1 B1 F1 B1\n";
  expect_findings({
      {"AcceptsWhatTheLoopRuns", check_called(MegatronCalls::Batch,
                                              "capo 1\nplacement loop\nrank 0: F1 F1 B1 F1 B1 B1\n"
                                              "rank 1: F1 B1 F1 B1 F1 B1\n")},
      {"",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement loop\nrank 0: F1 F1 B1 B1\nrank 1: F1 F1 B1 B1\n"),
       "", because("all forwards can be warm-up")},
      {"NeedsTheMicrobatchesOfAChunkInTurn",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement loop\nrank 0: F1.1 F1.0 B1.1 B1.0\n"
                    "rank 1: F1.1 B1.1 F1.0 B1.0\n"),
       "R01@0 R01@0", because("one for each rank")},
      {"LetsWeightGradientsStandAnywhere",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement loop\nrank 0: F1 F1 B1 W1 F1 B1 B1 W1 W1\n"
                    "rank 1: F1 B1 F1 W1 B1 W1 F1 B1 W1\n")},
      {"AsksNothingWhereMegatronDoesNotCall", check_in({}, text)},
      {"AsksNothingOfASingleRank",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement chain\nrank 0: F1.1 F1.0 B1.0 B1.1\n")},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement loop\n"
                    "rank 0: F1 F1 B1 B1 F1 B1\n" +
                        right),
       "R01@4"},
      {"",
       check_called(MegatronCalls::Batch,
                    "capo 1\nplacement loop\nrank 0: F1 F1 B1 F1 B1 B1\n"
                    "rank 0 replay: F1 F1 B1 B1 F1 B1\n" +
                        right),
       "R01@4"},
  });
}

TEST(MegatronForm, IsMissedByRanksThatHoldNoChunk) {
  const std::string text = "capo 1\nchunks 0\nplacement loop\nrank 0: .\nrank 1:\n";
  EXPECT_TRUE(check_in({}, text).accepted());
  const Checked checked = check_called(MegatronCalls::Batch, text);
  ASSERT_EQ(checked.findings(), (Found{"R01@-", "R01@-"}));
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.message, "Megatron's loop does not run what stands on rank 0");
  EXPECT_TRUE(finding.labels.empty());
  EXPECT_EQ(finding.notes, (std::vector<Note>{{.text = kNote}}));
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
  EXPECT_EQ(checked(true, warm_up).findings(), Found{"R01@3"});
}

// The rules that found something, each with how often, where no finding is kept.
std::string counted(Environment environment, const std::string& text) {
  environment.assume_defaults = true;  // else findings are kept, to be compared
  const CheckResult result =
      check(check_in({}, text).input, {.findings_per_rule = 0, .environment = environment});
  EXPECT_EQ(result.verdict, Verdict::Rejected);
  EXPECT_TRUE(result.diagnostics.kept().empty());
  std::string counts;
  for (const char* rule : {"R01", "R02"}) {
    const std::size_t seen = result.diagnostics.seen(rule);
    if (seen > 0) counts += std::string(counts.empty() ? "" : " ") + std::to_string(seen) + rule;
  }
  return counts;
}

TEST(MegatronForm, CountsWhatItDoesNotDescribe) {
  const std::string head = "capo 1\nplacement loop\n";
  EXPECT_EQ(counted({.p2p = MegatronCalls::Batch},
                    head + "rank 0: F1 F1 B1 B1 F1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n"),
            "1R01");
  EXPECT_EQ(counted({.p2p = MegatronCalls::Overlap},
                    head + "rank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n"),
            "1R01");
  EXPECT_EQ(counted({.p2p = MegatronCalls::Batch, .ep_overlap = true},
                    head + "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
                           "rank 1: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1\n"),
            "1R01");
}

// The runtime's order of a configuration that Megatron itself may refuse.
std::string order_of(const mcore::Configuration& configuration) {
  const auto generated =
      megatron::orders_of({.configuration = configuration, .which = megatron::Which::Runtime});
  return print_order_file(megatron::schedule_of(generated.value()));
}

Checked check_called_of_input_not_routed(MegatronCalls calls,
                                         const mcore::Configuration& configuration) {
  return check_in({.environment = {.p2p = calls}}, order_of(configuration));
}

constexpr mcore::Configuration kShortLastGroup{
    .pipeline = 2, .virtual_stages = 2, .microbatches = 3, .group_size = 2};
constexpr mcore::Configuration kOneChunk{
    .pipeline = 2, .virtual_stages = 1, .microbatches = 4, .group_size = 2};
constexpr const char* kGroups =
    "no group of microbatches may be smaller than the number of ranks, the last group included";

TEST(InputNotRouted, ShowsTheInputThatNobodyAskedFor) {
  const Checked checked = check_called_of_input_not_routed(MegatronCalls::Overlap, kShortLastGroup);
  ASSERT_EQ(checked.findings(), (Found{"R02@6", "R02@11"})) << "the first rank and the last";
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels.size(), 1u);
  EXPECT_EQ(finding.help, (Help{.text = kGroups}));
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 6, "F2", "F(c2,m2)"}}));
}

TEST(InputNotRouted, CountsWhatItDoesNotDescribe) {
  EXPECT_EQ(counted({.p2p = MegatronCalls::Overlap}, order_of(kShortLastGroup)), "2R02");
}

TEST(InputNotRouted, ConcernsEveryWayOfCalling) {
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    const Checked checked = check_called_of_input_not_routed(calls, kShortLastGroup);
    EXPECT_EQ(checked.findings(), (Found{"R02@6", "R02@11"})) << name_of(calls);
  }
}

TEST(InputNotRouted, WithTheFlushIsAnAssertion) {
  EXPECT_EQ(
      check_called_of_input_not_routed(MegatronCalls::Flush, kShortLastGroup).first().help.text,
      kGroups);
}

TEST(InputNotRouted, DoesNotOccurInFullGroups) {
  mcore::Configuration full = kShortLastGroup;
  full.microbatches = 4;
  EXPECT_TRUE(check_called_of_input_not_routed(MegatronCalls::Overlap, full).accepted());
  EXPECT_TRUE(check_called_of_input_not_routed(MegatronCalls::Flush, full).accepted());
}

// The last group may be short of the others as long as it is as large as the pipeline.
TEST(InputNotRouted, AllowsALastGroupOfThePipelinesSize) {
  mcore::Configuration configuration{.pipeline = 3, .virtual_stages = 2, .group_size = 4};
  for (const std::int64_t microbatches : {7, 8, 11}) {
    configuration.microbatches = microbatches;
    EXPECT_TRUE(check_called_of_input_not_routed(MegatronCalls::Overlap, configuration).accepted())
        << microbatches;
  }
  for (const std::int64_t microbatches : {5, 6, 9, 10}) {
    configuration.microbatches = microbatches;
    EXPECT_FALSE(check_called_of_input_not_routed(MegatronCalls::Overlap, configuration).accepted())
        << microbatches;
  }
}

TEST(InputNotRouted, NeedsGroupsAsLargeAsThePipeline) {
  mcore::Configuration configuration{.pipeline = 3, .virtual_stages = 2, .microbatches = 4};
  configuration.group_size = 2;
  const auto findings =
      check_called_of_input_not_routed(MegatronCalls::Batch, configuration).findings();
  EXPECT_EQ(findings, (Found{"R02@2", "R02@7"}));
}

TEST(InputNotRouted, AsksNothingOfASingleRank) {
  const std::string text = "capo 1\nplacement loop\nrank 0: F1 F2 B2 B1\n";
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    EXPECT_TRUE(check_in({.environment = {.p2p = calls}}, text).accepted());
  }
}

TEST(InputNotRouted, JudgesTheReplayOrders) {
  const std::string capture =
      "capo 1\nplacement loop\nrank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";
  const Environment overlap{.p2p = MegatronCalls::Overlap};
  EXPECT_TRUE(check_in({.environment = overlap}, capture).accepted());
  const Checked replayed =
      check_in({.environment = overlap},
               capture + "rank 0 replay: F1 F2 F1 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n");
  ASSERT_FALSE(replayed.findings().empty());
  EXPECT_NE(replayed.first().message.find("rank 0's replay order"), std::string::npos)
      << replayed.first().message;
}

TEST(InputNotRouted, OfACaptureOrderIsReportedOnce) {
  mcore::Configuration configuration = kShortLastGroup;
  std::string text = order_of(configuration);
  text += "rank 1 replay: F1 F1 F2 B2 F2 B2 F1 B1 F2 B1 B2 B1\n";
  EXPECT_EQ(check_in({.environment = {.p2p = MegatronCalls::Overlap}}, text).findings(),
            (Found{"R02@6", "R02@11", "R02@11"}))
      << "rank 1's capture and replay order each, rank 0's once";
}

TEST(InputNotRouted, StandsHereAndNotThere) {
  expect_findings({
      {"IsTheFirstForwardWhereTheFlushFindsNoWarmUp",
       check_called_of_input_not_routed(MegatronCalls::Flush, kOneChunk), "R02@0"},
      {"", check_called_of_input_not_routed(MegatronCalls::Overlap, kOneChunk)},
      {"DoesNotMindShortGroupsOfOneChunk",
       check_called_of_input_not_routed(MegatronCalls::Batch, {.pipeline = 2, .microbatches = 3})},
      {"LeavesAReplayThatTransfersByItself",
       check_in({.environment = {.p2p = MegatronCalls::Batch}},
                "capo 1\nplacement chain\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n"
                "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n"),
       "Y01@1 Y01@0", warns()},
      // The capture of rank 0 writes its transfers, so nothing is said of Megatron's calls there.
      {"JudgesAReplayThatLeavesItsTransfersToMegatron",
       check_in({.environment = {.p2p = MegatronCalls::Batch}},
                "capo 1\nplacement loop\n"
                "rank 0: F1.0 send-F1.0 recv-F2.0 F2.0 send-F2.0 recv-B2.0 B2.0 "
                "send-B2.0 recv-B1.0 B1.0\n"
                "rank 0 replay: F1.0 F2.0 B2.0 B1.0\n"
                "rank 1: F1.0 F2.0 B2.0 B1.0\n"),
       "R02@1 R02@3"},
  });
}

// Whatever rank 0 replays, what is wrong at an entry of rank 1 is said once.
TEST(InputNotRouted, SaysOnceWhatIsWrongInBothOrders) {
  std::vector<std::string> forwards{"F1.0", "F1.1", "F2.0", "F2.1"};
  std::size_t faulty = 0;
  const auto statement = [](std::string of, const std::vector<std::string>& first) {
    for (const std::string& word : first) of += " " + word;
    return of + " B2.0 B2.1 B1.0 B1.1\n";
  };
  std::vector<std::string> captured = forwards;
  do {
    std::vector<std::string> replayed = forwards;
    do {
      const Checked checked =
          check_in({.environment = {.p2p = MegatronCalls::Flush}},
                   "capo 1\nmicrobatches 2\nplacement loop\n" + statement("rank 0:", captured) +
                       statement("rank 0 replay:", replayed) + statement("rank 1:", captured));
      std::set<std::pair<std::string, std::size_t>> places;
      for (const Diagnostic& finding : checked.of(Family::Routing)) {
        const WitnessEntry& task = finding.witness.tasks.at(0);
        if (task.rank != 1) continue;
        ++faulty;
        EXPECT_TRUE(places.emplace(finding.rule, task.index).second) << finding.message;
      }
    } while (std::next_permutation(replayed.begin(), replayed.end()));
  } while (std::next_permutation(captured.begin(), captured.end()));
  EXPECT_GT(faulty, 100u);
}

}  // namespace
}  // namespace capo

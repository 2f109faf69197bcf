// `capo convert` between all forms: what goes there and back is the same, keeps its verdict, and
// what a form cannot express is refused with the reason.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

using Words = std::vector<std::string>;

Outcome convert(const std::string& order, const std::string& to, const Words& flags = {}) {
  Words arguments{"convert", "--order", order, "--to", to};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return run_capo(arguments);
}

std::string converted(const std::string& order, const std::string& to, const Words& flags = {}) {
  const Outcome outcome = convert(order, to, flags);
  EXPECT_EQ(outcome.exit_code, 0) << order << " to " << to << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

int verdict_of(const std::string& order) {
  return run_capo({"check", "--order", order}).exit_code;
}

void expect_refusal(const Outcome& outcome, const std::string& to, const std::string& reason) {
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("error: cannot be written as " + to + ": ")) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, reason)) << outcome.err;
}

// --- there and back -----------------------------------------------------------------------------

const Words kTeLists{
    "[1, -1]\n",
    "[1, 2, -2, -1]\n",
    "[1, 1, 2, 2, -2, -2.5, -2, -2.5, -1, -1]\n",
    "[1, 1, -1, -1.5, -1, -1.5]\n",
    "[1]\n",
    "[-1, 1]\n",
    "[1, 1, 1, -1]\n",
};

TEST(Convert, ATeListComesBackFromEveryForm) {
  for (const std::string& list : kTeLists) {
    for (const char* form : {"te", "order", "json", "csv"}) {
      SCOPED_TRACE(list + form);
      EXPECT_EQ(converted(converted(list, form), "te"), list);
    }
  }
}

TEST(Convert, ATableComesBackFromEveryForm) {
  for (const std::string& table :
       Words{"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0F0,,0B0\n,1F0,1B0\n", "0F0,0I0,0W0\n",
             "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n",
             "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
             "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD\n"}) {
    for (const char* form : {"csv", "order", "json"}) {
      SCOPED_TRACE(table + form);
      EXPECT_EQ(converted(converted(table, form), "csv"), table);
    }
  }
}

TEST(Convert, AnOrderFileComesBackFromJson) {
  for (const std::string& file : Words{"capo 1\nranks 1\nrank 0: F1 B1\n",
                                       "capo 1\nranks 2\nmicrobatches 2\nplacement loop\nrank 0: "
                                       "F1 F1 B1 B1\nrank 1: F1 B1 F1 B1\n",
                                       "capo 1\nranks 1\nrank 0 chunks 2\nrank 0 layers 1,2\nrank "
                                       "0 delayed 2\nrank 0: F1 F2 B2 W2 B1\n",
                                       "capo 1\nranks 1\nrank 0: F1.0 (F1.1 B1.0) . B1.1\n",
                                       "capo 1\nranks 1\nrank 0: F1.0 dispatch-F1.0 "
                                       "(combine-F1.0 F1.1) B1.0 dispatch-B1.0 combine-B1.0\n",
                                       "capo 1\nranks 1\nrank 0: F1 B1\nrank 0 replay: F1 B1\n"}) {
    SCOPED_TRACE(file);
    const std::string printed = converted(file, "order");
    EXPECT_EQ(converted(converted(file, "json"), "order"), printed);
    EXPECT_EQ(converted(printed, "order"), printed);
  }
}

TEST(Convert, TheVerdictStays) {
  Words orders = kTeLists;
  orders.insert(orders.end(), {"0F0,0B0\n1F0,1B0\n", "0F0,0F0,0B0\n", "0B0,0F0\n", "0F0,0I0,0W0\n",
                               "capo 1\nplacement loop\nrank 0: F1 B1\nrank 1: F1 B1\n",
                               "capo 1\nmicrobatches 2\nrank 0: F1 B1\n"});
  for (const std::string& order : orders) {
    for (const char* form : {"order", "json"}) {
      SCOPED_TRACE(order + form);
      EXPECT_EQ(verdict_of(converted(order, form)), verdict_of(order));
    }
  }
}

TEST(Convert, JsonIsTheSchedulesOwnForm) {
  const json schedule = json::parse(converted("[1, 2, -2, -2.5, -1]", "json", {"--delayed", "2"}));
  EXPECT_EQ(schedule.at("schema"), 1);
  ASSERT_EQ(schedule.at("ranks").size(), 1U);
  EXPECT_EQ(schedule.at("ranks")[0].at("order"), (json{"F1", "F2", "B2", "W2", "B1"}));
}

TEST(Convert, DeclarationsAreCarriedOver) {
  const Words flags{"--layers-per-chunk", "1,2", "--delayed", "none", "--microbatches", "1"};
  const std::string file = converted("[1, 2, -2, -1]", "order", flags);
  for (const char* statement : {"microbatches 1\n", "layers 1,2\n", "delayed none\n"}) {
    EXPECT_TRUE(holds(file, statement)) << file;
  }
  EXPECT_EQ(verdict_of(file), 0);
}

TEST(Convert, TheInputMayBeAFileOrStandardInput) {
  const Outcome from_stdin = run_capo({"convert", "-", "--to", "te"}, {.input = "1 -1"});
  EXPECT_EQ(from_stdin.exit_code, 0);
  EXPECT_EQ(from_stdin.out, "[1, -1]\n");
  const Outcome from_file =
      run_capo({"convert", "accepted-no-last-line-end-crlf.te", "--to", "te"},
               {.directory = CAPO_SOURCE_DIR "/tests/corpus/input/line-ends"});
  EXPECT_EQ(from_file.out, "[1, -1]\n");
}

TEST(Convert, StandardOutputIsDash) {
  EXPECT_EQ(converted("1 -1", "te", {"-o", "-"}), "[1, -1]\n");
  EXPECT_EQ(converted("1 -1", "te", {"--output=-"}), "[1, -1]\n");
}

// --- one rank of several ------------------------------------------------------------------------

TEST(ConvertRank, PicksOne) {
  const std::string table = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(converted(table, "te", {"--rank", "0"}), "[1, 1, -1, -1]\n");
  EXPECT_EQ(converted(table, "te", {"--rank", "1"}), "[1, -1, 1, -1]\n");
  EXPECT_EQ(converted(table, "csv", {"--rank", "1"}), "1F0,1B0,1F1,1B1\n");
}

// How many stages there are is said of all ranks; of one by itself it would be wrong.
TEST(ConvertRank, LeavesTheStagesOfTheOthers) {
  const std::string loop =
      "capo 1\nstages 4\nplacement loop\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n";
  EXPECT_EQ(converted(loop, "te", {"--rank", "1"}), "[1, 2, -2, -1]\n");
  EXPECT_EQ(converted(loop, "csv", {"--rank", "1"}), "1F0,3F0,3B0,1B0\n");
}

TEST(ConvertRank, BeyondTheLastIsAUsageError) {
  const Outcome outcome = convert("0F0,0B0\n1F0,1B0\n", "te", {"--rank", "2"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "ranks 0 to 1")) << outcome.err;
}

TEST(ConvertRank, IsNeededForATeList) {
  const Outcome outcome = convert("0F0,0B0\n1F0,1B0\n", "te");
  expect_refusal(outcome, "te", "--rank");
  EXPECT_FALSE(holds(outcome.err, "--lossy")) << "it does not help:\n" << outcome.err;
}

// --- with the transfers that ranks perform -------------------------------------------------------

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// What --p2p works out is written down, so that a reader needs the other flags and that one not.
TEST(ConvertLower, KeepsTheVerdictOrSaysWhatIsLost) {
  const Outcome order = run_capo({"generate", "megatron", "--pp", "2", "--vp", "2",
                                  "--microbatches", "4", "--rank", "all", "--format", "order"});
  ASSERT_EQ(order.exit_code, 0);
  int written = 0;
  int refused = 0;
  for (const std::string calls : {"batch", "overlap", "flush"}) {
    for (const Words& flags :
         {Words{}, Words{"--comm", "per-edge"}, Words{"--transfers", "buffered"}}) {
      const Words judged = with({"check", "--order", order.out, "--p2p", calls}, flags);
      const int verdict = run_capo(judged).exit_code;
      for (const char* form : {"csv", "order", "json"}) {
        SCOPED_TRACE(calls + " " + form + " " + (flags.empty() ? "" : flags.back()));
        const Outcome outcome = convert(order.out, form, with({"--lower", "--p2p", calls}, flags));
        if (outcome.exit_code == 0) {
          ++written;
          EXPECT_EQ(run_capo(with({"check", "--order", outcome.out}, flags)).exit_code, verdict);
        } else {
          ++refused;
          expect_refusal(outcome, form,
                         calls == "batch" ? "fused groups" : "which communicator it goes through");
        }
      }
    }
  }
  EXPECT_GT(written, 0);
  EXPECT_GT(refused, 0);
}

TEST(ConvertLower, LossyWritesWhatItCan) {
  const std::string order =
      "capo 1\nmicrobatches 4\nplacement loop\n"
      "rank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";
  const Words flags{"--lower", "--p2p", "flush"};
  const Outcome refused = convert(order, "order", flags);
  expect_refusal(refused, "order", "the orders are rejected");
  EXPECT_TRUE(holds(refused.err, "--lossy")) << refused.err;
  EXPECT_TRUE(holds(converted(order, "order", with(flags, {"--lossy"})), "send-F1.0"));
}

// --- refusals -----------------------------------------------------------------------------------

TEST(ConvertRefusal, SaysWhatATeListCannotExpress) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"0F0,,0B0\n", "idle slots"},
      {"0F0,0SEND_F0,0B0\n", "transfers"},
      {"0F0,0UNSHARD,0B0\n", "whole stages"},
      {"capo 1\nrank 0: F1 dispatch-F1 B1\n", "dispatch and combine"},
      {"capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n", "composites"},
      {"capo 1\nrank 0: F1.0 F1.1 B1.1 B1.0\n", "first in, first out"},
      {"0F0,0F1,0I0,0W0,0B1\n", "splits all of its backwards or none"},
      {"capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1\n", "replay"},
      {"capo 1\nrank 0: F1 B1\nrank 1: F1 B1\n", "one rank"},
  };
  for (const auto& [order, reason] : refused) {
    SCOPED_TRACE(order);
    expect_refusal(convert(order, "te"), "te", reason);
  }
}

TEST(ConvertRefusal, SaysWhatATableCannotExpress) {
  expect_refusal(convert("[1, -1]", "csv", {"--layers-per-chunk", "2"}), "csv", "layers");
  expect_refusal(convert("capo 1\nrank 0: F1 combine-F1 B1\n", "csv"), "csv",
                 "a table has no notation for dispatch and combine (<order>:2:12: `combine-F1`)");
  expect_refusal(convert("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1\n", "csv"), "csv", "replay");
}

// Each is rejected as it is, and would be accepted, or rejected for something else, without what it
// declares.
TEST(ConvertRefusal, SaysWhichDeclarationIsLost) {
  const std::string stages =
      "capo 1\nplacement custom\nrank 0 stages 0\nrank 1 stages\nrank 2 stages 1\n"
      "rank 0: F1.0 B1.0\nrank 1:\nrank 2: F1.0 B1.0\n";
  struct Lost {
    std::string order;
    std::string form;
    std::string reason;
  };
  const std::vector<Lost> lost{
      {"delayed 1\nrank 0: F1.0 B1.0\n", "te", "chunk 1 delays its weight gradients"},
      {"delayed none\nrank 0: F1.0 B1.0 W1.0\n", "te", "(<order>:3:14: `B1.0`)"},
      {"delayed none\nrank 0: F1.0 B1.0 W1.0\n", "csv", "(<order>:3:14: `B1.0`)"},
      {"microbatches 3\nrank 0: F1.0 B1.0\n", "te", "microbatches the step has (declared 3, "},
      {"microbatches 3\nrank 0: F1.0 B1.0\n", "csv", "microbatches the step has (declared 3, "},
      {"chunks 3\nrank 0: F1.0 B1.0\n", "te", "chunks there are (declared 3, shown 1)"},
      {"chunks 3\nrank 0: F1.0 B1.0\n", "csv", "chunks there are (declared 3, shown 1)"},
      {"stages 3\nplacement chain\nrank 0: F1.0 B1.0\n", "te", "P02"},
      {"stages 3\nplacement chain\nrank 0: F1.0 B1.0\n", "csv", "stages the model has"},
      {"placement chain\nrank 0: F2.0 F1.0 B1.0 B2.0\n", "te", "D03 (<order>:3:"},
      {"rank 0: F2.0 F1.0 B1.0 B2.0\n", "csv", "D03"},
      {"layers 2\nrank 0: F1.0 B1.0\n", "te", "layers"},
      {"layers none\nrank 0: F1.0 B1.0\n", "csv", "layers"},
  };
  for (const auto& [order, form, reason] : lost) {
    SCOPED_TRACE(order + form);
    const Outcome outcome = convert("capo 1\n" + order, form);
    expect_refusal(outcome, form, reason);
    EXPECT_TRUE(holds(outcome.err, "--lossy")) << outcome.err;
    EXPECT_EQ(convert("capo 1\n" + order, form, {"--lossy"}).exit_code, 0);
  }
  expect_refusal(convert(stages, "csv"), "csv", "no chunks of rank 1");
  EXPECT_EQ(converted(stages, "csv", {"--lossy"}), "0F0,0B0\n\n1F0,1B0\n");
}

TEST(ConvertRefusal, OfWhatTheFlagsDeclareIsTheSame) {
  expect_refusal(convert("[1, -1]", "te", {"--microbatches", "3"}), "te", "microbatches");
  expect_refusal(convert("[1, -1]", "csv", {"--delayed", "3"}), "csv", "(declared 3, shown 1)");
  expect_refusal(convert("0F0,0B0\n", "csv", {"--stage-to-rank", "0,0"}), "csv", "chunks");
  expect_refusal(convert("0F0,0B0\n", "csv", {"--stages", "2"}), "csv", "stages");
  EXPECT_EQ(converted("0F0,0B0\n1F0,1B0\n", "csv", {"--stage-to-rank", "0,1"}),
            "0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(converted("[1, 2, -2, -1]", "te", {"--layers-per-chunk", "1,1", "--delayed", "none"}),
            "[1, 2, -2, -1]\n");
}

TEST(ConvertRefusal, NamesThePlace) {
  const Outcome outcome = convert("capo 1\nrank 0: F1.0 F1.1 B1.1 B1.0\n", "te");
  EXPECT_TRUE(holds(outcome.err, "<order>:2:19: `B1.1`")) << outcome.err;
}

TEST(ConvertRefusal, WhatIsNoActionGoesIntoNoForm) {
  for (const char* form : {"te", "order", "json", "csv"}) {
    SCOPED_TRACE(form);
    const Outcome list = convert("[1, nan, -1]", form);
    expect_refusal(list, form, "<order>:1:5: `nan`");
    EXPECT_FALSE(holds(list.err, "--lossy")) << "it does not help:\n" << list.err;
    const Outcome table = convert("0F0,0B0x\n", form);
    expect_refusal(table, form, "<order>:1:5: `0B0x`");
    EXPECT_FALSE(holds(table.err, "--lossy")) << "it does not help:\n" << table.err;
  }
}

TEST(ConvertRefusal, AQuotedCellIsReadable) {
  const Outcome outcome = convert("0F0\x1b[31mx,0B0\n", "te");
  expect_refusal(outcome, "te", "cells");
  EXPECT_FALSE(holds(outcome.err, "\x1b")) << "a raw ESC";
}

TEST(ConvertRefusal, AMalformedInputIsReportedOnStandardError) {
  const Outcome outcome = convert("[1, -1", "order");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(
      outcome.err.starts_with("error[I01]: this bracket is never closed\n --> <order>:1:1\n"))
      << outcome.err;
  EXPECT_EQ(convert("[1, -1]", "order", {"--max-entries", "1"}).exit_code, 4);
}

TEST(ConvertRefusal, ATableWithoutARowIsNoSchedule) {
  for (const char* form : {"te", "order", "json", "csv"}) {
    for (const Words& flags : {Words{}, Words{"--rank", "0"}}) {
      SCOPED_TRACE(form);
      const Outcome outcome = convert("{\"csv\":[]}", form, flags);
      EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
      EXPECT_TRUE(outcome.err.starts_with("error[I01]: ")) << outcome.err;
    }
  }
}

// --- lossy --------------------------------------------------------------------------------------

TEST(ConvertLossy, LeavesOutWhatTheFormHasNoNotationFor) {
  EXPECT_EQ(converted("0F0,,0UNSHARD,0B0,0REDUCE_GRAD\n", "te", {"--lossy"}), "[1, -1]\n");
  EXPECT_EQ(converted("0F0,0SEND_F0,0B0\n", "te", {"--lossy"}), "[1, -1]\n");
  EXPECT_EQ(converted("capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n", "te", {"--lossy"}),
            "[1, 1, -1, -1]\n");
  EXPECT_EQ(converted("capo 1\nrank 0: F1 dispatch-F1 B1 combine-B1\n", "te", {"--lossy"}),
            "[1, -1]\n");
  EXPECT_EQ(converted("capo 1\nrank 0: F1 (dispatch-F1 B1)\n", "csv", {"--lossy"}), "0F0,0B0\n");
  EXPECT_EQ(converted("[1, -1]", "csv", {"--lossy", "--layers-per-chunk", "2"}), "0F0,0B0\n");
}

TEST(ConvertLossy, ChangesNothingThatIsComputed) {
  expect_refusal(convert("capo 1\nrank 0: F1.0 F1.1 B1.1 B1.0\n", "te", {"--lossy"}), "te",
                 "first in, first out");
  expect_refusal(convert("0F0,0B0x\n", "te", {"--lossy"}), "te", "cells");
  expect_refusal(convert("[1, nan]", "te", {"--lossy"}), "te", "no action");
}

// A replay order of its own is computed, so it is not left out without a word.
TEST(ConvertLossy, KeepsAReplayOrderThatDiffers) {
  const std::string file = "capo 1\nrank 0: F1 F1 B1 B1\nrank 0 replay: F1 B1 F1 B1\n";
  expect_refusal(convert(file, "te", {"--lossy"}), "te", "replay");
}

}  // namespace
}  // namespace capo

// `capo convert` between all forms: an order that goes there and back is the same and keeps its
// verdict. The words of refusals are cases of tests/corpus/cli/convert.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

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

TEST(Convert, TheInputMayBeAFileOrStandardInput) {
  const Outcome from_stdin = run_capo({"convert", "-", "--to", "te"}, {.input = "1 -1"});
  EXPECT_EQ(from_stdin.exit_code, 0);
  EXPECT_EQ(from_stdin.out, "[1, -1]\n");
  const Outcome from_file =
      run_capo({"convert", "accepted-no-last-line-end-crlf.te", "--to", "te"},
               {.directory = CAPO_SOURCE_DIR "/tests/corpus/input/line-ends"});
  EXPECT_EQ(from_file.out, "[1, -1]\n");
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// --lower writes down what --p2p works out, so a reader needs the other flags but not that one.
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

TEST(ConvertRefusal, AQuotedCellIsReadable) {
  const Outcome outcome = convert("0F0\x1b[31mx,0B0\n", "te");
  expect_refusal(outcome, "te", "cells");
  EXPECT_FALSE(holds(outcome.err, "\x1b")) << "a raw ESC";
}

// Four ranks' stages on two: with receives put off, torch writes a table that hangs.
const std::string kInterleaved =
    "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n";

TEST(ConvertForTorch, WritesWhatTheNewestTorchDoesAndNothingElse) {
  const std::string expected =
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0\n";
  const std::string table = "0F0,0B0\n1F0,1B0\n";
  for (const Words& flags : std::vector<Words>{
           {"--lower"}, {"--lower", "--for", "torch"}, {"--lower", "--for", "torch@2.15"}})
    EXPECT_EQ(converted(table, "csv", flags), expected);
  EXPECT_EQ(converted(table, "csv", {"--lower", "--for", "torch@2.11"}),
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  EXPECT_EQ(converted(table, "csv", {"--lower", "--rank", "1"}),
            expected.substr(expected.find('\n') + 1));
  EXPECT_EQ(converted("[1, -1]", "csv", {"--lower"}),
            "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n");
  EXPECT_EQ(converted(table, "order", {"--lower", "--for", "torch@2.15", "--rank", "0"}),
            "capo 1\n"
            "ranks 1\n"
            "stages 2\n"
            "microbatches 1\n"
            "placement custom\n"
            "rank 0 delayed none\n"
            "rank 0 stages 0\n"
            "rank 0: unshard1 F1.0 send-F1.0 recv-B1.0 B1.0 wait-send-F1.0 reduce1 wait-reduce1 "
            "reshard1\n");
}

TEST(ConvertForTorch, TakesEachPolicy) {
  const auto lowered = [](const Words& flags) {
    Words all{"--lower", "--for", "torch@2.15"};
    all.insert(all.end(), flags.begin(), flags.end());
    return convert(kInterleaved, "csv", all);
  };
  EXPECT_EQ(lowered({}).err, "");
  for (const char* defers : {"--defer-pp-recv", "--defer-pp-recv=torch"}) {
    const Outcome outcome = lowered({defers});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(outcome.err.starts_with("warning: capo rejects the lowered table, T"))
        << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_TRUE(holds(outcome.out, "2SEND_F1,2RECV_B0,2B0")) << outcome.out;
  }
  EXPECT_TRUE(holds(lowered({"--max-outstanding-sends", "1"}).out, "0F1,0WAIT_SEND_F0,0SEND_F1"));
  EXPECT_TRUE(
      holds(lowered({"--defer-reduce-grad-wait"}).out, "2REDUCE_GRAD,2RESHARD,0RECV_B0,0B0"))
      << lowered({"--defer-reduce-grad-wait"}).out;
  EXPECT_TRUE(lowered({"--max-active-stages", "1"}).out.starts_with("0UNSHARD,0F0"));
  EXPECT_TRUE(lowered({}).out.starts_with("0UNSHARD,2UNSHARD,0F0"));
  EXPECT_TRUE(lowered({"--unshard-lookahead", "auto"}).out.starts_with("0UNSHARD,2UNSHARD,0F0"));
  EXPECT_TRUE(lowered({"--unshard-lookahead", "full"}).out.starts_with("0UNSHARD,2UNSHARD,0F0"));
  EXPECT_TRUE(lowered({"--unshard-lookahead", "1,2"}).out.starts_with("0UNSHARD,0F0"));
}

TEST(ConvertForTorch, PutsReceivesOffWhereThatIsSafe) {
  const Outcome outcome =
      convert(kInterleaved, "csv", {"--lower", "--for", "torch@2.15", "--defer-pp-recv=safe"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.err.starts_with("note: ")) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, "of 12 receives are put off; simulated (per-rank")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_NE(outcome.out, converted(kInterleaved, "csv", {"--lower"}));
}

TEST(ConvertForTorch, RefusesInTorchsWords) {
  const auto expect_raised = [](const std::string& table, const Words& flags,
                                const std::string& text) {
    Words all{"--lower", "--form", "csv"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Outcome outcome = convert(table, "csv", all);
    EXPECT_EQ(outcome.exit_code, 1) << table;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(holds(outcome.err, text)) << outcome.err;
  };
  expect_raised(kInterleaved, {"--max-outstanding-sends", "0"},
                "ValueError: Cannot satisfy max_outstanding_sends=0 on pipeline rank 0 before "
                "0SEND_F0. Outstanding: []. Increase the limit or change the schedule.");
  expect_raised(kInterleaved, {"--max-outstanding-sends", "-1"},
                "ValueError: max_outstanding_sends must be a non-negative integer");
  expect_raised(kInterleaved, {"--max-active-stages", "0"},
                "ValueError: max_active_stages must be a positive integer, got 0");
  expect_raised(kInterleaved, {"--unshard-lookahead", "1,2,3"},
                "ValueError: unshard_lookahead tuple length must equal the pipeline degree (2), "
                "got 3");
  expect_raised("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", {},
                "ValueError: Pipeline sends at rank 0 have no matching wait: 0SEND_F0");
  expect_raised("0F0,0B0,0REDUCE_GRAD\n", {},
                "ValueError: Expected compute-only schedule but found communication action "
                "'0REDUCE_GRAD' at rank 0, position 2.");
  expect_raised("0F0,0f1\n", {}, "RuntimeError: Invalid action string: 0f1, should be formatted");
  expect_raised("0B0,0F0\n", {}, "AssertionError: Rank 0, step 0: Running Full Backward");
}

TEST(ConvertForTorch, RefusesFlagsThatHaveNoUse) {
  const auto expect_usage = [](const Words& flags, const std::string& text) {
    const Outcome outcome = convert(kInterleaved, "csv", flags);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_TRUE(holds(outcome.err, text)) << outcome.err;
  };
  for (const char* flag :
       {"--for=torch@2.15", "--defer-pp-recv", "--max-outstanding-sends=1",
        "--defer-reduce-grad-wait", "--max-active-stages=1", "--unshard-lookahead=auto"})
    expect_usage({flag}, "needs --lower");
  expect_usage({"--lower", "--for", "torch@2.12"}, "did you mean `torch@2.1");
  expect_usage({"--lower", "--for", "torch@2.11", "--defer-pp-recv"}, "has none of the policies");
  expect_usage({"--lower", "--defer-pp-recv=early"}, "early");
  expect_usage({"--lower", "--for", "torch", "--p2p", "flush"}, "is for Megatron's transfers");
}

}  // namespace
}  // namespace capo

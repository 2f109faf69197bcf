// `capo convert` between all forms: an order that goes there and back is the same and keeps its
// verdict. The words of refusals are cases of tests/corpus/cli/convert.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace capo

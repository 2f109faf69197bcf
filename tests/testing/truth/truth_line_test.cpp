// Printing a line then reading it is the identity, and half a line is none.

#include "testing/truth/truth_line.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

TruthLine whole_line() {
  return {.number = 12,
          .order = "capo 1\nrank 0: F1 B1\n",
          .module = "linear bf16",
          .plan = "te",
          .graphs = "per-step",
          .replicas = 2,
          .fault = "weight-stream",
          .across = "per-pair, buffered",
          .verdict = "rejected",
          .rules = {"B02", "E01"},
          .came = Came::Seen,
          .reason = "",
          .engine = "cuda",
          .ran = true,
          .bit_equal = false,
          .within_bounds = true,
          .float64 = 0.00123,
          .beyond = {"input that layer 0 of chunk 1 of rank 0 read, microbatch 2"},
          .other_ways = 1,
          .gradients = 4,
          .replays = 3,
          .victims = {.static_input = {{0, 1, 2}}, .other = {{1, 1, 0}}},
          .predicted = {.grad_output = {{0, 2, 1}}},
          .host_victims = run::Victims{.grad_input = {{2, 1, 3}}}};
}

TEST(TruthLineText, ReadsBackAsItWas) {
  const TruthLine line = whole_line();
  EXPECT_EQ(read_truth_line(to_text(line)), line);
  for (const Came came :
       {Came::Right, Came::Seen, Came::Explained, Came::NotRun, Came::Disagrees}) {
    TruthLine other = line;
    other.came = came;
    other.reason = "why";
    EXPECT_EQ(read_truth_line(to_text(other)), other);
  }
}

TEST(TruthLineText, OfWhatDidNotRunSaysNothingOfARun) {
  TruthLine line{.number = 1, .verdict = "rejected", .came = Came::NotRun, .reason = "why"};
  EXPECT_EQ(to_text(line).find("bit_equal"), std::string::npos);
  EXPECT_EQ(read_truth_line(to_text(line)), line);
}

TEST(TruthLineText, IsOneLine) {
  EXPECT_EQ(to_text(whole_line()).find('\n'), std::string::npos);
}

TEST(TruthLineText, OfAVerdictOrAWayToComeThatThereIsNotIsNone) {
  TruthLine line = whole_line();
  for (const char* verdict : {"accepted", "rejected", "no-verdict"}) {
    line.verdict = verdict;
    EXPECT_EQ(read_truth_line(to_text(line)), line);
  }
  for (const char* verdict : {"", "Accepted", "right", "undecided"}) {
    line.verdict = verdict;
    EXPECT_FALSE(read_truth_line(to_text(line))) << verdict;
  }
  std::string text = to_text(whole_line());
  text.replace(text.find("\"seen\""), 6, "\"scene\"");
  EXPECT_FALSE(read_truth_line(text));
}

TEST(TruthLineText, CutOffIsNone) {
  const std::string text = to_text(whole_line());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(read_truth_line(std::string_view(text).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(read_truth_line("{}"));
  EXPECT_FALSE(read_truth_line(R"({"n":"one"})"));
}

}  // namespace
}  // namespace capo::testing

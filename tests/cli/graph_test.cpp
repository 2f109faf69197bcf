// `capo graph` as a user runs it, and Graphviz on what comes out.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

class Graph : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("deadlock.csv",
                  "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  }

  [[nodiscard]] Outcome graph(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "graph");
    return run_capo(arguments, {.directory = folder_.path()});
  }
  // The exit status of `dot -Tcanon` on a file here.
  [[nodiscard]] int dot(const std::string& file) const {
    const std::string command =
        "dot -Tcanon '" + (folder_.path() / file).string() + "' > /dev/null";
    return std::system(command.c_str());
  }

  ScratchFolder folder_;
};

TEST_F(Graph, GraphvizReadsWhatIsWritten) {
  const Outcome outcome = graph({"deadlock.csv", "-o", "out.dot"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(dot("out.dot"), 0);
}

TEST_F(Graph, WithoutAFileItGoesToStandardOutput) {
  const Outcome outcome = graph({"deadlock.csv", "--collapse"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("digraph capo {\n"));
}

TEST_F(Graph, AFileThatIsAPictureByItsNameIsRefused) {
  const Outcome outcome = graph({"deadlock.csv", "-o", "step.svg"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("write `step.dot`, of which `dot -Tsvg` makes a picture"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "step.svg"));
}

TEST_F(Graph, TooLargeIsExitCodeFour) {
  const Outcome outcome = graph({"deadlock.csv", "--max-nodes", "3"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("--collapse"), std::string::npos);
}

TEST_F(Graph, ABrokenOrderIsDrawnAsFarAsItGoes) {
  const Outcome outcome = graph({"--order", "1 -1 -1", "-o", "out.dot"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(dot("out.dot"), 0);
  EXPECT_NE(folder_.read("out.dot").find("error[S15]"), std::string::npos);
}

// The order of TransformerEngine's pull request was a ribbon of 6,304 by 328 points.
TEST_F(Graph, ALongOrderIsAPage) {
  const Outcome outcome = graph({CAPO_SOURCE_DIR "/examples/te2376/order.te"});
  const std::size_t at = outcome.out.find("bb=\"0,0,") + 8;
  const std::size_t comma = outcome.out.find(',', at);
  const double width = std::stod(outcome.out.substr(at));
  const double height = std::stod(outcome.out.substr(comma + 1));
  EXPECT_LT(width, 1000);
  EXPECT_GT(width, height);
  EXPECT_LT(width, 2 * height);
  const Outcome wide = graph({CAPO_SOURCE_DIR "/examples/te2376/order.te", "--columns", "1000"});
  EXPECT_GT(std::stod(wide.out.substr(wide.out.find("bb=\"0,0,") + 8)), 2 * width);
}

TEST_F(Graph, RanksAndWindowsThatAreNoneAreUsageErrors) {
  for (const char* ranks : {"2", "x", "1-0", "0-2", "-1", ""}) {
    const Outcome outcome = graph({"deadlock.csv", std::string("--ranks=") + ranks});
    EXPECT_EQ(outcome.exit_code, *ranks == '\0' ? outcome.exit_code : 2) << ranks;
  }
  for (const char* window : {"3", "4:4", "5:4", "a:b", "1:"}) {
    EXPECT_EQ(graph({"deadlock.csv", std::string("--window=") + window}).exit_code, 2) << window;
  }
  EXPECT_EQ(graph({"deadlock.csv", "--ranks", "0-1", "--window", "0:4"}).exit_code, 0);
}

TEST_F(Graph, TheEnvironmentIsDrawn) {
  const Outcome outcome = graph({"--order", "2 1 -1 -2", "--topology", "chain"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("class=witness"), std::string::npos);
}

// --- what check judges ---------------------------------------------------------------------------

constexpr const char* kHurt = "[1, -1, 1, -1.5, -1, -1.5]";

TEST_F(Graph, ThePlanIsLookedAtAsCheckDoes) {
  const std::vector<std::string> flags{"--order", kHurt, "--plan", "te", "--modules", "linear"};
  const Outcome outcome = graph(flags);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("rejected, B01"), std::string::npos) << outcome.out;
  EXPECT_NE(graph({"--order", kHurt, "--plan", "safe"}).out.find("accepted"), std::string::npos);
}

TEST_F(Graph, APlanOfTheModelFileIsTheSame) {
  folder_.write("model.json", R"({"schema": 1, "plan": "te",
    "modules": {"l": {"kind": "linear"}}, "layers": "l"})");
  const Outcome outcome = graph({"--order", kHurt, "--model", "model.json"});
  EXPECT_EQ(outcome.out, graph({"--order", kHurt, "--plan", "te", "--modules", "linear"}).out)
      << outcome.err;
  EXPECT_EQ(graph({"--order", kHurt, "--model", "model.json", "--plan", "safe"}).exit_code, 2);
}

TEST_F(Graph, AFlagOfAPlanThatThereIsNotIsAUsageError) {
  const Outcome outcome = graph({"--order", kHurt, "--budget", "1GiB"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("needs --plan"), std::string::npos) << outcome.err;
  EXPECT_EQ(graph({"--order", kHurt, "--modules", "linear,linear"}).exit_code, 2);
}

}  // namespace
}  // namespace capo

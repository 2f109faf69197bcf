// The line that a long command shows on a terminal. That it appears after a second is not tested,
// since no test depends on a clock; that nothing is written where nobody watches is, by every test
// of the command line that compares standard error.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace capo {
namespace {

// This is what a terminal showed of a command, and the status that it left.
struct Watched {
  std::string shown;
  int status = 0;
};

// Starts a command on a terminal of its own. One that is to be interrupted is as soon as it has
// shown its line.
Watched watched(std::vector<std::string> arguments, bool interrupted) {
  const std::string line = "capo: " + arguments.front() + ", ";
  std::string name = "capo";
  std::vector<char*> words{name.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    execv(testing_support::program_under_test(), words.data());
    _exit(127);
  }
  Watched watched;
  std::array<char, 256> buffer{};
  while (!interrupted || watched.shown.find(line) == std::string::npos) {
    const ssize_t got = read(terminal, buffer.data(), buffer.size());
    if (got <= 0) break;
    watched.shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (interrupted) kill(child, SIGINT);
  waitpid(child, &watched.status, 0);
  close(terminal);
  return watched;
}

TEST(Progress, IsShownOnATerminalAndCtrlCStopsAtOnce) {
  const Watched sweep =
      watched({"sweep", "zbv-1p", "zbv-1.5p", "zbv-2p", "--ranks", "32", "--microbatches",
               "2000,2001,2002,2003,2004,2005,2006,2007,2008,2009", "--threads", "1"},
              true);
  EXPECT_NE(sweep.shown.find("of 30"), std::string::npos) << sweep.shown;
  ASSERT_TRUE(WIFEXITED(sweep.status));
  EXPECT_EQ(WEXITSTATUS(sweep.status), 130);
}

std::string model_of_seconds(const testing_support::ScratchFolder& folder) {
  return folder.write("model.json", R"({
    "modules": {"fc": {"kind": "linear", "dtype": "bf16",
                       "shape": {"tokens": 1024, "hidden": 2048, "ffn": 2048}}},
    "layers": "fc"})");
}

TEST(Progress, SaysHowManyMeasurementsAreDone) {
  const testing_support::ScratchFolder folder;
  const Watched measure =
      watched({"measure", "--model", model_of_seconds(folder), "--device", "host"}, true);
  EXPECT_NE(measure.shown.find("of 6, "), std::string::npos) << measure.shown;
}

// A run warms up for as many seconds as its second replay makes it believe, which may be too few on
// a machine that does something else just then: such a run shows no line, and another one is begun.
TEST(Progress, IsGoneWhenARunReports) {
  std::size_t line = std::string::npos;
  for (int seconds = 2; seconds <= 32 && line == std::string::npos; seconds *= 2) {
    const Watched run = watched({"run", "--order", "[1,-1]", "--device", "host", "--replays", "1",
                                 "--float64", "none", "--warm-up", std::to_string(seconds)},
                                false);
    ASSERT_TRUE(WIFEXITED(run.status));
    EXPECT_EQ(WEXITSTATUS(run.status), 0);
    const std::size_t report = run.shown.find("<order>: accepted");
    ASSERT_NE(report, std::string::npos) << run.shown;
    line = run.shown.rfind("capo: run, ", report);
    if (line == std::string::npos) continue;
    EXPECT_NE(run.shown.substr(line, report - line).find("\033[K"), std::string::npos) << run.shown;
  }
  EXPECT_NE(line, std::string::npos);
}

}  // namespace
}  // namespace capo

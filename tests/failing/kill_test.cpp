// capo killed while it works: its files are as they were or whole, never a part.
//
// Before and after every call for a file, which is every state that the disk can be in; and while a
// large file is written, at moments drawn from a fixed seed. A file under capo's own name for what
// is unfinished may be left, since nobody was there to remove it. Ctrl-C, which capo hears, leaves
// nothing of the kind.

#include "tests/failing/judged.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

namespace capo::failing {
namespace {

namespace fs = std::filesystem;

class Killed : public testing::TestWithParam<Scenario> {};

TEST_P(Killed, AtAnyCallForAFileLeavesFilesWhole) {
  FailingWorld world(GetParam().arguments, GetParam().files);
  const FailedRun sound = world.run({});
  for (const Failure killed : {Failure::KilledBefore, Failure::KilledAfter}) {
    for (std::uint64_t at = 1; at <= sound.file_calls; ++at) {
      const FailedRun run = world.run({.failure = killed, .at = at});
      ASSERT_EQ(run.outcome.exit_code, 128 + SIGKILL);
      EXPECT_TRUE(files_are_whole(run, GetParam(), sound)) << run.call << ", call " << at;
    }
  }
}

TEST_P(Killed, ByCtrlCAtAnyCallForAFileLeavesNothingUnfinished) {
  FailingWorld world(GetParam().arguments, GetParam().files);
  const FailedRun sound = world.run({});
  for (std::uint64_t at = 1; at <= sound.file_calls; ++at) {
    const FailedRun run = world.run({.failure = Failure::Interrupt, .at = at});
    ASSERT_EQ(run.outcome.exit_code, 130) << run.call << ", call " << at;
    EXPECT_TRUE(files_are_whole(run, GetParam(), sound)) << run.call << ", call " << at;
    EXPECT_FALSE(leaves_unfinished(run)) << run.call << ", call " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Failing, Killed, testing::ValuesIn(scenarios()),
                         [](const auto& of) { return of.param.name; });

constexpr int kKills = 20;

pid_t start(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(CAPO_EXECUTABLE)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::execv(CAPO_EXECUTABLE, argv.data());
  ::_exit(127);
}

TEST(KilledAtAnyMoment, WhileItWritesALargeFileLeavesItWhole) {
  const testing_support::ScratchFolder scratch;
  const std::string target = scratch.write("out", "what was there before\n");
  const std::vector<std::string> arguments{
      "generate", "zb-h1",    "--ranks", "8",  "--microbatches",
      "2000",     "--format", "json",    "-o", target};
  const auto began = std::chrono::steady_clock::now();
  ::waitpid(start(arguments), nullptr, 0);
  const auto lasts = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - began);
  const std::string whole = scratch.read("out");
  ASSERT_GT(whole.size(), 500'000U);

  std::mt19937 random(2376);
  std::uniform_int_distribution<std::int64_t> moment(0, lasts.count());
  int old = 0;
  for (int i = 0; i < kKills; ++i) {
    const std::string before = "before " + std::to_string(i) + "\n";
    scratch.write("out", before);
    const pid_t child = start(arguments);
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string now = scratch.read("out");
    ASSERT_TRUE(now == before || now == whole) << now.size() << " bytes";
    old += now == before ? 1 : 0;
  }
  std::cout << kKills << " kills: " << old << " left the old file, " << kKills - old
            << " the new\n";
}

}  // namespace
}  // namespace capo::failing

// Calls for files that fail: for every n, the n-th open, stat, read, write, fsync, fchmod, rename
// or unlink of a run.
//
// Interrupted, or moving one byte where many were asked for, it changes nothing. Refused, the run
// ends as it would have, where the call is about standard error or clears up, or it says on one
// line what could not be done and in the system's words why: 3 for what is read, 5 for what is
// written. Each file is as it was or whole, and what was not finished is gone.

#include "tests/failing/judged.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

namespace capo::failing {
namespace {

class CallsForFiles : public testing::TestWithParam<Scenario> {
 protected:
  void SetUp() override {
    ASSERT_EQ(sound_.outcome.exit_code, GetParam().exit_code) << sound_.outcome.err;
  }
  FailedRun refused(std::uint64_t at, int error) {
    return world_.run({.failure = Failure::Error, .error = error, .at = at});
  }
  void expect_nothing_half_done(const FailedRun& run) {
    EXPECT_TRUE(files_are_whole(run, GetParam(), sound_));
    EXPECT_TRUE(!leaves_unfinished(run) || run.call == "unlink");
    EXPECT_LE(run.live, sound_.live) << "memory is left behind";
  }

  FailingWorld world_{GetParam().arguments, GetParam().files};
  const FailedRun sound_ = world_.run({});
};

bool says_why(const FailedRun& run, int error) {
  const std::string_view said = told_in_the_end(run);
  const bool reads = said.starts_with("error: cannot read ");
  const bool writes = said.starts_with("error: cannot write ");
  const auto end = said.find('\n');
  return ((reads && run.outcome.exit_code == 3) || (writes && run.outcome.exit_code == 5)) &&
         said.substr(0, end).ends_with(std::string(": ") + std::strerror(error)) &&
         end + 1 == said.size() && run.outcome.out.empty();
}

// Only standard error is missing.
bool ends_in_silence(const FailedRun& run, const FailedRun& sound) {
  return run.call == "write" && run.outcome.exit_code == sound.outcome.exit_code &&
         run.outcome.out == sound.outcome.out && run.files == sound.files;
}

TEST_P(CallsForFiles, ThatAreInterruptedAreMadeAgain) {
  for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
    const FailedRun run = refused(at, EINTR);
    EXPECT_TRUE(ends_as(run, sound_) || run.call == "unlink") << run.call << ", call " << at << "\n"
                                                              << run.outcome.err;
  }
}

TEST_P(CallsForFiles, ThatMoveOneByteAreFollowedByMore) {
  for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
    const FailedRun run = world_.run({.failure = Failure::Short, .at = at});
    EXPECT_TRUE(ends_as(run, sound_)) << run.call << ", call " << at;
  }
}

TEST_P(CallsForFiles, ThatAreRefusedAreTold) {
  for (const int error : {ENOSPC, EIO, EACCES, EMFILE}) {
    for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
      const FailedRun run = refused(at, error);
      SCOPED_TRACE(run.call + ", call " + std::to_string(at) + ": " + std::strerror(error));
      EXPECT_TRUE(says_why(run, error) || ends_as(run, sound_) || ends_in_silence(run, sound_))
          << "exit code " << run.outcome.exit_code << "\n"
          << run.outcome.out << run.outcome.err;
      expect_nothing_half_done(run);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Failing, CallsForFiles, testing::ValuesIn(scenarios()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace capo::failing

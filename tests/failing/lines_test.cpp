// The lines of a truth campaign, which capo-fuzz writes, in a world that fails.
//
// They are added to their file one by one: a file that is not finished begins the whole one, and
// the same command goes on behind it. Whatever fails, what is left is such a beginning, no line of
// an earlier run is lost, and going on comes to the same bytes. Exit code 0 is that of a campaign
// which wrote them all.
//
// capo-fuzz prints through the C library, whose calls are not seen. It makes ten thousand and more
// allocations, of which every 37th fails.

#include "tests/failing/judged.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

namespace capo::failing {
namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* kLines = "lines";

FailingWorld campaign_on(const Files& files) {
  return {{"--orders", "3", "--seed", "1", "--lines", kLines}, files, CAPO_FUZZ_EXECUTABLE};
}

// The file lies there before; an earlier run was killed in the middle of a line.
enum class Before { Nothing, AnEarlierRun };

void PrintTo(Before before, std::ostream* out) {
  *out << (before == Before::Nothing ? "FromNothing" : "OfAnEarlierRun");
}

class Lines : public testing::TestWithParam<Before> {
 protected:
  void SetUp() override {
    ASSERT_EQ(sound_.outcome.exit_code, 0) << sound_.outcome.err;
    ASSERT_EQ(std::count(whole_.begin(), whole_.end(), '\n'), 1 + 3);
    ASSERT_EQ(sound_.files, (Files{{kLines, whole_}}));
  }
  void expect_a_beginning(std::string_view left) const {
    EXPECT_TRUE(whole_.starts_with(left)) << left;
    EXPECT_GE(left.size(), kept_.size()) << "lines of the earlier run are lost";
  }
  void expect_gone_on_behind(const Files& left) {
    if (!gone_on_behind_.insert(left).second) return;
    const FailedRun run = campaign_on(left).run({});
    EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
    EXPECT_EQ(run.outcome.out, sound_.outcome.out);
    EXPECT_EQ(run.files, sound_.files);
  }

  const std::string whole_ = campaign_on({}).run({}).files[kLines];
  /// The header and the line of an earlier run.
  const std::string kept_ = GetParam() == Before::Nothing
                                ? ""
                                : whole_.substr(0, whole_.find('\n', whole_.find('\n') + 1) + 1);
  FailingWorld world_ = campaign_on(GetParam() == Before::Nothing
                                        ? Files{}
                                        : Files{{kLines, whole_.substr(0, kept_.size() + 40)}});
  const FailedRun sound_ = world_.run({});
  std::set<Files> gone_on_behind_;
};

std::string left_by(const FailedRun& run) {
  const auto file = run.files.find(kLines);
  return file == run.files.end() ? "" : file->second;
}

TEST_P(Lines, AreGoneOnBehindWhereverTheCampaignWasKilled) {
  for (const Failure killed : {Failure::KilledBefore, Failure::KilledAfter, Failure::Interrupt}) {
    for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
      const FailedRun run = world_.run({.failure = killed, .at = at});
      SCOPED_TRACE(run.call + ", call " + std::to_string(at));
      ASSERT_EQ(run.outcome.exit_code, 128 + (killed == Failure::Interrupt ? SIGINT : SIGKILL));
      expect_a_beginning(left_by(run));
      expect_gone_on_behind(run.files);
    }
  }
}

TEST_P(Lines, AreTheSameWhereCallsMoveOneByte) {
  for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
    const FailedRun run = world_.run({.failure = Failure::Short, .at = at});
    EXPECT_TRUE(ends_as(run, sound_)) << run.call << ", call " << at << "\n" << run.outcome.err;
  }
}

// Before main() by a signal, since nobody is there to catch it.
bool says_that_memory_ran_out(const FailedRun& run) {
  if (run.outcome.exit_code == 128 + SIGABRT) return true;
  const bool of_an_engine = run.outcome.err.find(": host engine: ") != std::string::npos;
  return run.outcome.exit_code == 5 &&
         (of_an_engine || run.outcome.err.ends_with("error: out of memory\n"));
}

TEST_P(Lines, AreGoneOnBehindWhereMemoryRanOut) {
  constexpr std::uint64_t kEvery = 37;
  for (std::uint64_t at = 1; at <= sound_.allocations; at += kEvery) {
    const FailedRun run = world_.run({.failure = Failure::NoMemory, .at = at});
    SCOPED_TRACE(at);
    EXPECT_TRUE(says_that_memory_ran_out(run) || ends_as(run, sound_))
        << "exit code " << run.outcome.exit_code << "\n"
        << run.outcome.err;
    expect_a_beginning(left_by(run));
    expect_gone_on_behind(run.files);
  }
}

bool says_why(const FailedRun& run, int error) {
  const std::string why = std::string(": ") + std::strerror(error) + "\n";
  std::string_view told = run.outcome.err;
  constexpr std::string_view kGoesOn = "went on behind 1 orders\n";
  if (told.starts_with(kGoesOn)) told.remove_prefix(kGoesOn.size());
  const bool reads = told == "error: lines" + why;
  const bool writes = told == "error: cannot write lines" + why;
  return ((reads && run.outcome.exit_code == 3) || (writes && run.outcome.exit_code == 5)) &&
         run.outcome.out.empty();
}

TEST_P(Lines, ThatAreRefusedAreTold) {
  std::set<std::string> refused;
  for (const int error : {ENOSPC, EIO, EACCES, EMFILE}) {
    for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
      const FailedRun run = world_.run({.failure = Failure::Error, .error = error, .at = at});
      SCOPED_TRACE(run.call + ", call " + std::to_string(at) + ": " + std::strerror(error));
      if (says_why(run, error)) refused.insert(run.call);
      EXPECT_TRUE(says_why(run, error) || ends_as(run, sound_))
          << "exit code " << run.outcome.exit_code << "\n"
          << run.outcome.out << run.outcome.err;
      expect_a_beginning(left_by(run));
      expect_gone_on_behind(run.files);
    }
  }
  std::set<std::string> all{"stat", "open", "flock", "fopen", "read", "truncate", "write"};
  EXPECT_TRUE(std::includes(refused.begin(), refused.end(), all.begin(), all.end()))
      << testing::PrintToString(refused);
}

// The C++ library makes a read or write again; that anything else was interrupted is told.
TEST_P(Lines, AreTheSameWhereReadsAndWritesAreInterrupted) {
  for (std::uint64_t at = 1; at <= sound_.file_calls; ++at) {
    const FailedRun run = world_.run({.failure = Failure::Error, .error = EINTR, .at = at});
    const bool moves = run.call == "read" || run.call == "write" || run.call == "writev";
    EXPECT_TRUE(ends_as(run, sound_) || (!moves && says_why(run, EINTR)))
        << run.call << ", call " << at << "\n"
        << run.outcome.err;
    expect_gone_on_behind(run.files);
  }
}

INSTANTIATE_TEST_SUITE_P(Failing, Lines, testing::Values(Before::Nothing, Before::AnEarlierRun),
                         testing::PrintToStringParamName());

constexpr std::array<FailingOrder, 7> kAllThatFails{{{.failure = Failure::NoMemory},
                                                     {.failure = Failure::Error, .error = EINTR},
                                                     {.failure = Failure::Error, .error = EIO},
                                                     {.failure = Failure::Short},
                                                     {.failure = Failure::Interrupt},
                                                     {.failure = Failure::KilledBefore},
                                                     {.failure = Failure::KilledAfter}}};

TEST(LinesOfAnotherCampaign, StayAsTheyAreWhateverFails) {
  const Files files{{kLines, "{\"campaign\":1,\"seed\":2,\"device\":\"host\"}\n{\"n\":0}\n"}};
  FailingWorld world = campaign_on(files);
  const FailedRun sound = world.run({});
  ASSERT_EQ(sound.outcome.exit_code, 3);
  for (FailingOrder order : kAllThatFails) {
    const bool of_memory = order.failure == Failure::NoMemory;
    const std::uint64_t last = of_memory ? sound.allocations : sound.file_calls;
    for (order.at = 1; order.at <= last; ++order.at) {
      const FailedRun run = world.run(order);
      SCOPED_TRACE((of_memory ? "allocation" : run.call + ", call ") + std::to_string(order.at));
      EXPECT_EQ(run.files, files);
      EXPECT_NE(run.outcome.exit_code, 0);
    }
  }
}

TEST(ReportOfLines, IsOfAllOfThemOrNotPrinted) {
  const Files files{{kLines, campaign_on({}).run({}).files[kLines]}, {"about", "machine: this\n"}};
  FailingWorld world({"--report", kLines, "--about", "about"}, files, CAPO_FUZZ_EXECUTABLE);
  const FailedRun sound = world.run({});
  ASSERT_EQ(sound.outcome.exit_code, 0);
  ASSERT_TRUE(sound.outcome.out.find("| machine | this |") != std::string::npos);
  ASSERT_TRUE(sound.outcome.out.find("\n3 orders.\n") != std::string::npos) << sound.outcome.out;
  for (std::uint64_t at = 1; at <= sound.file_calls; ++at) {
    const FailedRun run = world.run({.failure = Failure::Error, .error = EIO, .at = at});
    const bool told = run.outcome.exit_code == 3 && run.outcome.out.empty() &&
                      run.outcome.err.starts_with("error: ");
    EXPECT_TRUE(told || ends_as(run, sound)) << run.call << ", call " << at << "\n"
                                             << run.outcome.out << run.outcome.err;
  }
}

}  // namespace
}  // namespace capo::failing

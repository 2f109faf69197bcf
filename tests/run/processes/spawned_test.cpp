// Processes that a process makes of itself: what they tell each other, and how all of them end when
// one does.

#include "run/processes/processes.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

// How a process ended that made several of itself; each does the work and ends with its result.
struct Ended {
  int code = -1;
  std::string said;
};

Ended end_of(int count, const std::function<int(Processes&)>& work,
             Processes::Duration timeout = 20s) {
  const testing_support::ScratchFolder folder;
  const std::string said = folder.path() / "said";
  const pid_t made = fork();
  if (made == 0) {
    const int file = open(said.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(file, STDERR_FILENO);
    const auto library = spawn(count, timeout);
    if (!library) std::_Exit(70);
    Processes processes(**library, timeout);
    const int code = work(processes);
    (*library)->leave();
    std::_Exit(code);
  }
  int status = 0;
  waitpid(made, &status, 0);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .said = folder.read("said")};
}

TEST(Spawned, EndWithTheCodeOfRankZero) {
  EXPECT_EQ(end_of(3, [](Processes& all) { return all.rank() == 0 ? 7 : all.rank(); }).code, 7);
}

TEST(Spawned, MeetGatherAndSpread) {
  const Ended ended = end_of(3, [](Processes& all) {
    const std::string large(static_cast<std::size_t>(all.rank()) * 3'000'000, 'x');
    if (!all.meet()) return 2;
    const auto texts = all.gather(large);
    if (all.rank() == 0 && (texts.size() != 3 || texts[2]->size() != 6'000'000)) return 3;
    const auto told = all.spread(all.rank() == 0 ? std::string(1'000'000, 'y') : "");
    return told && told->size() == 1'000'000 ? 0 : 4;
  });
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.said, "");
}

// Messages of two ranks, a communicator and a tag come in the order of both sides.
TEST(Spawned, MessagesAreMatchedByOrderAndTag) {
  const Ended ended = end_of(2, [](Processes& all) {
    MessageLibrary& library = all.library();
    const int through = library.add_communicators(2);
    int numbers[3] = {10, 11, 12};
    using enum MessageLibrary::Mode;
    const auto piece = [&](int i) { return Piece{&numbers[i], sizeof(int)}; };
    if (all.rank() == 0) {
      const int first = library.send(through, 1, 7, {piece(0), {}}, Rendezvous);
      const int other = library.send(through, 1, 8, {piece(1), {}}, Buffered);
      const int last = library.send(through + 1, 1, 7, {piece(2), {}}, Rendezvous);
      return all.wait(first) && all.wait(other) && all.wait(last) ? 0 : 2;
    }
    for (int& number : numbers) number = 0;
    const int c = library.receive(through + 1, 0, 7, {piece(2), {}});
    const int b = library.receive(through, 0, 8, {piece(1), {}});
    const int a = library.receive(through, 0, 7, {piece(0), {}});
    if (!all.wait(a) || !all.wait(b) || !all.wait(c)) all.library().end_all(9);
    if (numbers[0] != 10 || numbers[1] != 11 || numbers[2] != 12) all.library().end_all(8);
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Spawned, ASendIsOverWhenItIsReceivedUnlessItIsBuffered) {
  const Ended ended = end_of(2, [](Processes& all) {
    MessageLibrary& library = all.library();
    int number = 1;
    using enum MessageLibrary::Mode;
    if (all.rank() == 0) {
      const int waits = library.send(0, 1, 0, {Piece{&number, sizeof number}, {}}, Rendezvous);
      const int copied = library.send(0, 1, 1, {Piece{&number, sizeof number}, {}}, Buffered);
      if (library.over(waits) || !library.over(copied) || !all.meet()) return 2;
      return all.wait(waits) ? 0 : 3;
    }
    if (!all.meet()) all.library().end_all(9);
    const int came = library.receive(0, 0, 0, {Piece{&number, sizeof number}, {}});
    return all.wait(came) ? 0 : 4;
  });
  EXPECT_EQ(ended.code, 0);
}

// The others wait for ever, and are ended.
TEST(Spawned, OneThatBreaksOffEndsAllWithItsCode) {
  const Ended ended = end_of(3, [](Processes& all) {
    if (all.rank() == 2) all.library().end_all(5);
    std::this_thread::sleep_for(1h);
    return 0;
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.said, "");
}

TEST(Spawned, OneThatIsKilledEndsAllAndIsNamed) {
  const Ended ended = end_of(2, [](Processes& all) {
    if (all.rank() == 1) raise(SIGKILL);
    std::this_thread::sleep_for(1h);
    return 0;
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.said, "error: the process of rank 1 was ended by signal 9 (Killed)\n");
}

// Its socket is full, so that not all gets away which it was sent.
TEST(Spawned, OneThatTakesNothingEndsAllWhenAnotherLeaves) {
  const Ended ended = end_of(
      2,
      [](Processes& all) {
        if (all.rank() == 1) raise(SIGSTOP);
        std::string large(30'000'000, 'x');
        const Piece piece{large.data(), static_cast<std::int64_t>(large.size())};
        (void)all.library().send(0, 1, 0, {piece, {}}, MessageLibrary::Mode::Buffered);
        return 0;
      },
      200ms);
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.said, "error: rank 1 does not take its messages for 0.2 s\n");
}

TEST(Spawned, OneThatIsSlowToTakeIsWaitedFor) {
  const Ended ended = end_of(2, [](Processes& all) {
    std::string large(30'000'000, 'x');
    const Piece piece{large.data(), static_cast<std::int64_t>(large.size())};
    if (all.rank() == 0) {
      (void)all.library().send(0, 1, 0, {piece, {}}, MessageLibrary::Mode::Buffered);
      return 0;
    }
    std::string came(large.size(), ' ');
    const Piece into{came.data(), piece.bytes};
    if (!all.wait(all.library().receive(0, 0, 0, {into, {}})) || came != large) {
      all.library().end_all(9);
    }
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Spawned, WhoWaitsForOneThatHasLeftIsTold) {
  const Ended ended = end_of(2, [](Processes& all) {
    if (all.rank() == 1) return 0;
    if (all.meet() || all.library().error() == nullptr) return 2;
    return std::string(all.library().error()) == "rank 1 has ended" ? 0 : 3;
  });
  EXPECT_EQ(ended.code, 0);
}

}  // namespace
}  // namespace capo::run

// The line that a long command shows on a terminal. That it appears after a second is not tested,
// since no test depends on a clock; that nothing is written where nobody watches is, by every test
// of the command line that compares standard error.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

namespace capo {
namespace {

// Starts a long sweep on a terminal of its own, interrupts it once it has shown its line, and
// returns what the terminal showed and the status it left.
struct Watched {
  std::string shown;
  int status = 0;
};

Watched interrupt_a_sweep() {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    execl(testing_support::program_under_test(), "capo", "sweep", "zbv-1p", "zbv-1.5p", "zbv-2p",
          "--ranks", "32", "--microbatches", "2000,2001,2002,2003,2004,2005,2006,2007,2008,2009",
          "--threads", "1", static_cast<char*>(nullptr));
    _exit(127);
  }
  Watched watched;
  std::array<char, 256> buffer{};
  while (watched.shown.find("capo: sweep, ") == std::string::npos) {
    const ssize_t got = read(terminal, buffer.data(), buffer.size());
    if (got <= 0) break;
    watched.shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  kill(child, SIGINT);
  waitpid(child, &watched.status, 0);
  close(terminal);
  return watched;
}

TEST(Progress, IsShownOnATerminalAndCtrlCStopsAtOnce) {
  const Watched watched = interrupt_a_sweep();
  EXPECT_NE(watched.shown.find("of 30"), std::string::npos) << watched.shown;
  ASSERT_TRUE(WIFEXITED(watched.status));
  EXPECT_EQ(WEXITSTATUS(watched.status), 130);
}

}  // namespace
}  // namespace capo

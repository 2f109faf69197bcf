// Files that are no ordinary files, and output that cannot be written: reading never hangs and says
// what failed; output is whole or absent, and what stood there before stays.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace capo {
namespace {

namespace fs = std::filesystem;

using testing_support::Outcome;
using testing_support::run_capo;

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    return scratch_.write(name, text);
  }

  std::string read(const std::string& name) const { return scratch_.read(name); }

  std::string fifo(const std::string& name) const {
    EXPECT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    return path(name);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  testing_support::ScratchFolder scratch_;
  const fs::path& folder_ = scratch_.path();
};

// A shell for what run_capo cannot set up; `$CAPO` is the program. What it prints comes back as
// `out`.
Outcome shell(const std::string& command) {
  const std::string program = testing_support::program_under_test();
  const std::string whole = "{ CAPO='" + program + "'; " + command + "\n} 2>&1";
  Outcome outcome;
  FILE* pipe = ::popen(whole.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.out.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

void expect_unreadable(const Outcome& outcome, const std::string& name) {
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("error: cannot read " + name + ": ")) << outcome.err;
}

// --- reading ------------------------------------------------------------------------------------

TEST_F(Files, ADirectoryIsNoInput) {
  const std::string name = folder_.string();
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"check", name}, {"check", "--batch", name}, {"convert", name, "--to", "te"}}) {
    const Outcome outcome = run_capo(arguments);
    expect_unreadable(outcome, name);
    EXPECT_NE(outcome.err.find("directory"), std::string::npos) << outcome.err;
  }
}

TEST_F(Files, AMissingFileIsNamed) {
  expect_unreadable(run_capo({"check", path("none.order")}), path("none.order"));
  expect_unreadable(run_capo({"check", "--batch", path("none.jsonl")}), path("none.jsonl"));
  expect_unreadable(run_capo({"convert", path("none.order"), "--to", "te"}), path("none.order"));
  expect_unreadable(run_capo({"check", path("none/none.order")}), path("none/none.order"));
}

TEST_F(Files, AFileWithoutPermissionIsUnreadable) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read every file";
  const std::string name = write("secret.te", "[1, -1]");
  ASSERT_EQ(::chmod(name.c_str(), 0), 0);
  expect_unreadable(run_capo({"check", name}), name);
}

TEST_F(Files, AFifosWriterMayComeLater) {
  const std::string name = fifo("pipe");
  const Outcome outcome =
      shell("(sleep 0.3; echo '[1, -1]' >'" + name + "') & \"$CAPO\" check '" + name + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
}

TEST_F(Files, AFifoWhoseWriterLeavesWithoutAWordIsAnEmptyInput) {
  const std::string name = fifo("pipe");
  const Outcome outcome = shell("(: >'" + name + "') & \"$CAPO\" check '" + name + "'");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("the input holds no order"), std::string::npos) << outcome.out;
}

TEST_F(Files, AFifoIsReadToItsWritersEnd) {
  const std::string name = fifo("pipe");
  // Held open at both ends until capo has taken the text, so that its opening races with nothing.
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = ::open(name.c_str(), O_WRONLY);
  ASSERT_GE(reader, 0);
  ASSERT_GE(writer, 0);
  const std::string text = "[1, -1]\n";
  ASSERT_EQ(::write(writer, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::atomic<bool> finished = false;
  std::thread closer([&] {
    int waiting = 1;
    while (!finished && ::ioctl(reader, FIONREAD, &waiting) == 0 && waiting > 0)
      std::this_thread::yield();
    ::close(writer);
    ::close(reader);
  });
  const Outcome outcome = run_capo({"check", name});
  finished = true;
  closer.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

TEST_F(Files, AShellsProcessSubstitutionIsAwaited) {
  if (shell("command -v bash >/dev/null").exit_code != 0) GTEST_SKIP() << "there is no bash";
  const Outcome outcome = shell("bash -c '\"$0\" check <(sleep 0.3; echo \"[1, -1]\")' \"$CAPO\"");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
}

TEST_F(Files, DevNullIsAnEmptyInput) {
  const Outcome outcome = run_capo({"check", "/dev/null"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("error[I01]: the input holds no order\n --> /dev/null"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Files, AnEndlessInputEndsAtTheLimit) {
  const Outcome outcome = run_capo({"check", "/dev/zero", "--max-bytes", "100000"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_NE((outcome.out + outcome.err).find("--max-bytes"), std::string::npos)
      << outcome.out << outcome.err;
}

TEST_F(Files, ClosedStandardInputIsUnreadable) {
  const Outcome outcome = shell("\"$CAPO\" check - <&-");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_TRUE(outcome.out.starts_with("error: cannot read <stdin>: ")) << outcome.out;
}

TEST_F(Files, ClosedStandardInputDoesNotMatterToAFile) {
  const std::string name = write("plan.te", "[1, -1]");
  EXPECT_EQ(shell("\"$CAPO\" check '" + name + "' <&-").exit_code, 0);
}

TEST_F(Files, StandardInputMayBeADirectory) {
  const Outcome outcome = shell("\"$CAPO\" check - </");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_NE(outcome.out.find("directory"), std::string::npos) << outcome.out;
}

TEST_F(Files, AFileNamedDashIsReachable) {
  write("-", "[1, -1]");
  EXPECT_EQ(run_capo({"check", "./-"}, {.directory = folder_.string()}).exit_code, 0);
}

TEST_F(Files, AnInterruptIsExitCode130) {
  const std::string name = fifo("pipe");
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int writer = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "[1,", 3), 3);
  const std::string program = testing_support::program_under_test();
  const std::string command = "'" + program + "' check '" + name + "' & echo $!; wait $!; echo $?";
  FILE* pipe = ::popen(command.c_str(), "r");
  int capo = 0;
  ASSERT_EQ(std::fscanf(pipe, "%d", &capo), 1);
  // Once it has taken the text it waits for more.
  int waiting = 1;
  while (::kill(capo, 0) == 0 && ::ioctl(reader, FIONREAD, &waiting) == 0 && waiting > 0)
    std::this_thread::yield();
  EXPECT_EQ(::kill(capo, SIGINT), 0);
  int exit_code = -1;
  EXPECT_EQ(std::fscanf(pipe, "%d", &exit_code), 1);
  EXPECT_EQ(exit_code, 130);
  ::pclose(pipe);
  ::close(writer);
  ::close(reader);
}

// --- standard output and standard error ---------------------------------------------------------

TEST_F(Files, AFullStandardOutputIsNoSuccess) {
  const std::string batch = write("lines.jsonl", "{\"order\":[1,-1]}\n");
  const std::vector<std::vector<std::string>> commands{
      {"check", "--order", "[1, -1]"},
      {"check", "--order", "[1, -1"},
      {"check", "--order", "[1]", "--format", "json"},
      {"check", "--order", "[1]", "--format", "sarif"},
      {"check", "--batch", batch},
      {"convert", "--order", "[1, -1]", "--to", "json"},
      {"explain", "I01"},
      {"run", "--order", "[1]", "--format", "json"},
      {"rules"},
      {"rules", "--markdown"},
      {"--version"},
      {"--help"},
      {"check", "--help"},
  };
  for (const auto& command : commands) {
    std::string words;
    for (const std::string& word : command) words += word + " ";
    SCOPED_TRACE(words);
    const Outcome outcome = run_capo(command, {.stdout_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 5);
    EXPECT_EQ(outcome.err, "error: cannot write standard output: No space left on device\n");
  }
}

TEST_F(Files, AClosedStandardOutputIsNoSuccess) {
  const Outcome outcome = shell("\"$CAPO\" check --order '[1, -1]' >&-");
  EXPECT_EQ(outcome.exit_code, 5) << outcome.out;
}

// `capo rules | head`: whether or not the parent ignores the signal, there is nobody left to tell.
TEST_F(Files, AReaderThatLeavesEndsCapoInSilence) {
  const std::string pipe = fifo("pipe");
  for (const std::string parent : {"trap '' PIPE", "trap - PIPE"}) {
    SCOPED_TRACE(parent);
    const Outcome outcome =
        shell("(exec 4<'" + pipe + "') & exec 3>'" + pipe + "'; wait; " + parent +
              "; \"$CAPO\" rules --markdown >&3; echo \"left with $?\"");
    EXPECT_EQ(outcome.out, "left with 141\n");
  }
}

TEST_F(Files, AStandardErrorThatTakesNothingChangesNoExitCode) {
  const std::vector<std::pair<std::string, int>> commands{{"check none.te", 3},
                                                          {"check --batch none.jsonl", 3},
                                                          {"convert --order '[nan]' --to te", 1},
                                                          {"convert --order '[' --to te", 3},
                                                          {"explain X99", 2},
                                                          {"check --no-such-option", 2},
                                                          {"check --order '[1, -1]'", 0}};
  for (const auto& [command, exit_code] : commands) {
    for (const char* standard_error : {"2>&-", "2>/dev/full"}) {
      SCOPED_TRACE(command + " " + standard_error);
      EXPECT_EQ(shell("\"$CAPO\" " + command + " " + standard_error).exit_code, exit_code);
    }
  }
}

// --- files that are written ---------------------------------------------------------------------

void expect_unwritable(const Outcome& outcome, const std::string& name) {
  EXPECT_EQ(outcome.exit_code, 5) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("error: cannot write " + name + ": ")) << outcome.err;
}

std::vector<std::string> convert_to(const std::string& target) {
  return {"convert", "--order", "[1, -1]", "--to", "order", "-o", target};
}

TEST_F(Files, OutputIsWrittenWhole) {
  const Outcome outcome = run_capo(convert_to(path("plan.order")));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(read("plan.order"), "capo 1\nranks 1\nrank 0: F1 B1\n");
  EXPECT_EQ(names(), std::vector<std::string>{"plan.order"});
}

TEST_F(Files, OutputIsReadableAsTheUmaskAllows) {
  const std::string name = path("plan.order");
  ASSERT_EQ(shell("umask 027; \"$CAPO\" convert --order '[1, -1]' --to order -o '" + name + "'")
                .exit_code,
            0);
  struct stat info {};
  ASSERT_EQ(::stat(name.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(Files, AMissingDirectoryIsNamedAndNotMade) {
  expect_unwritable(run_capo(convert_to(path("none/plan.order"))), path("none/plan.order"));
  EXPECT_TRUE(names().empty());
}

TEST_F(Files, ADirectoryIsNoOutput) {
  fs::create_directory(folder_ / "plans");
  expect_unwritable(run_capo(convert_to(path("plans"))), path("plans"));
  expect_unwritable(run_capo(convert_to(path("plans/"))), path("plans/"));
  EXPECT_EQ(names(), std::vector<std::string>{"plans"});
  EXPECT_TRUE(fs::is_empty(folder_ / "plans"));
}

TEST_F(Files, ADirectoryWithoutPermissionLeavesNothingBehind) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  fs::create_directory(folder_ / "plans");
  ASSERT_EQ(::chmod(path("plans").c_str(), 0555), 0);
  expect_unwritable(run_capo(convert_to(path("plans/plan.order"))), path("plans/plan.order"));
  EXPECT_TRUE(fs::is_empty(folder_ / "plans"));
}

// Not even the superuser makes files there.
TEST_F(Files, ADirectoryThatTakesNoFilesIsUnwritable) {
  if (!fs::exists("/proc/self")) GTEST_SKIP() << "there is no /proc";
  expect_unwritable(run_capo(convert_to("/proc/plan.order")), "/proc/plan.order");
}

TEST_F(Files, AnOutputWithoutANameIsUnwritable) {
  const Outcome outcome = run_capo(convert_to(""));
  EXPECT_TRUE(outcome.exit_code == 2 || outcome.exit_code == 5) << outcome.exit_code;
  EXPECT_FALSE(outcome.err.starts_with("error: cannot write : ")) << outcome.err;
}

TEST_F(Files, ALongNameThatTheSystemAllowsIsWritten) {
  const std::string name(250, 'x');
  const Outcome outcome = run_capo(convert_to(path(name)));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(Files, ARefusedInputLeavesTheOldOutputWhole) {
  const std::string target = write("plan.order", "old\n");
  for (const std::string order : {"[1, -1", "[1, nan]", "[1, -1] x"}) {
    SCOPED_TRACE(order);
    EXPECT_NE(run_capo({"convert", "--order", order, "--to", "order", "-o", target}).exit_code, 0);
    EXPECT_EQ(read("plan.order"), "old\n");
  }
  EXPECT_EQ(names(), std::vector<std::string>{"plan.order"});
}

TEST_F(Files, AFailedWriteLeavesTheOldOutputWhole) {
  const std::string target = write("plan.order", "old\n");
  const Outcome outcome =
      shell("trap '' XFSZ; ulimit -f 0; \"$CAPO\" convert --order '[1, -1]' --to order -o '" +
            target + "'");
  EXPECT_EQ(outcome.exit_code, 5) << outcome.out;
  EXPECT_EQ(outcome.out, "error: cannot write " + target + ": File too large\n");
  EXPECT_EQ(read("plan.order"), "old\n");
  EXPECT_EQ(names(), std::vector<std::string>{"plan.order"});
}

TEST_F(Files, OutputReplacesAnOlderOne) {
  const std::string target = write("plan.order", std::string(100'000, 'x'));
  EXPECT_EQ(run_capo(convert_to(target)).exit_code, 0);
  EXPECT_EQ(read("plan.order"), "capo 1\nranks 1\nrank 0: F1 B1\n");
}

TEST_F(Files, InputMayBeTheOutput) {
  const std::string name = write("plan.te", "[1, -1]");
  EXPECT_EQ(run_capo({"convert", name, "--to", "te", "-o", name}).exit_code, 0);
  EXPECT_EQ(read("plan.te"), "[1, -1]\n");
}

// `-o /dev/null` is a way to ask only whether a form can say an order: no device may turn into a
// file.
TEST_F(Files, AnOutputThatIsNoFileIsNotReplacedByOne) {
  const std::string name = fifo("pipe");
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const Outcome outcome = run_capo(convert_to(name));
  EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 5) << outcome.exit_code;
  EXPECT_TRUE(fs::is_fifo(name)) << "the FIFO is a file now";
  std::array<char, 100> buffer;
  const ssize_t count = ::read(reader, buffer.data(), buffer.size());
  if (outcome.exit_code == 0) {
    EXPECT_GT(count, 0);
  }
  ::close(reader);
  EXPECT_EQ(names(), std::vector<std::string>{"pipe"});
}

}  // namespace
}  // namespace capo

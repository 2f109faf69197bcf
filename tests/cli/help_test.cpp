// Help: `capo`, `capo help`, `capo help COMMAND` and --help, as wide as the terminal is.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

// Returns the text that capo prints on a terminal with so many columns.
std::string on_a_terminal(std::vector<std::string> arguments, unsigned short columns) {
  arguments.insert(arguments.begin(), "capo");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    execv(testing_support::program_under_test(), words.data());
    _exit(127);
  }
  std::string shown;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = read(terminal, buffer.data(), buffer.size());
    if (got <= 0) break;
    shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  waitpid(child, nullptr, 0);
  close(terminal);
  std::erase(shown, '\r');
  return shown;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(HelpCommand, IsWhatCapoAlonePrints) {
  const Outcome alone = run_capo({});
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_EQ(alone.err, "");
  EXPECT_EQ(alone.out, run_capo({"--help"}).out);
  EXPECT_EQ(alone.out, run_capo({"help"}).out);
}

TEST(HelpCommand, TellsOfACommandWhatItsHelpFlagTells) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"check"}, {"generate"}, {"generate", "megatron"}, {"help"}, {"completion"}}) {
    std::vector<std::string> asked{"help"};
    asked.insert(asked.end(), command.begin(), command.end());
    std::vector<std::string> flagged = command;
    flagged.emplace_back("--help");
    const Outcome outcome = run_capo(asked);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, run_capo(flagged).out) << command.back();
  }
}

TEST(HelpPage, NamesOtherNamesNeedsAndWhatDoesNotGoTogether) {
  const std::string megatron = run_capo({"help", "generate", "megatron"}).out;
  EXPECT_TRUE(holds(megatron, "--delayed-wgrad ")) << megatron;
  EXPECT_TRUE(holds(megatron, "also --num-virtual-stages") || holds(megatron, "; also\n"));
  EXPECT_TRUE(holds(megatron, " --delay-wgrad-compute\n")) << megatron;
  const std::string check = run_capo({"help", "check"}).out;
  EXPECT_TRUE(holds(check, "needs --batch")) << check;
  EXPECT_TRUE(holds(check, "not with")) << check;
  EXPECT_TRUE(holds(check, "--format {text,json,sarif}=text")) << check;
}

TEST(HelpPage, IsNoWiderThanTheTerminal) {
  for (const unsigned short columns : std::initializer_list<unsigned short>{60, 80, 200}) {
    std::size_t longest = 0;
    for (const std::string& line : lines_of(on_a_terminal({"check", "--help"}, columns))) {
      // A word that is too long for a line has one of its own.
      const bool word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
      const bool typed = line.starts_with("Example") || line.starts_with("  -");
      if (!typed && !word) longest = std::max(longest, line.size());
    }
    EXPECT_LE(longest, columns);
    EXPECT_GT(longest, columns * 3 / 4U);
  }
}

TEST(HelpPage, OfNoTerminalIsTheSameEverywhere) {
  const std::string page = run_capo({"check", "--help"}).out;
  for (const std::string& line : lines_of(page)) {
    EXPECT_TRUE(line.size() <= 100 || line.starts_with("Example")) << line;
  }
  EXPECT_EQ(page, run_capo({"check", "--help"}, {.environment = {"COLUMNS=40"}}).out);
}

TEST(Grid, IsAsWideAsTheTerminalAndColoured) {
  const std::vector<std::string> simulate{"simulate", "--order", "[1, -1, -1.5]", "--format",
                                          "grid"};
  const std::string shown = on_a_terminal(simulate, 50);
  EXPECT_TRUE(holds(shown, "\x1b[34mF0")) << shown;
  EXPECT_TRUE(holds(shown, "\x1b[33mW0")) << shown;
  std::string plain;
  for (std::size_t at = 0; at < shown.size(); ++at) {
    if (shown[at] == '\x1b') at = shown.find('m', at) + 1;
    if (at < shown.size() && shown[at] != '\x1b') plain += shown[at];
  }
  std::vector<std::string> narrow = simulate;
  narrow.insert(narrow.end(), {"--width", "50"});
  const std::string piped = run_capo(narrow).out;
  EXPECT_EQ(piped.find('\x1b'), std::string::npos);
  EXPECT_EQ(lines_of(piped).front().size(), 50U);
  EXPECT_EQ(lines_of(run_capo(simulate).out).front().size(), 100U);
  narrow.insert(narrow.end(), {"--color", "always"});
  EXPECT_TRUE(holds(run_capo(narrow).out, "\x1b[34mF0"));
}

}  // namespace
}  // namespace capo

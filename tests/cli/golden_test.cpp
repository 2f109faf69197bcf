// Runs the cases of tests/corpus/cli/<command>/NAME.txt and compares all that capo prints, byte for
// byte; those of mistakes/ are wrong command lines of all commands. A case reads like a terminal:
//
//   # Comments say what the case shows.
//   == two.order               the lines up to the next == are a file of this name, which may lie
//                              in folders
//   capo 1
//   rank 0: F1 B1
//   ==
//   $ capo check two.order --plan te < two.order
//   (standard output, then standard error behind `! `)
//   exit 0
//
// Words with blanks stand in double quotes. The commands of a case share a folder, and each ends
// with its exit code. CAPO_REBASE=1 in the environment writes the outputs anew instead of comparing
// them.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

namespace fs = std::filesystem;
using testing_support::lines_of;
using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;
using testing_support::RunOptions;
using testing_support::ScratchFolder;

const fs::path kCases = CAPO_SOURCE_DIR "/tests/corpus/cli";

// The words of a command line; "..." is one word and may be empty.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool inside = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (!inside) words.emplace_back();
      inside = true;
    } else if (c == ' ' && !quoted) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  return words;
}

// A command of a case, without `$ `, in the folder of its files.
Outcome run(const std::string& command, const ScratchFolder& folder) {
  std::vector<std::string> words = words_of(command);
  RunOptions options{.directory = folder.path()};
  if (words.size() > 2 && words[words.size() - 2] == "<") {
    options.input = folder.read(words.back());
    words.resize(words.size() - 2);
  }
  EXPECT_EQ(words.at(0), "capo") << command;
  words.erase(words.begin());
  return run_capo(words, options);
}

std::string answer_of(const Outcome& outcome) {
  std::string answer = outcome.out;
  if (!answer.empty() && !answer.ends_with('\n')) answer += '\n';
  for (const std::string& line : lines_of(outcome.err)) answer += "! " + line + "\n";
  return answer + "exit " + std::to_string(outcome.exit_code) + "\n";
}

bool is_exit(const std::string& line) {
  return line.starts_with("exit ") && line.size() > 5 &&
         line.find_first_not_of("0123456789", 5) == std::string::npos;
}

// The case as it would be written now: its comments, files and commands, with what capo answers.
std::string played(const std::vector<std::string>& lines) {
  const ScratchFolder folder;
  std::string text;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    text += lines[at] + "\n";
    if (lines[at].starts_with("== ")) {
      const std::string name = lines[at].substr(3);
      std::string content;
      for (++at; at < lines.size() && lines[at] != "=="; ++at) content += lines[at] + "\n";
      fs::create_directories((folder.path() / name).parent_path());
      folder.write(name, content);
      text += content + "==\n";
    } else if (lines[at].starts_with("$ ")) {
      text += answer_of(run(lines[at].substr(2), folder));
      // A command without an answer yet is followed by the next command, or by the end.
      const auto next = std::find_if(
          lines.begin() + static_cast<std::ptrdiff_t>(at) + 1, lines.end(),
          [](const std::string& line) { return is_exit(line) || line.starts_with("$ "); });
      if (next != lines.end() && is_exit(*next))
        at = static_cast<std::size_t>(next - lines.begin());
    }
  }
  return text;
}

std::vector<fs::path> cases() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kCases)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class GoldenCase : public ::testing::TestWithParam<fs::path> {};

TEST_P(GoldenCase, AnswersAsExpected) {
  const std::string text = read_file(GetParam());
  const std::string now = played(lines_of(text));
  const std::string folder = GetParam().parent_path().filename().string();
  EXPECT_TRUE(folder == "mistakes" || now.find("\n$ capo " + folder + " ") != std::string::npos)
      << "the folder names the command that the case is about";
  const char* wish = std::getenv("CAPO_REBASE");
  if (wish != nullptr && std::string_view(wish) == "1") {
    std::ofstream(GetParam(), std::ios::binary) << now;
  } else {
    EXPECT_EQ(now, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Cli, GoldenCase, ::testing::ValuesIn(cases()), [](const auto& row) {
  std::string name = row.param.parent_path().filename().string() + "_" + row.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace capo

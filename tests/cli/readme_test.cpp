// README's examples run as they stand: every `$ capo ...` of a console block, with the output
// shown.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capo::testing_support {
namespace {

struct Example {
  std::string command;
  std::string output;
};

std::vector<Example> examples_of(const std::string& path) {
  std::vector<Example> examples;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      examples.push_back({.command = line.substr(2), .output = ""});
    } else if (inside && !examples.empty()) {
      examples.back().output += line + "\n";
    }
  }
  return examples;
}

// Words as a shell splits them, with double quotes.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  bool quoted = false;
  bool open = false;
  for (const char c : command) {
    if (c == '"') {
      quoted = !quoted;
      if (!open) words.emplace_back();
      open = true;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  return words;
}

TEST(Readme, ExamplesPrintWhatItShows) {
  const std::vector<Example> examples = examples_of(CAPO_SOURCE_DIR "/README.md");
  for (const Example& example : examples) {
    std::vector<std::string> words = words_of(example.command);
    ASSERT_EQ(words.front(), "capo") << example.command;
    words.erase(words.begin());
    const Outcome outcome = run_capo(words, {.directory = CAPO_SOURCE_DIR});
    EXPECT_EQ(outcome.out, example.output) << example.command;
    EXPECT_EQ(outcome.err, "") << example.command;
  }
  EXPECT_GE(examples.size(), 4U);
}

}  // namespace
}  // namespace capo::testing_support

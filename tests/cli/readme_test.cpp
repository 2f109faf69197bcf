// Examples of README and docs/examples.md run as they stand, one after the other in one folder:
// every `$ capo ...` of a console block, with the output shown. The picture that README shows is
// what `capo graph` draws.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
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

// Returns how many examples the page has.
std::size_t run_examples_of(const std::string& page) {
  const std::vector<Example> examples = examples_of(CAPO_SOURCE_DIR "/" + page);
  const ScratchFolder folder;
  std::filesystem::create_directory_symlink(CAPO_SOURCE_DIR "/examples",
                                            folder.path() / "examples");
  for (const Example& example : examples) {
    std::vector<std::string> words = words_of(example.command);
    EXPECT_EQ(words.front(), "capo") << example.command;
    words.erase(words.begin());
    const Outcome outcome = run_capo(words, {.directory = folder.path()});
    EXPECT_EQ(outcome.out, example.output) << example.command;
    EXPECT_EQ(outcome.err, "") << example.command;
  }
  return examples.size();
}

TEST(Readme, ExamplesPrintWhatItShows) {
  EXPECT_GE(run_examples_of("README.md"), 6U);
}

TEST(Readme, ExamplesOfTheirPagePrintWhatItShows) {
  EXPECT_GE(run_examples_of("docs/examples.md"), 10U);
}

// The picture is dot's work, whose bytes differ from version to version, so its words are compared:
// every label of the drawing stands in it.
TEST(Readme, ThePictureIsOfTheTableThatItShows) {
  const std::string svg = read_file(CAPO_SOURCE_DIR "/docs/pictures/both_send_first.svg");
  const Outcome drawn =
      run_capo({"graph", CAPO_SOURCE_DIR "/examples/torch/both_send_first.csv"}, {});
  const std::regex tooltip("tooltip=\"([^\"]*)\"");
  std::size_t tooltips = 0;
  for (std::sregex_iterator at(drawn.out.begin(), drawn.out.end(), tooltip), end; at != end; ++at) {
    EXPECT_NE(svg.find("xlink:title=\"" + (*at)[1].str() + "\""), std::string::npos) << (*at)[1];
    ++tooltips;
  }
  EXPECT_EQ(tooltips, 20U);
  EXPECT_NE(svg.find("capo: rejected, T09 deadlock"), std::string::npos);
}

}  // namespace
}  // namespace capo::testing_support

// The real program in a real process: what tests of the command line run.

#pragma once

#include <string>
#include <vector>

namespace capo::testing_support {

struct Outcome {
  int exit_code = -1;  ///< 128 + N after signal N, as a shell has it
  std::string out;
  std::string err;
};

/// The program that the tests are of: the one built beside them, or where the environment names
/// another in CAPO_UNDER_TEST, that: one built otherwise is tested so without building its tests.
[[nodiscard]] const char* program_under_test();

struct RunOptions {
  std::string input;                     ///< standard input
  std::string directory;                 ///< working directory; empty: the test's own
  std::vector<std::string> environment;  ///< "NO_COLOR=1", added to the test's own
  std::string stdout_path;               ///< standard output goes here, e.g. /dev/full
  int seconds = 60;                      ///< then it is killed, which a test takes for a hang
  std::string program = program_under_test();
};

/// Runs capo with these arguments.
[[nodiscard]] Outcome run_capo(const std::vector<std::string>& arguments,
                               const RunOptions& options = {});

/// The words of a line, between which there are blanks: arguments of a run.
[[nodiscard]] std::vector<std::string> split_words(const std::string& line);

/// Whether `piece` stands in `text`.
[[nodiscard]] bool holds(const std::string& text, const std::string& piece);

}  // namespace capo::testing_support

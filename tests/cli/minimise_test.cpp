// `capo minimise` over the bad cases of the rules' corpus. Cases by hand are in
// tests/corpus/cli/minimise.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;
namespace fs = std::filesystem;

const fs::path kRules = CAPO_SOURCE_DIR "/tests/corpus/rules";

struct Flags {
  std::vector<std::string> all;
  std::vector<std::string> about_environment;  // facts that the written text does not state
};

// The flags of a case; nullopt if minimise does not take one of them.
std::optional<Flags> flags_of(const fs::path& input) {
  constexpr std::array<std::string_view, 7> kInput{
      "--csv",           "--delayed", "--layers-per-chunk", "--microbatches", "--stages",
      "--stage-to-rank", "--form"};
  constexpr std::array<std::string_view, 10> kEnvironment{
      "--comm", "--transfers", "--p2p",     "--model",  "--topology",
      "--plan", "--alias",     "--modules", "--budget", "--model-chunks"};
  Flags flags;
  std::ifstream file(fs::path(input).replace_extension(".args"));
  for (std::string flag, value; file >> flag;) {
    const bool known = std::find(kInput.begin(), kInput.end(), flag) != kInput.end();
    const bool environment =
        std::find(kEnvironment.begin(), kEnvironment.end(), flag) != kEnvironment.end();
    if (!known && !environment) return std::nullopt;
    file >> value;
    for (const std::string& word : {flag, value}) {
      flags.all.push_back(word);
      if (environment) flags.about_environment.push_back(word);
    }
  }
  return flags;
}

std::vector<fs::path> bad_cases() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRules)) {
    const fs::path& path = entry.path();
    const std::string extension = path.extension();
    const bool input =
        extension == ".te" || extension == ".order" || extension == ".csv" || extension == ".json";
    if (input && path.filename().string().starts_with("bad-")) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Outcome minimise(const std::string& file, const std::string& rule,
                 const std::vector<std::string>& flags, const fs::path& folder) {
  std::vector<std::string> arguments{"minimise", file, "--rule", rule};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return run_capo(arguments, {.directory = folder});
}

// The written order breaks the same rule, and cannot be made smaller.
TEST(MinimiseCommand, EveryBadCaseOfTheCorpusEndsAtAFixedPointThatBreaksItsRule) {
  int written = 0;
  int as_written = 0;  // in a notation other than .order text
  std::vector<std::string> unwritable;
  std::vector<std::string> left_out;
  for (const fs::path& path : bad_cases()) {
    SCOPED_TRACE(path.string());
    const std::string rule = path.parent_path().filename();
    const auto flags = flags_of(path);
    if (!flags || rule == "I01" || rule == "I02") {
      left_out.push_back(rule + "/" + path.filename().string());
      continue;
    }
    const Outcome least = minimise(path.filename(), rule, flags->all, path.parent_path());
    if (least.exit_code == 1) {
      unwritable.push_back(rule + "/" + path.filename().string());
      continue;
    }
    EXPECT_EQ(least.exit_code, 0) << least.err;
    if (least.exit_code != 0) continue;
    ++written;
    const ScratchFolder folder;
    const bool noted = least.err.find("note: written as .order text: ") != std::string::npos;
    const std::string extension = noted ? ".order" : path.extension().string();
    const std::string minimal = "minimal" + extension;
    as_written += noted || extension == ".order" ? 0 : 1;
    folder.write(minimal, least.out);
    for (const auto& entry : fs::directory_iterator(path.parent_path())) {
      if (entry.path().extension() == ".model")
        fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    }
    std::vector<std::string> arguments{"check", minimal};
    arguments.insert(arguments.end(), flags->about_environment.begin(),
                     flags->about_environment.end());
    const Outcome checked = run_capo(arguments, {.directory = folder.path()});
    EXPECT_EQ(checked.exit_code, 1) << checked.out << checked.err;
    EXPECT_NE(checked.out.find("error[" + rule + "]: "), std::string::npos)
        << least.out << checked.out;
    const Outcome again = minimise(minimal, rule, flags->about_environment, folder.path());
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, least.out);
  }
  std::cout << written << " cases minimised, " << as_written
            << " of them in a notation of their own; " << unwritable.size()
            << " that .order text cannot say:";
  for (const std::string& name : unwritable) std::cout << " " << name;
  std::cout << "; left out:";
  for (const std::string& name : left_out) std::cout << " " << name;
  std::cout << "\n";
  EXPECT_GT(written, 100);
  EXPECT_GT(as_written, 90);
  for (const std::string& name : unwritable) {
    EXPECT_FALSE(name.ends_with(".order")) << name << " is .order text already";
  }
}

}  // namespace
}  // namespace capo

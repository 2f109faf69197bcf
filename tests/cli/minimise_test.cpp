// `capo minimise` as a user runs it, by hand and over the bad cases of the rules' corpus.

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

TEST(MinimiseCommand, WritesOrderTextAndOneLineAboutIt) {
  const Outcome outcome = run_capo({"minimise", "--order", "[1, 2, 1, -2, 2, -1, -2, 1, -1, 2]"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "capo 1\nranks 1\nrank 0: F1\n");
  EXPECT_TRUE(outcome.err.starts_with("minimise: S15 still broken; 10 entries -> 1, 1 rank -> 1, "))
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST(MinimiseCommand, ARuleIsChosenByItsIdOrName) {
  const std::vector<std::string> order{"--order", "[1, -1.5, -1, 1, 1, -1]"};
  for (const char* rule : {"S24", "weight-ahead"}) {
    const Outcome outcome = run_capo({"minimise", order[0], order[1], "--rule", rule});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "capo 1\nranks 1\nrank 0: F1 W1 B1\n");
  }
}

TEST(MinimiseCommand, ARuleThatIsNotBrokenIsAUsageError) {
  const Outcome other = run_capo({"minimise", "--order", "[1, 1, -1]", "--rule", "S24"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_NE(other.err.find("S24 is not broken; broken is S15"), std::string::npos) << other.err;
  const Outcome sound = run_capo({"minimise", "--order", "[1, -1]", "--rule", "S24"});
  EXPECT_EQ(sound.exit_code, 2);
  EXPECT_NE(sound.err.find("the order breaks no rule"), std::string::npos) << sound.err;
}

TEST(MinimiseCommand, ARuleThatDoesNotExistIsAUsageError) {
  const Outcome outcome = run_capo({"minimise", "--order", "[1, -1]", "--rule", "weight-ahaed"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("did you mean `weight-ahead`?"), std::string::npos) << outcome.err;
}

TEST(MinimiseCommand, OfASoundOrderThereIsNothingToMinimise) {
  const Outcome outcome = run_capo({"minimise", "--order", "[1, -1]"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "minimise: the order breaks no rule; there is nothing to minimise\n");
}

TEST(MinimiseCommand, WhatOrderTextCannotSayIsExitCodeOne) {
  const Outcome outcome = run_capo({"minimise", "--order", "[1, -1.25, -1]"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("S02 is not broken by the same schedule as .order text"),
            std::string::npos)
      << outcome.err;
}

TEST(MinimiseCommand, AMalformedInputIsExitCodeThree) {
  EXPECT_EQ(run_capo({"minimise", "--order", "capo 2"}).exit_code, 3);
  EXPECT_EQ(run_capo({"minimise", "no-such-file.te"}).exit_code, 3);
}

TEST(MinimiseCommand, AtItsLimitItWritesTheBestSoFarWithExitCodeFour) {
  const Outcome outcome =
      run_capo({"minimise", "--order", "[1, 2, -2, -1, -1]", "--max-checks", "0"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.out, "capo 1\nranks 1\nrank 0: F1 F2 B2 B1 B1\n");
  EXPECT_NE(outcome.err.find("--max-checks ended it"), std::string::npos) << outcome.err;
}

TEST(MinimiseCommand, WritesAFileThatCheckRejectsAlike) {
  const ScratchFolder folder;
  const Outcome outcome = run_capo({"minimise", "--order", "[1, 1, -1, 2, -2]", "-o", "min.order"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const Outcome checked = run_capo({"check", "min.order"}, {.directory = folder.path()});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_NE(checked.out.find("error[S15]"), std::string::npos) << checked.out;
}

TEST(MinimiseCommand, APlanIsDeclaredAsToCheck) {
  const std::vector<std::string> plan{"--plan", "te", "--alias", "input"};
  std::vector<std::string> arguments{"minimise", "--order",
                                     "[1, 2, -1, 2, 1, -2, -1.5, -1, -2.5, -1.5, -2, -2.5]"};
  arguments.insert(arguments.end(), plan.begin(), plan.end());
  const Outcome outcome = run_capo(arguments);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "capo 1\nranks 1\nrank 0: F1 B1 F1 W1 B1 W1\n");
  EXPECT_TRUE(outcome.err.starts_with("minimise: B01 still broken; 12 entries -> 6, "))
      << outcome.err;
}

TEST(MinimiseCommand, HelpHasAnExample) {
  const Outcome outcome = run_capo({"minimise", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Example: capo minimise"), std::string::npos);
}

// --- the corpus ----------------------------------------------------------------------------------

const fs::path kRules = CAPO_SOURCE_DIR "/tests/corpus/rules";

struct Flags {
  std::vector<std::string> all;
  std::vector<std::string> about_environment;  // what the written text does not say itself
};

// Nothing for a case with a flag that minimise does not take.
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

// What is written breaks the same rule, and cannot be made smaller.
TEST(MinimiseCommand, EveryBadCaseOfTheCorpusEndsAtAFixedPointThatBreaksItsRule) {
  int written = 0;
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
    folder.write("minimal.order", least.out);
    for (const auto& entry : fs::directory_iterator(path.parent_path())) {
      if (entry.path().extension() == ".model")
        fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    }
    std::vector<std::string> arguments{"check", "minimal.order"};
    arguments.insert(arguments.end(), flags->about_environment.begin(),
                     flags->about_environment.end());
    const Outcome checked = run_capo(arguments, {.directory = folder.path()});
    EXPECT_EQ(checked.exit_code, 1) << checked.out << checked.err;
    EXPECT_NE(checked.out.find("error[" + rule + "]: "), std::string::npos)
        << least.out << checked.out;
    const Outcome again = minimise("minimal.order", rule, flags->about_environment, folder.path());
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, least.out);
  }
  std::cout << written << " cases minimised; " << unwritable.size()
            << " that .order text cannot say:";
  for (const std::string& name : unwritable) std::cout << " " << name;
  std::cout << "; left out:";
  for (const std::string& name : left_out) std::cout << " " << name;
  std::cout << "\n";
  EXPECT_GT(written, 100);
  for (const std::string& name : unwritable) {
    EXPECT_FALSE(name.ends_with(".order")) << name << " is .order text already";
  }
}

}  // namespace
}  // namespace capo

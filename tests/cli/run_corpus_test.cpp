// Runs the corpus of the rules on the engine of the program: what is rejected for a hazard shows
// it, what is rejected for its transfers stays in its stuck state, and what is accepted is right.
//
// Bad cases that declare no plan run under TransformerEngine's, which is what their rules speak of.

#include "tests/run/test_engine.h"
#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;
namespace fs = std::filesystem;

const fs::path kRules = CAPO_SOURCE_DIR "/tests/corpus/rules";

struct Case {
  fs::path input;
  std::vector<std::string> arguments;
  bool declares_plan = false;

  [[nodiscard]] bool bad() const { return input.filename().string().starts_with("bad-"); }
  [[nodiscard]] std::string name() const {
    return input.parent_path().filename().string() + "/" + input.filename().string();
  }
};

bool states_plan(const fs::path& model) {
  return read_file(model).find("\"plan\"") != std::string::npos;
}

// Flags of `check` that `run` has as well.
std::vector<std::string> arguments_of(const fs::path& input) {
  std::vector<std::string> arguments;
  std::istringstream words(read_file(fs::path(input).replace_extension(".args")));
  for (std::string word; words >> word;) {
    if (word != "--format" && word != "--profile") {
      arguments.push_back(word);
    } else {
      words >> word;
    }
  }
  return arguments;
}

// What is wrong in eager execution alone, since a replay does not hear of it, or right only as long
// as nobody declares what a run has to know, or judged under a given plan, which no run takes.
bool is_of_no_run(const fs::path& path) {
  const std::string name = path.stem().string();
  return name == "bad-first-forward-late" || name == "good-operands-unknown" ||
         name == "good-no-plan" || name.find("-given-") != std::string::npos;
}

std::vector<Case> cases(const std::string& rule, const std::string& prefix) {
  std::vector<Case> found;
  for (const auto& entry : fs::directory_iterator(kRules / rule)) {
    const fs::path& path = entry.path();
    const bool input = path.extension() == ".te" || path.extension() == ".order" ||
                       path.extension() == ".csv" || path.extension() == ".json";
    if (input && !is_of_no_run(path) && path.filename().string().starts_with(prefix)) {
      Case& of = found.emplace_back(Case{path, arguments_of(path)});
      for (const std::string& word : of.arguments) {
        const bool model = word.ends_with(".model") && states_plan(path.parent_path() / word);
        of.declares_plan = of.declares_plan || word == "--plan" || model;
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Case& a, const Case& b) { return a.input < b.input; });
  return found;
}

Outcome run(const Case& of, std::vector<std::string> flags) {
  std::vector<std::string> arguments{"run", of.input.filename().string(), "--device",
                                     std::string(run::test_device())};
  arguments.insert(arguments.end(), of.arguments.begin(), of.arguments.end());
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  if (!of.declares_plan && of.bad()) arguments.insert(arguments.end(), {"--plan", "te"});
  return run_capo(arguments, {.directory = of.input.parent_path().string()});
}

// Buffers, streams and replays; of gradients and captures those that change numbers. The others
// end in an error of a framework's own (G04, G07, C02 to C06, C08, C11), are about hooks,
// collectives and offloading, which capo does not run (G08, G09, G11, C07), or about kernels that
// capo does not have (E02, C05) or a layer that it does not run (G06), or concern devices and
// libraries that a run is not on (C12, C14, C15). A weight that a forward reads too early (Y07)
// shows where somebody reads what that made: the second product of an MLP, and nobody of one
// linear.
class HazardCorpus : public ::testing::TestWithParam<const char*> {};

TEST_P(HazardCorpus, EveryBadCaseShowsItsHazardWhenRunUnchecked) {
  const auto found = cases(GetParam(), "bad-");
  ASSERT_FALSE(found.empty());
  for (const Case& of : found) {
    const Outcome outcome = run(of, {"--unchecked", "--format", "json"});
    ASSERT_EQ(outcome.exit_code, 1) << of.name() << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["verdict"], "rejected") << of.name();
    EXPECT_EQ(report["bit_equal"], false) << of.name();
    EXPECT_EQ(report["victims"], report["predicted"]) << of.name();
    EXPECT_EQ(report["float64"]["within_bounds"], true) << of.name() << ": eager itself is right";
  }
}

TEST_P(HazardCorpus, NoBadCaseRunsChecked) {
  for (const Case& of : cases(GetParam(), "bad-")) {
    const Outcome outcome = run(of, {});
    EXPECT_EQ(outcome.exit_code, 1) << of.name();
    EXPECT_TRUE(outcome.out.empty()) << of.name() << outcome.out;
    EXPECT_NE(outcome.err.find("was not run"), std::string::npos) << of.name() << outcome.err;
  }
}

// Under --possible warn an order is accepted whose hazards hang on the allocator, and it may have
// them.
bool accepts_what_is_possible(const Case& of) {
  return std::find(of.arguments.begin(), of.arguments.end(), "--possible") != of.arguments.end();
}

TEST_P(HazardCorpus, EveryGoodCaseIsEqualToEager) {
  for (const Case& of : cases(GetParam(), "good-")) {
    if (accepts_what_is_possible(of)) continue;
    const Outcome outcome = run(of, {"--format", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << of.name() << outcome.out << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, HazardCorpus,
                         ::testing::Values("B01", "B02", "B03", "B04", "B05", "B06", "E01", "Y01",
                                           "Y07", "G01", "G02", "G03", "G05", "G10", "G12", "C01",
                                           "C13"),
                         [](const auto& rule) { return std::string(rule.param); });

// Two copies of an order are run, whose reductions meet: over one rank a sum is what it was.
class ReductionCorpus : public ::testing::TestWithParam<const char*> {};

TEST_P(ReductionCorpus, EveryBadCaseShowsOverReplicas) {
  const auto found = cases(GetParam(), "bad-");
  ASSERT_FALSE(found.empty());
  for (const Case& of : found) {
    const Outcome outcome = run(of, {"--unchecked", "--replicas", "2", "--format", "json"});
    ASSERT_EQ(outcome.exit_code, 1) << of.name() << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["verdict"], "rejected") << of.name();
    EXPECT_EQ(report["bit_equal"], false) << of.name();
    EXPECT_EQ(report["float64"]["within_bounds"], true) << of.name() << ": eager itself is right";
  }
}

TEST_P(ReductionCorpus, EveryGoodCaseIsEqualToEagerOverReplicas) {
  for (const Case& of : cases(GetParam(), "good-")) {
    const Outcome outcome = run(of, {"--replicas", "2", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << of.name() << outcome.out << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ReductionCorpus, ::testing::Values("G13", "G14", "G15"),
                         [](const auto& rule) { return std::string(rule.param); });

class TransferCorpus : public ::testing::TestWithParam<const char*> {};

TEST_P(TransferCorpus, EveryBadCaseIsTakenAsFarAsItGoes) {
  const auto found = cases(GetParam(), "bad-");
  ASSERT_FALSE(found.empty());
  for (const Case& of : found) {
    const Outcome outcome = run(of, {"--unchecked"});
    EXPECT_EQ(outcome.exit_code, 1) << of.name() << outcome.err;
    const bool stuck = outcome.err.find("stays there:\n  rank ") != std::string::npos;
    const bool swapped =
        outcome.err.find("taken to its end: in this course nothing waits") != std::string::npos;
    EXPECT_NE(stuck, swapped) << of.name() << outcome.err;
    EXPECT_NE(outcome.err.find("leaves nothing to run"), std::string::npos) << of.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, TransferCorpus,
                         ::testing::Values("T01", "T02", "T03", "T04", "T05", "T06", "T07", "T08",
                                           "T09", "T10"),
                         [](const auto& rule) { return std::string(rule.param); });

}  // namespace
}  // namespace capo

// `capo run` and `capo measure` of modules whose sizes follow from a configuration.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

class ConfiguredRun : public ::testing::Test {
 protected:
  // The ready model for tests, with what `change` sets.
  void write(const std::vector<std::string>& change) const {
    std::vector<std::string> words{"model", "tiny", "-o", "model.json"};
    words.insert(words.end(), change.begin(), change.end());
    const Outcome outcome = run_capo(words, {.directory = folder_.path()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  [[nodiscard]] Outcome run(const std::string& command, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{command, "--model", "model.json", "--device", "host"};
    words.insert(words.end(), more.begin(), more.end());
    return run_capo(words, {.directory = folder_.path()});
  }

  testing_support::ScratchFolder folder_;
};

// 64 tokens choose two of two experts each, whose rows have 64 columns.
TEST_F(ConfiguredRun, TakesTheSizesOfTheConfiguration) {
  write({"--set", "shared_experts=0"});
  const Outcome outcome = run("run", {"--order", "[1,-1]", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["bit_equal"], true);
  std::map<std::string, int> elements;
  for (const json& parameter : report["parameters"]) {
    const std::string name = parameter["name"];
    elements[name.substr(name.find(": ") + 2)] = parameter["elements"];
  }
  EXPECT_EQ(elements["qkv weight"], (4 + 2 * 2) * 16 * 64);
  EXPECT_EQ(elements["router weight"], 2 * 64);
  EXPECT_EQ(elements["fc1 weight"], 2 * 2 * 32 * 64);
  const Outcome text = run("run", {"--order", "[1,-1]"});
  EXPECT_TRUE(holds(text.out, "  not declared: plan safe\n")) << text.out;
}

TEST_F(ConfiguredRun, IsRefusedWhereNoModuleIsAsTheConfigurationHasIt) {
  write({});
  const Outcome outcome = run("run", {"--order", "[1,-1]"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(
      holds(outcome.out + outcome.err,
            "module `experts` takes its sizes from a configuration with shared experts, which "
            "no module has that capo runs: declare its shape"))
      << outcome.out << outcome.err;
  EXPECT_EQ(run("measure").exit_code, 1);
}

TEST_F(ConfiguredRun, IsMeasuredWithTheseSizes) {
  write({"--set", "shared_experts=0"});
  const Outcome outcome = run("measure", {"-o", "costs.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json costs = json::parse(folder_.read("costs.json"));
  EXPECT_GT(costs["modules"]["experts"]["cost"]["forward"], 0);
  EXPECT_TRUE(costs.contains("configuration"));
}

}  // namespace
}  // namespace capo

// The campaign's cases are functions of seed and number, of both kinds, and a hundred of them
// agree; one that cannot be run does not.

#include <capo/testing/truth/cases.h>
#include <capo/testing/truth/verdict.h>

#include <capo/run/host/host_engine.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>

namespace capo::testing {
namespace {

TEST(Truth, ACaseIsAFunctionOfSeedAndNumber) {
  for (std::uint64_t number = 0; number < 20; ++number) {
    const TruthCase one = truth_case(3, number);
    const TruthCase again = truth_case(3, number);
    EXPECT_EQ(one.words, again.words);
    EXPECT_EQ(one.module, again.module);
    EXPECT_EQ(one.graphs, again.graphs);
    EXPECT_EQ(one.unchecked, number % 2 == 1);
  }
  EXPECT_NE(truth_case(3, 1).words, truth_case(4, 1).words);
}

TEST(Truth, AHundredCasesAgreeAndAreOfAllSorts) {
  std::set<std::string> modules;
  std::size_t accepted = 0;
  std::size_t rejected = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const TruthCase of = truth_case(1, number);
    run::host::HostEngine engine;
    const TruthVerdict verdict = judge_truth(of, number, engine);
    EXPECT_TRUE(verdict.agrees) << verdict.line;
    modules.insert(of.module);
    ++(verdict.accepted ? accepted : rejected);
    const auto line = nlohmann::json::parse(verdict.line);
    EXPECT_EQ(line["n"], number);
    EXPECT_EQ(line["bytes_as_planned"], true);
  }
  EXPECT_GT(accepted, 50u);
  EXPECT_GT(rejected, 10u);
  EXPECT_GE(modules.size(), 8u);
}

TEST(Truth, ACaseThatCannotBeRunDoesNotAgree) {
  TruthCase of = truth_case(1, 0);
  for (Module& module : of.options.modules.list) module.kind = ModuleKind::TransformerLayer;
  run::host::HostEngine engine;
  const TruthVerdict verdict = judge_truth(of, 0, engine);
  EXPECT_FALSE(verdict.agrees);
  EXPECT_TRUE(nlohmann::json::parse(verdict.line).contains("failure"));
}

}  // namespace
}  // namespace capo::testing

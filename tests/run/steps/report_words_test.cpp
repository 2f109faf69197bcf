// The words of a run whose eager execution is not float64's: each tensor beyond its bound by name,
// as text and as JSON. No sound run has one, so a report is made to.

#include "run/report.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace capo::run {
namespace {

TEST(RunReport, NamesEachTensorThatIsBeyondItsBound) {
  const VerifiedPlan plan = verified(typed("[1, -1]"), every_layer(small(ModuleKind::Linear)));
  RunReport report = report_of(plan, {.replays = 1});
  report.within_bounds = false;
  for (int i = 0; i < 10; ++i) {
    report.beyond.push_back({.name = fmt::format("gradient {}", i), .error = 0.5, .bound = 0.25});
  }

  const std::string text = text_report(report, plan.step(), {});
  EXPECT_NE(text.find("beyond its bound"), std::string::npos) << text;
  EXPECT_NE(text.find("  gradient 0: relative error 0.5, its bound is 0.25\n"), std::string::npos);
  EXPECT_NE(text.find("gradient 7:"), std::string::npos);
  EXPECT_EQ(text.find("gradient 8:"), std::string::npos);
  EXPECT_NE(text.find("  and 2 more\n"), std::string::npos) << text;

  const auto json = nlohmann::json::parse(json_report(report, plan.step()));
  const auto& beyond = json.at("float64").at("beyond");
  ASSERT_EQ(beyond.size(), 10U);
  EXPECT_EQ(beyond[9].at("name"), "gradient 9");
}

}  // namespace
}  // namespace capo::run

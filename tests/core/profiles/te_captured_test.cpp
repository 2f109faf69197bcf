#include "core/profiles/consult.h"

#include "core/frameworks/te/captured.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::te {
namespace {

using nlohmann::json;
using testing_support::check_te;

std::vector<std::string> actions(const std::optional<Input>& input) {
  std::vector<std::string> out;
  if (!input) return out;
  for (const Entry& entry : input->schedule.ranks.front().order) {
    const char* kind = entry.kind == capo::Kind::Forward    ? "F"
                       : entry.kind == capo::Kind::Backward ? "B"
                                                            : "W";
    out.push_back(kind + std::to_string(entry.chunk) + "." + std::to_string(entry.microbatch));
  }
  return out;
}

using Actions = std::vector<std::string>;

TEST(TeCaptured, ASurplusEntryGoesToTheNextChunk) {
  EXPECT_EQ(actions(captured(check_te("[1, 2, -1, -1]").input)),
            (Actions{"F1.0", "F2.0", "B1.0", "B2.0"}));
  EXPECT_EQ(actions(captured(check_te("[1, 1, 3, -3, -1, -1]").input)),
            (Actions{"F1.0", "F2.0", "F3.0", "B3.0", "B1.0", "B2.0"}));
  EXPECT_EQ(actions(captured(
                check_te("[1, 2, -1, -1.5, -1, -1.5]", {.need_wgrad = {{true, true}}}).input)),
            (Actions{"F1.0", "F2.0", "B1.0", "W1.0", "B2.0", "W2.0"}));
}

TEST(TeCaptured, WhatTeRefusesHasNoCapture) {
  EXPECT_FALSE(captured(check_te("[1, -1, -1]").input));
  EXPECT_FALSE(captured(check_te("[1, 1, -1, -1, -1.5, -1.5]").input));
  EXPECT_FALSE(captured(check_te("[1, nan]").input));
}

TEST(TeCaptured, ASoundListIsCapturedAsItSays) {
  EXPECT_EQ(actions(captured(check_te("[1, 1, -1, -1.5, -1, -1.5]").input)),
            (Actions{"F1.0", "F1.1", "B1.0", "W1.0", "B1.1", "W1.1"}));
}

using Cells = std::set<std::pair<std::int32_t, std::int32_t>>;

Cells victims(const PlanResult& plan, HazardKind kind) {
  Cells cells;
  for (const FoundHazard& hazard : plan.hazards) {
    if (hazard.kind == kind) cells.emplace(hazard.victim.chunk - 1, hazard.victim.microbatch);
  }
  return cells;
}

// Lists that are no sound order, that TE accepts with reuse, seen on an H200.
void expect_hazards_as_seen(const char* file, const char* part, std::size_t expected) {
  std::size_t rows = 0;
  const json data = testing_support::read_data(file);
  for (const json& row : data.at(part)) {
    if (!row.at("reuse").get<bool>() || !row.at("accepted").get<bool>()) continue;
    if (!row.contains("wrong_wgrads")) continue;
    const auto checked = check_te(row.at("order").dump(),
                                  {.layers = testing_support::layers_of(row.at("layers")),
                                   .need_wgrad = row.at("need_wgrad").get<std::vector<bool>>()});
    if (checked.accepted()) continue;
    SCOPED_TRACE(row.dump());
    const auto input = captured(checked.input);
    ASSERT_TRUE(input);
    CheckOptions options;
    options.plan = {.kind = PlanKind::Te, .aliases = Aliases{.input = true, .grad_output = true}};
    const CheckResult result = check(*input, options);
    ASSERT_TRUE(result.plan);
    const auto cells = [&](const char* key) {
      Cells out;
      for (const auto& pair : row.at(key)) out.emplace(pair.at(0), pair.at(1));
      return out;
    };
    EXPECT_EQ(victims(*result.plan, HazardKind::StaticInput), cells("static_input_victims"));
    EXPECT_EQ(victims(*result.plan, HazardKind::GradOutput), cells("grad_output_victims"));
    ++rows;
  }
  EXPECT_EQ(rows, expected);
}

TEST(TeCaptured, HazardsOfUnsoundListsAreThoseSeenOnTheDevice) {
  expect_hazards_as_seen("te_gpu_truth.json", "rows", 55);
  expect_hazards_as_seen("te_gpu_2.20.json", "rows", 55);
  expect_hazards_as_seen("te_gpu_2.20.json", "drawn", 1);
}

}  // namespace
}  // namespace capo::te

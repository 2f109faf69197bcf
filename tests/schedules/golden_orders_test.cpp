// Every order of the golden data, made by its name: token by token what the authors' programs
// print, for closed forms and searches alike.

#include "core/text/order_text.h"
#include "tests/support/published_rows.h"
#include "tests/support/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace capo::schedules {
namespace {

using nlohmann::json;
using testing_support::published_rows;
using testing_support::request_of;
using testing_support::sha256;

/// The orders as the golden data has them: a line for each rank, none behind the last.
std::optional<std::string> tokens_of(const json& row) {
  const auto schedule = schedule_named(request_of(row));
  if (!schedule) {
    ADD_FAILURE() << schedule.error();
    return std::nullopt;
  }
  auto text = print_tokens(*schedule);
  if (!text) {
    ADD_FAILURE() << text.error().reason;
    return std::nullopt;
  }
  text->pop_back();
  return *text;
}

TEST(GoldenOrders, AreWhatTheAuthorsProgramsPrint) {
  struct Tally {
    int rows = 0;
    int identical = 0;
  };
  std::map<std::string, Tally> tallies;
  for (const json& row : published_rows("schedule")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto tokens = tokens_of(row);
    Tally& tally = tallies[row.at("schedule")];
    ++tally.rows;
    const bool identical = tokens && sha256(*tokens) == row.at("order_sha256");
    EXPECT_TRUE(identical);
    if (identical) ++tally.identical;
  }
  Tally all;
  for (const auto& [name, tally] : tallies) {
    fmt::print("{:20} {:4} rows, {:4} identical\n", name, tally.rows, tally.identical);
    all.rows += tally.rows;
    all.identical += tally.identical;
  }
  fmt::print("{:20} {:4} rows, {:4} identical\n", "all", all.rows, all.identical);
  EXPECT_EQ(all.rows, 902);
  EXPECT_EQ(tallies.size(), 25U);
}

TEST(GoldenOrders, AreThereInFullWhereTheyAreSmall) {
  int orders = 0;
  for (const json& row : published_rows("schedule")) {
    if (!row.contains("order")) continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    std::string lines;
    for (const json& line : row.at("order")) {
      lines += fmt::format("{}{}", lines.empty() ? "" : "\n", line.get<std::string>());
    }
    EXPECT_EQ(tokens_of(row), lines);
    ++orders;
  }
  EXPECT_EQ(orders, 93);
}

}  // namespace
}  // namespace capo::schedules

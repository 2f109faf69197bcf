// Proven optima of small settings: no schedule that capo makes is faster within the same memory, or
// its simulation would be wrong; and no bound is above them.

#include "tests/sim/golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace capo::golden {
namespace {

using std::literals::operator""sv;

std::initializer_list<const char*> schedules_of(const json& row) {
  static constexpr auto kLinear = {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb"};
  static constexpr auto kV = {"1f1b-v", "v-half", "v-min", "dualpipev", "zbv", "v-adaptive"};
  return row.at("placement") == "V" ? kV : kLinear;
}

/// Nothing where the schedule does not exist in this setting.
std::unique_ptr<simulated::Simulated> run(const json& row, const char* name) {
  auto schedule = schedules::schedule_named(request_of(row, name));
  if (!schedule) return nullptr;
  return simulated::simulate_input({.form = Form::OrderFile, .schedule = std::move(*schedule)},
                                   options_of(row));
}

TEST(GoldenOptima, AreNotBeaten) {
  int within_memory = 0;
  int met = 0;
  for (const json& row : published_rows("optimum")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const bool of_span = row.at("objective") == "span";
    const auto optimum = row.at(of_span ? "span" : "makespan").get<double>();
    bool row_met = false;
    for (const char* name : schedules_of(row)) {
      const auto made = run(row, name);
      if (made == nullptr) {
        EXPECT_FALSE(name == "zb"sv || name == "zbv"sv) << "which exist in every memory";
        continue;
      }
      ASSERT_NE(made->simulation, nullptr) << name << ": " << made->why;
      if ((*made)->peak() > row.at("mem_limit").get<double>() + 1e-9) continue;
      ++within_memory;
      const double takes = of_span ? (*made)->span() : (*made)->makespan();
      EXPECT_GE(takes, optimum * (1 - 1e-12)) << name;
      row_met = row_met || equal(takes, optimum);
    }
    if (row_met) ++met;
  }
  fmt::print("{} optima, {} orders within their memory; {} optima met\n",
             published_rows("optimum").size(), within_memory, met);
  EXPECT_EQ(published_rows("optimum").size(), 218U);
  EXPECT_GT(within_memory, 3 * 218);
}

// The rows' bounds are rounded up: all their times are whole numbers.
TEST(GoldenOptima, AreNotBelowTheBounds) {
  int bounds = 0;
  for (const json& row : published_rows("optimum")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto made = run(row, row.at("placement") == "V" ? "1f1b-v" : "1f1b");
    ASSERT_TRUE(made != nullptr && made->simulation != nullptr);
    const Bounds& bound = (*made)->bounds();
    const auto expect = [&](const Bound& found, const char* value, const char* rounded) {
      if (row.contains(value)) {
        EXPECT_LE(found.value, row.at(value).get<double>() + 1e-9) << value;
      }
      if (!row.contains(rounded)) return;
      EXPECT_EQ(std::ceil(found.value - 1e-9), row.at(rounded).get<double>())
          << rounded << " by " << found.by << " of rank " << found.rank << ": " << found.value;
      ++bounds;
    };
    expect(bound.makespan, "makespan", "lb_makespan");
    expect(bound.span, "span", "lb_span");
  }
  EXPECT_EQ(bounds, 218);
}

}  // namespace
}  // namespace capo::golden

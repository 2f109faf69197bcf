// The simulator against the golden data of published schedules: what every order takes and holds,
// first for the orders as their authors print them, then for those that capo makes by name.

#include "tests/sim/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::golden {
namespace {

using schedules::Move;
using schedules::PublishedOrders;

std::int32_t number(std::string_view text) {
  std::int32_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "F3", "BW1.0": the microbatch from 0, then the chunk from 0 where ranks hold several.
Move move_of(std::string_view token) {
  const std::size_t digits = token.find_first_of("0123456789");
  const std::string_view word = token.substr(0, digits);
  const std::size_t dot = token.find('.');
  Move move{.kind = word == "F"    ? Kind::Forward
                    : word == "BW" ? Kind::Backward
                    : word == "B"  ? Kind::BackwardInput
                                   : Kind::BackwardWeight,
            .microbatch = number(token.substr(digits))};
  if (dot != std::string_view::npos) move.chunk = number(token.substr(dot + 1)) + 1;
  return move;
}

/// Tokens with blanks between them, or & where they run together.
std::vector<Move> moves_of(std::string_view line) {
  std::vector<Move> moves;
  for (bool joins = false; !line.empty();) {
    const std::size_t end = std::min(line.find_first_of(" &"), line.size());
    moves.push_back(move_of(line.substr(0, end)));
    moves.back().joins = joins;
    joins = end < line.size() && line[end] == '&';
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return moves;
}

Topology topology_of(const json& row) {
  const std::string placement = row.at("placement");
  if (placement == "V") return Topology::V;
  return placement == "bidirectional" ? Topology::Bidirectional : Topology::Loop;
}

Input authors_input(const json& row) {
  PublishedOrders orders;
  for (const json& line : row.at("order")) orders.push_back(moves_of(line.get<std::string>()));
  return {.form = Form::OrderFile,
          .schedule = schedules::schedule_of(orders, topology_of(row), row.at("v"))};
}

void expect_equal(double value, const json& expected, const char* what) {
  EXPECT_TRUE(equal(value, expected.get<double>())) << what << " " << value << " not " << expected;
}

void expect_peaks(const std::vector<double>& peaks, const json& expected, const char* what) {
  ASSERT_EQ(peaks.size(), expected.size());
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    EXPECT_NEAR(peaks[rank], expected[rank].get<double>(), 1e-6)  // which has six digits
        << what << " of rank " << rank << ": " << peaks[rank] << " not " << expected[rank];
  }
}

void expect_row(Input input, const json& row) {
  const auto run = simulated::simulate_input(std::move(input), options_of(row));
  ASSERT_NE(run->simulation, nullptr) << run->why;
  const Simulation& simulation = **run;
  expect_equal(simulation.makespan(), row.at("makespan"), "makespan");
  expect_equal(simulation.span(), row.at("span"), "span");
  expect_equal(simulation.bubble_rate(), row.at("bubble_rate"), "bubble rate");
  expect_equal(simulation.bubble_rate_of_makespan(), row.at("bubble_rate_makespan"),
               "bubble rate of the makespan");
  expect_peaks(peaks(*run, simulation.memory_model()), row.at("peak_mem"), "peak");
  expect_peaks(peaks(*run, {}), row.at("peak_mem_W_release"), "peak where W releases all");
  EXPECT_LE(simulation.bounds().makespan.value, simulation.makespan() * (1 + 1e-12));
  EXPECT_LE(simulation.bounds().span.value, simulation.span() * (1 + 1e-12));
  if (!row.contains("lb_makespan")) return;
  expect_equal(simulation.bounds().makespan.value, row.at("lb_makespan"), "bound of the makespan");
  expect_equal(simulation.bounds().span.value, row.at("lb_span"), "bound of the span");
}

TEST(GoldenSimulation, TakesWhatTheAuthorsOrdersTake) {
  int orders = 0;
  for (const json& row : published_rows("schedule")) {
    if (!row.contains("order")) continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    expect_row(authors_input(row), row);
    ++orders;
  }
  EXPECT_EQ(orders, 93);
}

TEST(GoldenSimulation, TakesAsLongForOrdersMadeByName) {
  int orders = 0;
  for (const json& row : published_rows("schedule")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    auto schedule = schedules::schedule_named(request_of(row));
    ASSERT_TRUE(schedule) << schedule.error();
    expect_row({.form = Form::OrderFile, .schedule = std::move(*schedule)}, row);
    ++orders;
  }
  EXPECT_EQ(orders, 902);
}

}  // namespace
}  // namespace capo::golden

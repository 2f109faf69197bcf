// The torch profile and the strict reader against what PyTorch 2.11 said.

#include "core/frameworks/torch/predict.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/input/json_reader.h"
#include "core/input/load.h"
#include "core/profiles/consult.h"
#include "core/rules/check.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::read_data;

std::string joined(const json& rows) {
  std::string text;
  for (const auto& row : rows) text += row.get<std::string>() + "\n";
  return text;
}

Input table(const json& rows, TorchDeclarations declarations) {
  auto input = load(Source{.name = "table.csv", .text = joined(rows)},
                    {.form = TextForm::TorchCsv, .torch = std::move(declarations)});
  EXPECT_TRUE(input) << input.error().refusal.finding.message;
  return std::move(*input);
}

TorchDeclarations declared(const json& row, std::int32_t microbatches) {
  return {.microbatches = microbatches,
          .stage_to_rank = row.at("stage_to_rank").get<std::vector<std::int32_t>>()};
}

const torch::Version& k2_11 = torch::kVersions.front();

// torch's word for a step of consult_torch; empty for null.
std::string step_of(const Input& input, std::size_t step) {
  return consult_torch(input, k2_11).steps.at(step).second.value_or("");
}

std::string text_of(const nlohmann::json& row, const char* key) {
  return row.contains(key) ? row.at(key).get<std::string>() : "";
}

std::string joined_rows(const torch::Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + to_text(row[i]);
    text += "\n";
  }
  return text;
}

std::string validated(const Input& input) {
  return consult_torch(input, k2_11).steps.front().second.value();
}

TEST(TorchProfile, ReadsEveryCellAsTorchDoes) {
  std::size_t cells = 0;
  const nlohmann::json data = read_data("torch_schedules.json");
  for (const auto& row : data.at("parse")) {
    const auto cell = read_as_torch(row.at(0).get<std::string>(), k2_11);
    SCOPED_TRACE(row.dump());
    if (row.at(1).is_null()) {
      EXPECT_EQ(cell.form, TorchCell::Form::Idle);
    } else if (row.at(1).is_object()) {
      EXPECT_EQ(cell.form, TorchCell::Form::Refused);
      EXPECT_EQ(cell.error, row.at(1).at("error").get<std::string>());
    } else {
      EXPECT_EQ(cell.repr, row.at(1).get<std::string>());
    }
    ++cells;
  }
  std::printf("%zu of 27 cells are read as torch reads them\n", cells);
  EXPECT_EQ(cells, 27U);
}

TEST(TorchProfile, ReadsAndWritesBackEveryTable) {
  std::size_t tables = 0;
  const json data = read_data("torch_schedules.json");
  const auto round_trip = [&](const json& rows) {
    auto input = load(Source{.name = "table.csv", .text = joined(rows)}, {});
    ASSERT_TRUE(input) << input.error().refusal.finding.message;
    const auto text = print_torch_csv(input->schedule);
    ASSERT_TRUE(text) << text.error().reason;
    EXPECT_EQ(*text, joined(rows));
    ++tables;
  };
  for (const auto& row : data.at("rows")) {
    for (const char* field : {"order", "lowered", "runtime"}) {
      if (row.contains(field)) round_trip(row.at(field));
    }
  }
  for (const auto& row : data.at("mutations"))
    round_trip(row.at(row.contains("order") ? "order" : "comms"));
  std::printf("%zu tables are read and written back\n", tables);
  EXPECT_GT(tables, 250U);
}

TEST(TorchProfile, ReadsTorchsOwnFiles) {
  for (const char* name :
       {"torch_csv/zb1p_2rank_2stagep_compute.csv", "torch_csv/zb1p_2rank_2stagep_comms.csv",
        "torch_csv/dualpipev_4rank_10mb.csv"}) {
    std::ifstream file(testing_support::data_path(name));
    std::stringstream text;
    text << file.rdbuf();
    auto input = load(Source{.name = name, .text = text.str()}, {});
    ASSERT_TRUE(input) << name;
    EXPECT_EQ(check(*input).verdict, Verdict::Accepted) << name;
    std::string expected = text.str();
    if (!expected.ends_with('\n')) expected += '\n';
    EXPECT_EQ(print_torch_csv(input->schedule).value(), expected) << name;
  }
}

TEST(TorchProfile, AsksNothingOfAnEmptyCell) {
  for (const torch::Version& version : torch::kVersions) {
    const Input input = table(json::array({"0F0,,0SEND_F0", ",1RECV_F0,1F0"}), {});
    const bool looks = version.refuse != nullptr;
    EXPECT_EQ(torch::predict(input, 2, 1, version).lower.has_value(), looks) << version.release;
  }
}

TEST(TorchProfile, ValidatesEveryTableAsTorchDoes) {
  std::size_t tables = 0;
  const nlohmann::json data = read_data("torch_schedules.json");
  for (const auto& row : data.at("rows")) {
    if (!row.contains("validate")) continue;
    const Input input = table(row.at("order"), declared(row, row.at("M").get<std::int32_t>()));
    EXPECT_EQ(validated(input), row.at("validate").get<std::string>()) << row.at("id");
    // torch's 1F1B tables number the last rank's forwards 1..M: the one kind that is not sound.
    EXPECT_EQ(check(input).verdict == Verdict::Accepted, row.at("cls") != "1F1B") << row.at("id");
    ++tables;
  }
  std::printf("%zu tables are validated as torch does\n", tables);
  EXPECT_EQ(tables, 121U);
}

TEST(TorchProfile, ValidatesEveryMutatedTableAsTorchDoes) {
  const std::set<std::string> shape{"drop",    "duplicate",       "b_twice",      "mb_alias",
                                    "mb_none", "mb_out_of_range", "mb_rename_all"};
  std::size_t tables = 0;
  std::size_t rejected = 0;
  std::size_t accepted = 0;
  const nlohmann::json data = read_data("torch_schedules.json");
  for (const auto& row : data.at("mutations")) {
    SCOPED_TRACE(row.at("id").dump());
    const bool comms = row.contains("comms");
    const Input input = table(row.at(comms ? "comms" : "order"),
                              declared(row, row.at("base").at(3).get<std::int32_t>()));
    EXPECT_EQ(validated(input), row.at("validate").get<std::string>());
    ++tables;
    const Verdict verdict = check(input).verdict;
    if (row.at("by_construction") == "invalid" &&
        shape.contains(row.at("kind").get<std::string>())) {
      EXPECT_EQ(verdict, Verdict::Rejected);
      ++rejected;
    }
    if (row.at("by_construction") == "valid") {
      EXPECT_EQ(verdict, Verdict::Accepted);
      ++accepted;
    }
  }
  std::printf(
      "%zu of 79 mutated tables are validated as torch does; %zu invalid shapes rejected, %zu "
      "valid accepted\n",
      tables, rejected, accepted);
  EXPECT_EQ(tables, 79U);
}

TEST(TorchProfile, LowersAndSimulatesEveryMutatedTableAsTorchDoes) {
  std::size_t lowered = 0;
  std::size_t simulated = 0;
  const nlohmann::json data = read_data("torch_schedules.json");
  for (const auto& row : data.at("mutations")) {
    SCOPED_TRACE(row.at("id").dump());
    const bool comms = row.contains("comms");
    const Input input = table(row.at(comms ? "comms" : "order"),
                              declared(row, row.at("base").at(3).get<std::int32_t>()));
    EXPECT_EQ(step_of(input, 1), text_of(row, "lower"));
    EXPECT_EQ(step_of(input, 2), text_of(row, "sim"));
    lowered += row.contains("lower") ? 1 : 0;
    simulated += row.contains("sim") ? 1 : 0;
  }
  std::printf("%zu lowerings and %zu simulations of mutated tables end as torch's do\n", lowered,
              simulated);
  EXPECT_EQ(lowered, 51U);
  EXPECT_EQ(simulated, 57U);
}

TEST(TorchProfile, LowersEveryTableToTorchsOwnAndTakesItsSteps) {
  std::size_t tables = 0;
  std::size_t steps = 0;
  const nlohmann::json data = read_data("torch_schedules.json");
  for (const auto& row : data.at("rows")) {
    if (!row.contains("lowered")) continue;
    SCOPED_TRACE(row.at("id").dump());
    const Input input = table(row.at("order"), declared(row, row.at("M").get<std::int32_t>()));
    const auto ranks = torch::rank_of_stages(
        input, row.at("P").get<std::int64_t>() * row.at("V").get<std::int64_t>());
    const torch::Lowered lowered =
        k2_11.lower(torch::without_reductions(torch::rows_of(input, k2_11)), ranks);
    EXPECT_EQ(lowered.error, "");
    EXPECT_EQ(joined_rows(lowered.rows), joined(row.at("lowered")));
    ++tables;
    if (!row.contains("sim_step")) continue;
    const torch::Simulated simulated = torch::simulate(lowered.rows, ranks);
    EXPECT_EQ(simulated.error, "");
    EXPECT_EQ(simulated.length, row.at("sim_len").get<std::size_t>());
    EXPECT_EQ(simulated.steps, row.at("sim_step").get<std::vector<std::vector<std::size_t>>>());
    ++steps;
  }
  std::printf("%zu tables are lowered as torch does, %zu simulated step by step\n", tables, steps);
  EXPECT_EQ(tables, 63U);
  EXPECT_GT(steps, 40U);
}

}  // namespace
}  // namespace capo

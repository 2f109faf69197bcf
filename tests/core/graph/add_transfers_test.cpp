// Putting transfers in, against PyTorch 2.11's own lists and, where there are none, against the
// profile that carries PyTorch's rule over sweep by sweep.

#include "core/frameworks/torch/predict.h"
#include "core/frameworks/torch/version.h"
#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/graph/random_schedule.h"
#include "tests/core/graph/torch_tables.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Cells;
using testing_support::cells_of;
using testing_support::lines_of;
using testing_support::random_schedule;
using testing_support::read_data;
using testing_support::read_schedule;
using testing_support::torch_table;
using testing_support::without;

using Lines = std::vector<std::string>;

const std::vector<Kind> kTransfers{Kind::SendForward, Kind::ReceiveForward, Kind::SendBackward,
                                   Kind::ReceiveBackward};

std::vector<std::string> added(const Schedule& schedule, std::int32_t microbatches) {
  return lines_of(add_transfers(schedule, StageMap(schedule), microbatches).lowered);
}

Cells lowered_cells(const Schedule& schedule, std::int32_t microbatches) {
  const WithTransfers made = add_transfers(schedule, StageMap(schedule), microbatches);
  EXPECT_TRUE(made.complete);
  return cells_of(to_schedule(made.lowered, schedule));
}

std::size_t count(const Cells& cells) {
  std::size_t total = 0;
  for (const auto& rank : cells) total += rank.size();
  return total;
}

TEST(AddTransfers, ReproducesEveryListOfPyTorchToTheEntry) {
  std::size_t tables = 0;
  std::size_t composite = 0;
  std::size_t cells = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("rows")) {
    if (!row.contains("lowered")) continue;
    SCOPED_TRACE(row.at("id").dump());
    const auto microbatches = row.at("M").get<std::int32_t>();
    const Input input = torch_table(row.at("order"), row.at("stage_to_rank"), microbatches);
    const Schedule schedule = without(input.schedule, {Kind::ReduceGradient});
    const Cells expected = cells_of(row.at("lowered"));
    EXPECT_EQ(lowered_cells(schedule, microbatches), expected);
    ++tables;
    composite += row.at("cls") == "DualPipeV" ? 1 : 0;
    cells += count(expected);
  }
  std::printf("%zu tables, %zu of them with composites: %zu cells as PyTorch has them\n", tables,
              composite, cells);
  EXPECT_EQ(tables, 63U);
  EXPECT_EQ(composite, 9U);
}

// PyTorch executes these tables: its constructor puts the actions of whole stages in before the
// transfers.
TEST(AddTransfers, ReproducesWhatPyTorchExecutesWithItsActionsOfWholeStages) {
  std::size_t tables = 0;
  std::size_t cells = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("rows")) {
    if (!row.contains("runtime")) continue;
    SCOPED_TRACE(row.at("id").dump());
    const auto microbatches = row.at("M").get<std::int32_t>();
    const Input input = torch_table(row.at("runtime"), row.at("stage_to_rank"), microbatches);
    const Cells expected = cells_of(row.at("runtime"));
    EXPECT_EQ(lowered_cells(without(input.schedule, kTransfers), microbatches), expected);
    ++tables;
    cells += count(expected);
  }
  std::printf("%zu tables that PyTorch executes: %zu cells\n", tables, cells);
  EXPECT_EQ(tables, 24U);
}

TEST(AddTransfers, KeepsAReductionWhereItStands) {
  std::size_t tables = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("rows")) {
    if (!row.contains("lowered") || row.at("cls") != "GPipe") continue;
    const auto microbatches = row.at("M").get<std::int32_t>();
    const Input input = torch_table(row.at("order"), row.at("stage_to_rank"), microbatches);
    Cells expected = cells_of(row.at("lowered"));
    for (std::size_t r = 0; r < expected.size(); ++r) {
      expected[r].push_back(std::to_string(r) + "REDUCE_GRAD");
    }
    EXPECT_EQ(lowered_cells(input.schedule, microbatches), expected) << row.at("id");
    ++tables;
  }
  std::printf("%zu tables keep their reductions\n", tables);
  EXPECT_EQ(tables, 5U);
}

// A reduction takes a turn: rank 0 runs F1.1 one sweep later, behind B1.0 of rank 1.
TEST(AddTransfers, AReductionTakesATurnOfItsSweep) {
  const Schedule schedule = read_schedule(
      "ranks 2\nplacement chain\n"
      "rank 0: F1.0 reduce1 F1.1 B1.0 B1.1\n"
      "rank 1: F1.0 B1.0 F1.1 B1.1\n");
  EXPECT_EQ(added(schedule, 2),
            (Lines{"F1.0 send-F1.0 reduce1 recv-B1.0 F1.1 send-F1.1 B1.0 recv-B1.1 B1.1",
                   "recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1"}));
}

TEST(AddTransfers, AStageOnTheSameRankIsReachedWithoutOne) {
  const Schedule schedule = read_schedule(
      "ranks 2\nplacement v\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0\n"
      "rank 1: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(added(schedule, 1),
            (Lines{"F1.0 send-F1.0 recv-F2.0 F2.0 B2.0 send-B2.0 recv-B1.0 B1.0",
                   "recv-F1.0 F1.0 F2.0 send-F2.0 recv-B2.0 B2.0 B1.0 send-B1.0"}));
}

TEST(AddTransfers, NamesTheEntryThatEveryStepIsMadeFor) {
  const Schedule schedule = read_schedule(
      "ranks 2\nplacement chain\n"
      "rank 0: F1.0 . B1.0\n"
      "rank 1: . F1.0 B1.0\n");
  const WithTransfers made = add_transfers(schedule, StageMap(schedule), 1);
  ASSERT_TRUE(made.complete);
  std::vector<std::vector<std::uint32_t>> entries;
  for (const auto& rank : made.lowered.ranks) {
    auto& of_rank = entries.emplace_back();
    for (const Step& step : rank) of_rank.push_back(step.entry);
  }
  // Rank 0 runs F, send of F, receive for B, B; rank 1 runs receive for F, F, B, send of B.
  EXPECT_EQ(entries, (std::vector<std::vector<std::uint32_t>>{{0, 0, 2, 2}, {1, 1, 2, 2}}));
}

TEST(AddTransfers, ACycleIsIncompleteAndKeepsWhatCameOut) {
  const Schedule schedule = read_schedule(
      "ranks 2\nplacement chain\n"
      "rank 0: F1.0 B1.0 F1.1 B1.1\n"
      "rank 1: F1.1 F1.0 B1.0 B1.1\n");
  const WithTransfers made = add_transfers(schedule, StageMap(schedule), 2);
  EXPECT_FALSE(made.complete);
  EXPECT_EQ(lines_of(made.lowered), (Lines{"F1.0 send-F1.0", "recv-F1.0"}));
}

// Two inputs are left out: microbatches that are none, since nothing is promised for them, and a
// stage on two ranks, of which PyTorch asks the one that it was told.
TEST(AddTransfers, IsCompleteExactlyWherePyTorchCanScheduleTheMutatedTable) {
  std::size_t complete = 0;
  std::size_t incomplete = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("mutations")) {
    if (!row.contains("lower") || row.at("kind") == "mb_none" || row.at("kind") == "move_rank")
      continue;
    SCOPED_TRACE(row.at("id").dump());
    const Input input = torch_table(row.at("order"), row.at("stage_to_rank"), std::nullopt);
    std::int32_t microbatches = 0;
    for (const RankOrder& rank : input.schedule.ranks) {
      for (const Entry& entry : rank.order)
        microbatches = std::max(microbatches, entry.microbatch + 1);
    }
    const Schedule schedule = without(input.schedule, {Kind::ReduceGradient});
    const bool made = add_transfers(schedule, StageMap(schedule), microbatches).complete;
    EXPECT_EQ(made, row.at("lower") == "ok");
    ++(made ? complete : incomplete);
  }
  std::printf("%zu mutated tables are complete, %zu are not, as in PyTorch\n", complete,
              incomplete);
  EXPECT_EQ(complete + incomplete, 43U);
  EXPECT_GT(incomplete, 10U);
}

Cells as_torch_lowers(const Schedule& schedule) {
  const Input input{.form = Form::TorchCompute, .schedule = schedule};
  const torch::Lowered lowered = torch::add_send_receive(
      torch::rows_of(input), torch::rank_of_stages(input, StageMap(schedule).stages()));
  EXPECT_EQ(lowered.error, "");
  Cells cells;
  for (const auto& row : lowered.rows) {
    auto& of_rank = cells.emplace_back();
    for (const torch::Slot& slot : row) of_rank.push_back(to_text(slot));
  }
  return cells;
}

// Every number of ranks up to 65 is tried, since a word of 64 bits would be full there.
TEST(AddTransfers, AgreesWithTheSweepsOnRandomSchedulesOfUpTo65Ranks) {
  std::mt19937 random(1);
  std::size_t cells = 0;
  std::size_t schedules = 0;
  for (std::int32_t ranks = 1; ranks <= 65; ++ranks) {
    for (const Topology topology : {Topology::Chain, Topology::Loop, Topology::V}) {
      const Schedule schedule =
          random_schedule({.ranks = ranks,
                           .chunks = 1 + ranks % 3,
                           .microbatches = 1 + ranks % 4,
                           .topology = topology,
                           .delay = ranks % 2 == 0 ? Delay::Always : Delay::Never},
                          random);
      const Cells made = lowered_cells(schedule, schedule.microbatches.value());
      ASSERT_EQ(made, as_torch_lowers(schedule)) << ranks << " ranks, " << name_of(topology);
      cells += count(made);
      ++schedules;
    }
  }
  std::printf("%zu random schedules of 1 to 65 ranks: %zu cells as the sweeps have them\n",
              schedules, cells);
}

// One global order of all transfers exists, so nobody waits for himself around any corner.
TEST(AddTransfers, WhatItMakesFinishesUnderEveryCommunicatorLayout) {
  std::mt19937 random(2);
  std::size_t schedules = 0;
  for (int round = 0; round < 200; ++round) {
    const Schedule schedule =
        random_schedule({.ranks = 1 + round % 7,
                         .chunks = 1 + round % 3,
                         .microbatches = 1 + round % 5,
                         .topology = static_cast<Topology>(1 + round % 3),
                         .delay = round % 2 == 0 ? Delay::Always : Delay::Never},
                        random);
    const StageMap map(schedule);
    const std::int32_t microbatches = schedule.microbatches.value();
    const WithTransfers made = add_transfers(schedule, map, microbatches);
    ASSERT_TRUE(made.complete);
    for (const Communicators layout :
         {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
      const WiredTransfers wired =
          wire_transfers(made.lowered, map, microbatches,
                         {.communicators = layout, .transfers = TransferMode::Rendezvous});
      EXPECT_TRUE(wired.faults.empty());
      EXPECT_TRUE(execute(wired.graph).finishes()) << round << " " << name_of(layout);
    }
    ++schedules;
  }
  std::printf("%zu random schedules finish under all three layouts\n", schedules);
}

TEST(AddTransfers, GivesTheSameForTheSame) {
  std::mt19937 random(3);
  const Schedule schedule = random_schedule(
      {.ranks = 17, .chunks = 2, .microbatches = 9, .delay = Delay::Always}, random);
  EXPECT_EQ(lowered_cells(schedule, 9), lowered_cells(schedule, 9));
}

TEST(AddTransfers, HasNothingForAStageThatNobodyHolds) {
  const Schedule schedule = read_schedule(
      "ranks 2\nstages 3\nmicrobatches 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 2\n"
      "rank 0: F1.0\nrank 1:\n");
  EXPECT_EQ(added(schedule, 1), (std::vector<std::string>{"F1.0", ""}));
}

}  // namespace
}  // namespace capo

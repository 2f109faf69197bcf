// Plan `te` against data that the unmodified TransformerEngine and Megatron-LM made: rows of
// symbolic runs, rows of real CUDA graphs on an H200, and static inputs that Megatron's own
// functions handed out.

#include "core/frameworks/te/predict.h"
#include "core/plan/operands.h"
#include "tests/support/check_text.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::check_in;
using testing_support::Checked;
using testing_support::read_data;
using Cells = std::set<std::pair<std::int32_t, std::int32_t>>;  // chunk and microbatch, from 0

constexpr Aliases kBoth{.input = true, .grad_output = true};

Cells cells_of(const json& pairs) {
  Cells cells;
  for (const auto& pair : pairs) cells.emplace(pair.at(0), pair.at(1));
  return cells;
}

Cells victims(const Checked& checked, HazardKind kind) {
  Cells cells;
  for (const FoundHazard& hazard : checked.result.plan.value().hazards) {
    if (hazard.kind != kind) continue;
    cells.emplace(hazard.victim.chunk - 1, hazard.victim.microbatch);
  }
  return cells;
}

Cells both(const Checked& checked) {
  Cells all = victims(checked, HazardKind::StaticInput);
  all.merge(victims(checked, HazardKind::GradOutput));
  return all;
}

// A list as TE would be told it, with every chunk delaying its weight gradient that has one.
Checked planned(const json& order, const PlanOptions& plan, Layers layers = {},
                ModuleTable modules = {}) {
  return check_in({.modules = std::move(modules), .plan = plan}, order.dump(),
                  {.form = TextForm::TeList, .te = {.layers = std::move(layers)}});
}

Layers list_of(const json& values) {
  return {.form = Layers::Form::List, .values = values.get<std::vector<std::int64_t>>()};
}

TEST(TeVectors, VictimsAndSlotsAreThoseOfGraphPy) {
  std::size_t agree = 0;
  const json data = read_data("te_hazards.json");
  for (const json& row : data.at("rows")) {
    SCOPED_TRACE(row.dump());
    const Checked checked = planned(row.at("order"), {.kind = PlanKind::Te, .aliases = kBoth});
    ASSERT_TRUE(checked.result.plan);
    const Cells input = cells_of(row.at("static_input_victims"));
    const Cells gradient = cells_of(row.at("grad_output_victims"));
    EXPECT_EQ(victims(checked, HazardKind::StaticInput), input);
    EXPECT_EQ(victims(checked, HazardKind::GradOutput), gradient);
    EXPECT_EQ(checked.result.plan->ranks.at(0).input_slots,
              row.at("static_input_slots").get<std::size_t>());
    EXPECT_EQ(checked.accepted(), input.empty() && gradient.empty());
    // Of nobody's operands known: the same victims, as warnings.
    const Checked unsure = planned(row.at("order"), {.kind = PlanKind::Te});
    EXPECT_TRUE(unsure.accepted());
    EXPECT_EQ(unsure.result.diagnostics.empty(), input.empty() && gradient.empty());
    EXPECT_TRUE(planned(row.at("order"), {.kind = PlanKind::Safe, .aliases = kBoth}).accepted());
    ++agree;
  }
  std::printf("%zu of 200 rows of graph.py agree\n", agree);
  EXPECT_EQ(agree, 200U);
}

// What stood in for the modules on the H200.
Module stand_in(const std::string& name) {
  Module module{.name = name, .kind = ModuleKind::Linear};
  if (name == "copying") module.recipe = Recipe::Current;
  if (name == "grouped_linear") module.kind = ModuleKind::GroupedLinear;
  if (name == "layernorm_linear") module.kind = ModuleKind::LayerNormLinear;
  return module;
}

TEST(TeVectors, VictimsAreThoseSeenOnTheDevice) {
  std::size_t agree = 0;
  std::size_t unsound = 0;
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("rows")) {
    if (!row.at("reuse").get<bool>() || !row.at("accepted").get<bool>()) continue;
    SCOPED_TRACE(row.dump());
    const Module module = stand_in(row.at("module"));
    const Checked checked = planned(row.at("order"), {.kind = PlanKind::Te},
                                    testing_support::layers_of(row.at("layers")),
                                    {.list = {module}, .layers = {{{0}}}});
    if (!checked.result.plan) {
      EXPECT_FALSE(checked.accepted());
      ++unsound;
      continue;
    }
    if (!row.contains("wrong_wgrads")) continue;
    EXPECT_EQ(victims(checked, HazardKind::StaticInput), cells_of(row.at("static_input_victims")));
    EXPECT_EQ(victims(checked, HazardKind::GradOutput), cells_of(row.at("grad_output_victims")));
    ++agree;
  }
  std::printf("%zu rows seen on an H200 with reuse agree, %zu more were no sound order\n", agree,
              unsound);
  EXPECT_EQ(agree, 925U);
}

TEST(TeVectors, ShapesToldApartAreNotShared) {
  std::size_t agree = 0;
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("two_signatures")) {
    SCOPED_TRACE(row.dump());
    for (const auto kind : {ModuleKind::Linear, ModuleKind::LayerNormLinear}) {
      ModuleTable modules{.list = {}, .layers = {{}}};
      for (const json& rows : row.at("input_rows")) {
        modules.layers[0].push_back({static_cast<std::int32_t>(modules.list.size())});
        modules.list.push_back({.name = "m" + std::to_string(modules.list.size()),
                                .kind = kind,
                                .shape = {.tokens = rows.get<std::int64_t>()}});
      }
      const char* key =
          kind == ModuleKind::Linear ? "wrong_wgrads_linear" : "wrong_wgrads_layernorm_linear";
      const Checked checked =
          planned(row.at("order"), {.kind = PlanKind::Te}, {}, std::move(modules));
      EXPECT_EQ(both(checked), cells_of(row.at(key)));
    }
    ++agree;
  }
  EXPECT_EQ(agree, 198U);
}

TEST(TeVectors, TheFirstOfTwoLinearsReadsTheInputAndTheLastTheGradient) {
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("two_linears")) {
    SCOPED_TRACE(row.dump());
    const auto order = row.at("order");
    EXPECT_EQ(both(planned(order, {.kind = PlanKind::Te, .aliases = Aliases{.input = true}})),
              cells_of(row.at("first_linear_victims")));
    EXPECT_EQ(both(planned(order, {.kind = PlanKind::Te, .aliases = Aliases{.grad_output = true}})),
              cells_of(row.at("last_linear_victims")));
  }
}

TEST(TeVectors, StaticBuffersAreAsManyAsFound) {
  const json truth = read_data("te_gpu_truth.json");
  const json hazards = read_data("te_hazards.json").at("rows");
  for (std::size_t i = 0; i < 200; ++i) {
    const json& row = truth.at("static_buffers").at(i);
    ASSERT_EQ(row.at("source"), "te_hazards#" + std::to_string(i));
    const Checked checked = planned(hazards.at(i).at("order"), {.kind = PlanKind::Te});
    const RankMemory& memory = checked.result.plan.value().ranks.at(0);
    EXPECT_EQ(memory.input_slots, row.at("static_input_buffers").get<std::size_t>());
    EXPECT_EQ(memory.grad_outputs, row.at("static_grad_output_buffers").get<std::int64_t>());
  }
}

TEST(TeVectors, MegatronsOrdersTakeAsManySlotsAndConflictAsOften) {
  std::size_t slots = 0;
  std::size_t conflicts = 0;
  std::map<std::string, json> orders;
  const json all = read_data("megatron_orders.json");
  for (const json& row : all.at("rows")) orders[row.at("id")] = row;
  const json data = read_data("megatron_slots.json");
  for (const json& row : data.at("rows")) {
    SCOPED_TRACE(row.at("id"));
    const json& order = orders.at(row.at("id"));
    const json& expanded = order.at("layer_order");
    // A chunk of no layers (one row) is nothing that a schedule could say: as many as there are.
    const bool by_chunk = expanded.is_null();
    const Checked checked =
        by_chunk ? planned(order.at("chunk_order"), {.kind = PlanKind::Te, .aliases = kBoth},
                           list_of(row.at("layers_per_chunk")))
                 : planned(expanded, {.kind = PlanKind::Te, .aliases = kBoth});
    ASSERT_TRUE(checked.result.plan) << row.dump();
    EXPECT_EQ(checked.result.plan->ranks.at(0).input_slots,
              row.at("static_input_slots").get<std::size_t>());
    ++slots;
    if (!row.contains("wgrad_slot_conflicts")) continue;
    EXPECT_EQ(victims(checked, HazardKind::StaticInput).size(),
              row.at("wgrad_slot_conflicts").get<std::size_t>());
    EXPECT_TRUE(victims(checked, HazardKind::GradOutput).empty());
    conflicts += row.at("wgrad").get<bool>() ? 1 : 0;
  }
  std::printf("%zu of 268 rows of Megatron have the slots, %zu of 122 the conflicts\n", slots,
              conflicts);
  EXPECT_EQ(slots, 268U);
  EXPECT_EQ(conflicts, 122U);
}

}  // namespace
}  // namespace capo

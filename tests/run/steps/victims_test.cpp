// Probes see under TransformerEngine's plan what really went wrong: the victims of
// unmodified TE, by symbolic runs and by real graphs on an H200, row by row.
//
// tests/core/plan/te_vectors_test.cpp compares the verifier with the same rows, read in the same
// way; here nothing is predicted, a weight gradient came out wrong. The verifier's own list is
// compared beside it.

#include "core/order/layers.h"
#include "tests/run/running.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace capo::run {
namespace {

using nlohmann::json;
using testing_support::read_data;
using Cells = std::set<std::pair<std::int32_t, std::int32_t>>;  // chunk and microbatch, from 0

Cells cells_of(const json& pairs) {
  Cells cells;
  for (const auto& pair : pairs) cells.emplace(pair.at(0), pair.at(1));
  return cells;
}

Cells cells_of(const std::set<Victim>& victims) {
  Cells cells;
  for (const Victim& victim : victims) cells.emplace(victim.chunk - 1, victim.microbatch);
  return cells;
}

// A module that keeps copies of both operands; capo runs no fp8, which is what copied on the H200.
Module copying() {
  Module module = small(ModuleKind::Linear);
  module.flags.gathered_input = true;
  module.flags.gathered_grad_output = true;
  return module;
}

Module stand_in(const std::string& name) {
  if (name == "copying") return copying();
  if (name == "grouped_linear") return small(ModuleKind::GroupedLinear);
  if (name == "layernorm_linear") return small(ModuleKind::LayerNormLinear);
  return small(ModuleKind::Linear);
}

Input list(const json& order, Layers layers = {}) {
  return typed(order.dump(), {.form = TextForm::TeList, .te = {.layers = std::move(layers)}});
}

// One row: runs it as graphs of actions and as one, and compares. Every tenth is replayed three
// times, with other numbers each time.
class Rows {
 public:
  struct Expected {
    Cells static_input;
    Cells grad_output;
  };

  void compare(const Input& input, const CheckOptions& options, const Expected& expected) {
    const std::uint32_t replays = count++ % 10 == 0 ? 3 : 1;
    const UncheckedPlan plan = admitted(input, options);
    for (const Granularity graphs : kGranularities) {
      compare(plan, {.graphs = graphs, .replays = replays}, expected);
    }
    victims += expected.static_input.size() + expected.grad_output.size();
  }

  std::size_t count = 0;
  std::size_t victims = 0;

 private:
  static void compare(const UncheckedPlan& plan, const RunOptions& options,
                      const Expected& expected) {
    const RunReport report = report_of(plan, options);
    EXPECT_EQ(cells_of(report.victims.static_input), expected.static_input);
    EXPECT_EQ(cells_of(report.victims.grad_output), expected.grad_output);
    EXPECT_TRUE(report.victims.other.empty());
    EXPECT_TRUE(report.victims.grad_input.empty());
    Cells wrong = expected.static_input;
    wrong.insert(expected.grad_output.begin(), expected.grad_output.end());
    EXPECT_EQ(cells_of(report.wrong_gradients), wrong);
    EXPECT_EQ(report.victims.static_input, report.predicted.static_input);
    EXPECT_EQ(report.victims.grad_output, report.predicted.grad_output);
    EXPECT_EQ(report.bit_equal, expected.static_input.empty() && expected.grad_output.empty());
    EXPECT_TRUE(report.within_bounds);
    EXPECT_EQ(report.stories.size(),
              report.victims.static_input.size() + report.victims.grad_output.size());
  }
};

TEST(Victims, AreThoseOfGraphPyByWhatTheModuleAliases) {
  Rows rows;
  const json data = read_data("te_hazards.json");
  for (const json& row : data.at("rows")) {
    SCOPED_TRACE(row.dump());
    const Input input = list(row.at("order"));
    const Cells in = cells_of(row.at("static_input_victims"));
    const Cells out = cells_of(row.at("grad_output_victims"));
    const auto compare = [&](const Module& module, const Rows::Expected& expected) {
      SCOPED_TRACE(module.name);
      rows.compare(input, every_layer(module, PlanKind::Te), expected);
    };
    compare(small(ModuleKind::Linear), {.static_input = in, .grad_output = out});
    compare(small(ModuleKind::LayerNormLinear), {.static_input = {}, .grad_output = out});
    compare(copying(), {});
    if (HasFailure()) return;
  }
  std::printf("%zu runs of graph.py's 200 rows show its %zu victims\n", rows.count, rows.victims);
  EXPECT_EQ(rows.count, 600U);
}

// `--alias none` says of a linear what a copying module is.
TEST(Victims, OfAModuleThatIsSaidToCopyThereAreNone) {
  Rows rows;
  Sample sample;
  const json data = read_data("te_hazards.json");
  for (const json& row : data.at("rows")) {
    if (!sample.takes_next()) continue;
    SCOPED_TRACE(row.dump());
    CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
    options.plan.aliases = Aliases{};
    rows.compare(list(row.at("order")), options, {});
    if (HasFailure()) return;
  }
  EXPECT_EQ(rows.count, sampled(200));
}

// The gradient that chunk 1 hands on last is sent until the step ends, and overwritten by then.
TEST(Victims, AreAmongGradientsThatAreStillSentAtTheEnd) {
  const auto report_with = [](const std::string& order, std::vector<std::int32_t> model_chunks,
                              Granularity graphs) {
    CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
    options.plan.model_chunks = std::move(model_chunks);
    return report_of(admitted(typed(order), options), {.graphs = graphs, .replays = 2});
  };
  for (const Granularity graphs : kGranularities) {
    for (const std::string order :
         {"[1, -1, 2, -2, 3, -3]", "[1, -1, -1.5, 2, -2, -2.5, 3, -3, -3.5]"}) {
      SCOPED_TRACE(order);
      const RunReport late = report_with(order, {3}, graphs);
      EXPECT_EQ(cells_of(late.victims.grad_input), (Cells{{0, 0}}));
      EXPECT_EQ(late.victims, late.predicted);
      EXPECT_FALSE(late.bit_equal);
      const RunReport in_time = report_with(order, {1, 1, 1}, graphs);
      EXPECT_TRUE(in_time.bit_equal);
      EXPECT_EQ(in_time.victims, in_time.predicted);
    }
  }
}

TEST(Victims, AreThoseSeenOnTheDevice) {
  Rows rows;
  Sample sample;
  std::size_t unsound = 0;
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("rows")) {
    if (!row.at("reuse").get<bool>() || !row.at("accepted").get<bool>()) continue;
    SCOPED_TRACE(row.dump());
    const Input input = list(row.at("order"), testing_support::layers_of(row.at("layers")));
    const CheckOptions options = every_layer(stand_in(row.at("module")), PlanKind::Te);
    if (!check(input, completed(input, options)).plan) {
      EXPECT_TRUE(
          std::holds_alternative<NotVerified>(admit_unchecked(input, completed(input, options))));
      ++unsound;
      continue;
    }
    if (!sample.takes_next()) continue;
    rows.compare(input, options,
                 {.static_input = cells_of(row.at("static_input_victims")),
                  .grad_output = cells_of(row.at("grad_output_victims"))});
    if (HasFailure()) return;
  }
  std::printf("%zu rows seen on an H200 run alike, %zu more were no sound order\n", rows.count,
              unsound);
  EXPECT_EQ(rows.count, sampled(925));
  EXPECT_EQ(unsound, 55U);
}

TEST(Victims, OfShapesToldApartAreAsSeen) {
  std::size_t runs = 0;
  Sample sample;
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("two_signatures")) {
    if (!sample.takes_next()) continue;
    SCOPED_TRACE(row.dump());
    for (const auto kind : {ModuleKind::Linear, ModuleKind::LayerNormLinear}) {
      CheckOptions options;
      options.plan.kind = PlanKind::Te;
      options.modules.layers.emplace_back();
      for (const json& rows : row.at("input_rows")) {
        options.modules.layers[0].push_back(
            {static_cast<std::int32_t>(options.modules.list.size())});
        Module module = small(kind);
        module.name = "m" + std::to_string(options.modules.list.size());
        module.shape.tokens = rows.get<std::int64_t>() / 8;
        options.modules.list.push_back(std::move(module));
      }
      const char* key =
          kind == ModuleKind::Linear ? "wrong_wgrads_linear" : "wrong_wgrads_layernorm_linear";
      const RunReport report = run_admitted(list(row.at("order")), options, {.replays = 1});
      Cells both = cells_of(report.victims.static_input);
      both.merge(cells_of(report.victims.grad_output));
      EXPECT_EQ(both, cells_of(row.at(key)));
      EXPECT_TRUE(report.victims.other.empty());
      ++runs;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(runs, 2 * sampled(198));
}

// If two linears are in one graph, the first keeps the input and the last the gradient.
TEST(Victims, OfTwoLinearsAreThoseOfTheirEnds) {
  Rows rows;
  Sample sample;
  const json data = read_data("te_gpu_truth.json");
  for (const json& row : data.at("two_linears")) {
    if (!sample.takes_next()) continue;
    SCOPED_TRACE(row.dump());
    const Input input = list(row.at("order"));
    CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
    options.plan.aliases = Aliases{.input = true};
    rows.compare(input, options, {.static_input = cells_of(row.at("first_linear_victims"))});
    options.plan.aliases = Aliases{.grad_output = true};
    rows.compare(input, options, {.grad_output = cells_of(row.at("last_linear_victims"))});
    if (HasFailure()) return;
  }
  EXPECT_EQ(rows.count, 2 * sampled(80));
}

// Backwards of some modules write where their forward kept something; if another microbatch has
// taken that over, they do not hurt it.
TEST(Victims, AreNotHurtByABackwardThatIsOne) {
  for (const char* const order :
       {"rank 0: F1 B1 F1 B1\nrank 0 replay: F1 F1 B1 B1\n",
        "rank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 F1 B1 B1 W1 W1\n",
        "rank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 F1 B1 W1 B1 W1\n"}) {
    const Input input = typed(std::string("capo 1\nmicrobatches 2\n") + order);
    for (const ModuleKind kind : kRunKinds) {
      if (has_router(kind)) continue;  // it is refused where choices may be overwritten
      SCOPED_TRACE(std::string(capo::name_of(kind)) + ", " + order);
      const RunReport report =
          run_admitted(input, every_layer(small(kind), PlanKind::Te), {.replays = 2});
      EXPECT_EQ(report.victims, report.predicted);
      EXPECT_FALSE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds);
    }
  }
}

// Poison makes reads that come too late visible; it makes no victims of its own.
TEST(Victims, AreTheSameWithoutPoison) {
  std::size_t at = 0;
  const json data = read_data("te_hazards.json");
  for (const json& row : data.at("rows")) {
    if (at++ % 10 != 0) continue;
    SCOPED_TRACE(row.dump());
    const RunReport report =
        run_admitted(list(row.at("order")), every_layer(small(ModuleKind::Linear), PlanKind::Te),
                     {.replays = 1, .poison = Poison::Off});
    EXPECT_EQ(cells_of(report.victims.static_input), cells_of(row.at("static_input_victims")));
    EXPECT_EQ(cells_of(report.victims.grad_output), cells_of(row.at("grad_output_victims")));
  }
}

}  // namespace
}  // namespace capo::run

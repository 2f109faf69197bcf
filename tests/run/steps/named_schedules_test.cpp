// Every published schedule with every kind of module and every way to make it, under plan `safe`:
// three replays with new inputs and new group sizes, equal to eager execution to the bit and within
// the bounds of float64, as graphs of actions and as one graph.
//
// The tensors are drawn anew for each run, so that no two runs add the same numbers.

#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

struct Variant {
  std::string words;
  Module module;
};

// Bias, single tensors, scales and split sizes in the input take turns, so that each kind meets all
// that it can have.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const ModuleKind kind : kRunKinds) {
    for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
      if (type == DataType::Fp32 && is_grouped(kind)) continue;  // cannot be captured
      Module module = small(kind);
      module.dtype = type;
      module.flags.bias = type == DataType::Fp16 && !has_router(kind);
      module.flags.fuse_wgrad_accumulation = type != DataType::Fp16;
      module.flags.grad_added_to_main_grad = type == DataType::Bf16;
      if (is_grouped(kind)) {
        module.flags.single_weight = type == DataType::Fp16;
        module.flags.single_bias = type == DataType::Fp16;
        module.flags.scale_bias = kind == ModuleKind::GroupedLinearOp && module.flags.bias;
        if (type == DataType::Fp16) module.splits = Splits::Input;
      }
      all.push_back({fmt::format("{} {}", name_of(kind), name_of(type)), std::move(module)});
    }
  }
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    Module module = small_with_experts();
    module.dtype = type;
    module.flags.fuse_wgrad_accumulation = type != DataType::Fp16;
    all.push_back({fmt::format("{} {}", module.name, name_of(type)), module});
  }
  for (const ModuleKind kind : kRunKinds) {
    for (const Recipe recipe : {Recipe::Block, Recipe::Mxfp8}) {
      Module module = small(kind);
      module.recipe = recipe;
      module.flags.bias = recipe == Recipe::Mxfp8 && !has_router(kind);
      if (is_grouped(kind) && recipe == Recipe::Mxfp8) module.splits = Splits::Input;
      all.push_back({fmt::format("{} {}", name_of(kind), name_of(recipe)), std::move(module)});
    }
  }
  for (const Recipe recipe : {Recipe::Block, Recipe::Mxfp8}) {
    Module module = small_with_experts();
    module.recipe = recipe;
    all.push_back({fmt::format("{} {}", module.name, name_of(recipe)), module});
  }
  return all;
}

struct Named {
  std::string name;
  Schedule schedule;
};

std::vector<Named> every_name() {
  std::vector<Named> all;
  for (const std::string& name : published_names()) {
    for (const std::optional<std::int32_t> chunks :
         {std::optional<std::int32_t>{}, std::optional<std::int32_t>{2}}) {
      auto schedule = published({.name = name, .ranks = 2, .microbatches = 4, .chunks = chunks});
      if (!schedule) continue;
      all.push_back({name, *std::move(schedule)});
      break;
    }
  }
  return all;
}

// Both; where the engine takes samples, by turns.
std::vector<SizeKind> kinds_of_sizes(std::size_t turn) {
  if (every_nth() == 1) return {SizeKind::Random, SizeKind::Zipf};
  return {turn % 2 == 0 ? SizeKind::Random : SizeKind::Zipf};
}

class NamedSchedules : public ::testing::TestWithParam<std::size_t> {};

TEST_P(NamedSchedules, AreEqualToEagerWithThisModule) {
  const Variant variant = variants()[GetParam()];
  std::set<std::string> names;
  std::uint64_t seed = 1;
  std::size_t schedules = 0;
  for (const Named& each : every_name()) {
    ++schedules;
    SCOPED_TRACE(each.name + ", " + variant.words);
    names.insert(each.name);
    const VerifiedPlan plan =
        verified({.form = Form::OrderFile, .schedule = each.schedule}, every_layer(variant.module));
    for (const Granularity graphs : kGranularities) {
      for (const SizeKind sizes : kinds_of_sizes(schedules)) {
        const RunReport report =
            report_of(plan, {.graphs = graphs, .replays = 3, .seed = ++seed, .sizes = sizes});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
        EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
        EXPECT_FALSE(report.parameters.empty());
      }
    }
  }
  EXPECT_EQ(names.size(), published_names().size());
}

INSTANTIATE_TEST_SUITE_P(Modules, NamedSchedules,
                         ::testing::Range(std::size_t{0}, variants().size()),
                         [](const auto& variant) {
                           std::string words = variants()[variant.param].words;
                           for (char& letter : words) {
                             if (letter == ' ' || letter == '-') letter = '_';
                           }
                           return words;
                         });

}  // namespace
}  // namespace capo::run

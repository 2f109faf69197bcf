// Weight gradients in calls of several: every published schedule that has them apart, with every
// kind of module, equal to eager execution to the bit and within the bounds of float64; and what a
// call is made of.

#include "core/order/fuse_weights.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

struct Fused {
  std::string name;
  Schedule schedule;
};

// Returns the published schedules in which some weight gradients can share a call.
std::vector<Fused> fused_schedules(std::int32_t most) {
  std::vector<Fused> all;
  for (const std::string& name : published_names()) {
    for (const std::int32_t chunks : {1, 2}) {
      auto schedule = published({.name = name, .ranks = 2, .microbatches = 6, .chunks = chunks});
      if (!schedule) continue;
      if (fuse_weights(*schedule, most).calls > 0) all.push_back({name, *std::move(schedule)});
      break;
    }
  }
  return all;
}

// Gradients are fp32, or of the type of the weights with one of a bias; sizes lie wherever they
// may.
std::vector<Module> fused_modules() {
  std::vector<Module> all;
  for (const ModuleKind kind : kRunKinds) {
    all.push_back(small(kind));
    Module& module = all.emplace_back(small(kind));
    module.flags.fuse_wgrad_accumulation = false;
    module.flags.grad_added_to_main_grad = false;
    module.flags.bias = !has_router(kind);
    if (is_grouped(kind)) module.splits = Splits::Input;
  }
  all.push_back(small_with_experts());
  return all;
}

Input order_of(const std::string& weights) {
  return typed(
      "capo 1\nranks 1\nmicrobatches 4\nplacement chain\n"
      "rank 0: F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3 " +
      weights + "\n");
}

TEST(FusedWeights, AreEqualToEagerInEverySchedule) {
  const auto schedules = fused_schedules(3);
  ASSERT_GE(schedules.size(), 5u);
  std::uint64_t seed = 100;
  for (const Fused& each : schedules) {
    for (const Module& module : fused_modules()) {
      SCOPED_TRACE(each.name + ", " + module.name);
      const VerifiedPlan plan =
          verified({.form = Form::OrderFile, .schedule = each.schedule}, every_layer(module));
      const Granularity graphs = kGranularities[++seed % 2];
      const RunReport report = report_of(
          plan, {.graphs = graphs, .replays = 2, .seed = seed, .sizes = SizeKind::Random});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
    }
  }
}

TEST(FusedWeights, AreWithinTheBoundsOfASample) {
  for (const Module& module : fused_modules()) {
    if (is_made_of_modules(*module.kind)) continue;  // no sample is taken of it
    SCOPED_TRACE(module.name);
    const VerifiedPlan plan = verified(order_of("(W1.3 W1.0 W1.1) W1.2"), every_layer(module));
    const RunReport report =
        report_of(plan, {.replays = 1, .float64 = Float64::Sampled, .float64_samples = 3});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  }
}

TEST(FusedWeights, OnAStreamOfTheirOwnAreOneCallToo) {
  CheckOptions options = every_layer(small(ModuleKind::GroupedMlp));
  options.environment.weight_stream = true;
  const VerifiedPlan plan = verified(order_of("(W1.0 W1.1 W1.2 W1.3)"), options);
  const RunReport report = report_of(plan, {.replays = 2});
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  const auto& parts = report.program.parts;
  EXPECT_EQ(
      std::ranges::count_if(parts, [](const OpPart& part) { return part.further.size() == 3; }), 1);
}

// Tells how many microbatches each product of weight gradients sums up, in the order of capture.
std::vector<int> calls_in(const Input& input, const Module& module) {
  std::vector<int> batches;
  const auto look = [&](const Inspection& at) {
    batches.clear();
    for (const Stepper::Captured& captured : at.graphs) {
      for (const GraphNode& node : at.engine.inspect(captured.graph)) {
        const auto* product = std::get_if<GroupedProduct>(&node.call);
        if (product == nullptr || product->kind != GroupedProduct::Kind::WeightGradient) continue;
        batches.push_back(product->further + 1);
      }
    }
  };
  const RunReport report =
      report_of(verified(input, every_layer(module)), {.replays = 1, .inspect = look});
  EXPECT_TRUE(report.bit_equal);
  return batches;
}

TEST(FusedWeights, AreOneProductForEachWeight) {
  const Module linear = small(ModuleKind::GroupedLinear);
  EXPECT_EQ(calls_in(order_of("W1.0 W1.1 W1.2 W1.3"), linear), (std::vector{1, 1, 1, 1}));
  EXPECT_EQ(calls_in(order_of("(W1.0 W1.1 W1.2) W1.3"), linear), (std::vector{3, 1}));
  EXPECT_EQ(calls_in(order_of("(W1.0 W1.1 W1.2 W1.3)"), small(ModuleKind::GroupedMlp)),
            (std::vector{4, 4}));
}

TEST(FusedWeights, BesideOtherWorkAreOneProductWhereTheyStandSideBySide) {
  const auto order = [](const std::string& end) {
    return typed(
        "capo 1\nranks 1\nmicrobatches 3\nplacement chain\n"
        "rank 0: F1.0 F1.1 B1.0 B1.1 " +
        end + " B1.2 W1.2\n");
  };
  const Module linear = small(ModuleKind::Linear);
  EXPECT_EQ(calls_in(order("(F1.2 W1.0 W1.1)"), linear), (std::vector{2, 1}));
  EXPECT_EQ(calls_in(order("(W1.0 F1.2 W1.1)"), linear), (std::vector{1, 1, 1}));
}

// A composite that somebody wrote may be longer than a call can be.
TEST(FusedWeights, BeyondTheMostThatACallTakesAreAnotherCall) {
  std::string passes;
  std::string weights;
  for (int m = 0; m <= kMostFusedWeights; ++m) {
    const std::string number = std::to_string(m);
    passes += " F1." + number + " B1." + number;
    weights += " W1." + number;
  }
  const Input input =
      typed("capo 1\nranks 1\nmicrobatches " + std::to_string(kMostFusedWeights + 1) +
            "\nplacement chain\nrank 0:" + passes + " (" + weights + ")\n");
  EXPECT_EQ(calls_in(input, small(ModuleKind::Linear)), (std::vector{kMostFusedWeights, 1}));
}

// Gradients that are rounded to bf16 at each addition differ from those that are summed up first.
TEST(FusedWeights, AreRoundedOnceAndNotAtEachAddition) {
  Module module = small(ModuleKind::Linear);
  module.flags.fuse_wgrad_accumulation = false;
  module.flags.grad_added_to_main_grad = false;
  const auto error = [&](const std::string& weights) {
    const RunReport report =
        report_of(verified(order_of(weights), every_layer(module)), {.replays = 1, .seed = 5});
    EXPECT_TRUE(report.within_bounds);
    return *parameter(report, ": weight").ascending_error;
  };
  EXPECT_LT(error("(W1.0 W1.1 W1.2 W1.3)"), error("W1.0 W1.1 W1.2 W1.3"));
}

}  // namespace
}  // namespace capo::run

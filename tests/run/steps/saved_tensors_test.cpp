// Saved tensors between a forward and its backward: a parameter that is freed is an error with its
// name, and a tensor that comes back at another address changes nothing.
//
// A backward finds its parameter by a weak handle, taken by the forward; with it saved tensors are
// only read. Graphs read where they were captured, so substitution is eager execution's alone.

#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {
namespace {

using gradients::GradientMode;

constexpr const char* kWhole = "[1, 1, -1, -1]";
constexpr const char* kDelayed = "[1, 1, -1, -1.5, -1, -1.5]";

std::string weight_of(ModuleKind kind) {
  const bool mlp = has_swiglu(kind) || has_two_halves(kind);
  const char* name = is_attention(kind) ? "qkv weight" : mlp ? "fc1 weight" : "weight";
  return fmt::format("layer 0 of chunk 1 of rank 0: {}", name);
}

// Frees a parameter before the part of a kind, in the how manyth walk through the step (from 0).
class Freeing {
 public:
  Freeing(std::string parameter, Kind before, std::size_t walk)
      : parameter_(std::move(parameter)), before_(before), walk_(walk) {}

  void operator()(const OpPart& part, ParameterRegistry& registry) {
    if (part.kind != OpPart::Kind::Work || part.work.microbatch != 0) return;
    if (part.work.kind == Kind::Forward) ++walks_;
    if (part.work.kind != before_ || walks_ != walk_ + 1) return;
    for (std::uint32_t index = 0; index < registry.size(); ++index) {
      if (registry.name(index) == parameter_) registry.expire(index);
    }
  }

 private:
  std::string parameter_;
  Kind before_;
  std::size_t walk_;
  std::size_t walks_ = 0;
};

// The message of a run that lost a parameter; nothing where it went through, and right.
std::optional<std::string> lost(ModuleKind kind, const char* order, const Freeing& freeing,
                                RunOptions options) {
  options.hooks.before = freeing;
  const auto report = attempt(verified(typed(order), every_layer(small(kind))), options);
  if (report) {
    EXPECT_TRUE(report->bit_equal);
    EXPECT_TRUE(report->within_bounds);
    return std::nullopt;
  }
  EXPECT_EQ(report.error().kind, RunFailure::Kind::Lost);
  return report.error().message;
}

std::string gone(const std::string& parameter) {
  return fmt::format("the parameter `{}` is gone, and its gradient has nowhere to go", parameter);
}

TEST(SavedTensors, AParameterFreedBeforeItsBackwardIsNamedInEagerExecution) {
  for (const ModuleKind kind : kRunKinds) {
    SCOPED_TRACE(capo::name_of(kind));
    const std::string weight = weight_of(kind);
    const auto eagerly = [&](const char* order, Kind before) {
      return lost(kind, order, Freeing(weight, before, 0), {.replays = 0});
    };
    EXPECT_EQ(eagerly(kWhole, Kind::Backward), gone(weight));
    EXPECT_EQ(eagerly(kDelayed, Kind::Backward), gone(weight));
    EXPECT_EQ(eagerly(kDelayed, Kind::BackwardWeight), gone(weight));
    // A forward takes new handles: what was freed before it is another parameter.
    EXPECT_EQ(eagerly(kDelayed, Kind::Forward), std::nullopt);
  }
}

// Walks of graphs of actions: eager execution and replay by turns.
TEST(SavedTensors, AParameterFreedBeforeItsBackwardIsNamedInReplays) {
  for (const ModuleKind kind : kRunKinds) {
    SCOPED_TRACE(capo::name_of(kind));
    const std::string weight = weight_of(kind);
    for (const std::size_t walk : {0U, 1U, 3U}) {
      EXPECT_EQ(lost(kind, kWhole, Freeing(weight, Kind::Backward, walk), {}), gone(weight));
      EXPECT_EQ(lost(kind, kDelayed, Freeing(weight, Kind::BackwardWeight, walk), {}),
                gone(weight));
    }
    // There is no such walk, so nothing was freed.
    EXPECT_EQ(lost(kind, kWhole, Freeing(weight, Kind::Backward, 6), {}), std::nullopt);
  }
}

// The first walk is the capture, then there is one of eager execution for each replay.
TEST(SavedTensors, AParameterFreedIsNamedBesideAGraphOfTheWholeStep) {
  for (const ModuleKind kind : kRunKinds) {
    SCOPED_TRACE(capo::name_of(kind));
    const std::string weight = weight_of(kind);
    for (const std::size_t walk : {0U, 1U, 3U}) {
      EXPECT_EQ(lost(kind, kDelayed, Freeing(weight, Kind::BackwardWeight, walk),
                     {.graphs = Granularity::PerStep}),
                gone(weight));
    }
  }
}

using Names = std::vector<const char*>;

void expect_asked_for(ModuleKind kind, const Names& names) {
  Module module = small(kind);
  module.flags.bias = !has_router(kind);
  for (const char* name : names) {
    const std::string parameter = fmt::format("layer 0 of chunk 1 of rank 0: {}", name);
    RunOptions options{.replays = 0};
    options.hooks.before = Freeing(parameter, Kind::Backward, 0);
    const auto report = attempt(verified(typed(kWhole), every_layer(module)), options);
    ASSERT_FALSE(report) << parameter;
    EXPECT_EQ(report.error().message, gone(parameter));
  }
}

TEST(SavedTensors, EveryParameterOfAKindWithSeveralWeightsIsAskedFor) {
  expect_asked_for(ModuleKind::LayerNormMlp, {"norm weight", "norm bias", "fc1 weight", "fc1 bias",
                                              "fc2 weight", "fc2 bias"});
  expect_asked_for(ModuleKind::Attention,
                   {"qkv weight", "qkv bias", "output weight", "output bias"});
  expect_asked_for(ModuleKind::MoeLayer,
                   {"norm weight", "norm bias", "router weight", "fc1 weight", "fc2 weight"});
  expect_asked_for(ModuleKind::TransformerLayer,
                   {"attention norm weight", "attention norm bias", "qkv weight", "qkv bias",
                    "output weight", "output bias", "norm weight", "norm bias", "fc1 weight",
                    "fc1 bias", "fc2 weight", "fc2 bias"});
}

// Nobody owes a frozen weight anything.
TEST(SavedTensors, AFrozenWeightMayGo) {
  Module module = small(ModuleKind::Linear);
  module.flags.frozen_weight = true;
  RunOptions options;
  options.hooks.before = Freeing(weight_of(ModuleKind::Linear), Kind::Backward, 0);
  EXPECT_TRUE(attempt(verified(typed(kWhole), every_layer(module)), options));
}

// --- substitution --------------------------------------------------------------------------------

void expect_same(const std::vector<TensorReport>& is, const std::vector<TensorReport>& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(is[i].name, should[i].name);
    // The sum of all elements, as a double: another gradient has another sum.
    EXPECT_EQ(is[i].float64_error, should[i].float64_error) << is[i].name;
    EXPECT_EQ(is[i].ascending_error, should[i].ascending_error) << is[i].name;
    EXPECT_LE(is[i].float64_error, is[i].bound);
  }
}

TEST(SavedTensors, TensorsThatComeBackElsewhereLeaveGradientsWhereTheyBelong) {
  for (const ModuleKind kind : kRunKinds) {
    for (const char* order : {kWhole, kDelayed, "[1, 1, -1, -1, -1.5, -1.5]"}) {
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}", capo::name_of(kind), order));
        Module module = small(kind);
        module.flags.bias = bias && !has_router(kind);
        const VerifiedPlan plan = verified(typed(order), every_layer(module));
        const RunReport usual = report_of(plan, {.replays = 0});
        RunOptions options{.replays = 0};
        options.hooks.substitute_saved = true;
        const RunReport substituted = report_of(plan, options);
        EXPECT_TRUE(usual.within_bounds);
        EXPECT_TRUE(substituted.within_bounds);
        EXPECT_FALSE(substituted.parameters.empty());
        EXPECT_FALSE(substituted.input_gradients.empty());
        expect_same(substituted.parameters, usual.parameters);
        expect_same(substituted.input_gradients, usual.input_gradients);
      }
    }
  }
}

TEST(SavedTensors, AreNotSubstitutedUnderGraphs) {
  RunOptions options;
  options.hooks.substitute_saved = true;
  const auto report =
      attempt(verified(typed(kWhole), every_layer(small(ModuleKind::Linear))), options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
  EXPECT_EQ(report.error().message,
            "graphs read what was saved where it was at their capture: saved tensors can be "
            "substituted in eager execution only");
}

}  // namespace
}  // namespace capo::run

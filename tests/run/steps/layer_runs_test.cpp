// Transformer layers as modules, run: dense ones and those with experts, on schedules that split
// backward and on those that do not, under both plans, beside other modules; what they launch and
// keep; and wrong kernels, which float64 sees in either half.

#include "run/modules/module.h"
#include "tests/run/labelled_engine.h"
#include "tests/run/launched_words.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

// One sequence and several, heads alone and in pairs, narrower and wider than hidden; dense, and
// with experts of which some stay empty.
std::vector<Module> layers() {
  std::vector<Module> all;
  const auto add = [&](const ModuleShape& shape) {
    Module module = small(ModuleKind::TransformerLayer);
    module.shape = shape;
    module.name = fmt::format("{} heads in sequences of {}, top_k {} of {}", *shape.heads,
                              *shape.sequence, shape.top_k.value_or(0), shape.groups.value_or(0));
    all.push_back(std::move(module));
  };
  ModuleShape shape{
      .tokens = 12, .hidden = 8, .ffn = 6, .heads = 4, .kv_heads = 2, .head_dim = 5, .sequence = 4};
  add(shape);
  shape.heads = shape.kv_heads = 1;
  shape.sequence = 12;
  add(shape);
  shape.groups = 4;
  shape.top_k = 2;
  add(shape);
  shape.heads = 3;
  shape.sequence = 3;
  shape.groups = 20;
  shape.top_k = 1;
  add(shape);
  return all;
}

void expect_layer_right(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds)
      << report.worst_relative_error << " " << (report.beyond.empty() ? "" : report.beyond[0].name);
  EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
}

TEST(LayerRuns, EveryLayerIsRightOnSchedulesOfTwoRanks) {
  for (const auto& [name, chunks] : {std::pair("1f1b", 1), std::pair("zb-h1", 1),
                                     std::pair("1f1b-interleaved", 2), std::pair("zbv", 2)}) {
    const Input input{
        .form = Form::OrderFile,
        .schedule =
            published({.name = name, .ranks = 2, .microbatches = 4, .chunks = chunks}).value()};
    for (Module& module : layers()) {
      for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
        module.dtype = type;
        module.flags.bias = type == DataType::Fp16 && !has_router(module);
        module.flags.fuse_wgrad_accumulation = type != DataType::Fp16;
        SCOPED_TRACE(fmt::format("{}, {}, {}", name, module.name, name_of(type)));
        const VerifiedPlan plan = verified(input, every_layer(module));
        for (const Granularity graphs : kGranularities) {
          expect_layer_right(report_of(plan, {.graphs = graphs, .replays = 2}));
        }
      }
    }
  }
}

TEST(LayerRuns, EveryLayerIsRightUnderTransformerEnginesPlan) {
  for (const char* order : {"[1, 1, -1, -1]", "[1, -1, -1.5, 1, -1, -1.5]",
                            "[1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]"}) {
    for (const Module& module : layers()) {
      SCOPED_TRACE(fmt::format("{}, {}", order, module.name));
      const VerifiedPlan plan = verified(typed(order), every_layer(module, PlanKind::Te));
      for (const Granularity graphs : kGranularities) {
        expect_layer_right(report_of(plan, {.graphs = graphs, .replays = 2}));
      }
    }
  }
}

// W reads the incoming gradient itself, which goes to others before the last of these; or a copy.
TEST(LayerRuns, ReuseOfTheIncomingGradientHurtsUnlessItIsCopied) {
  constexpr const char* kLate = "[1, 1, -1, 1, -1, -1.5, -1.5, -1, -1.5]";
  for (Module& module : layers()) {
    SCOPED_TRACE(module.name);
    const UncheckedPlan hurt = admitted(typed(kLate), every_layer(module, PlanKind::Te));
    for (const Granularity graphs : kGranularities) {
      const RunReport report = report_of(hurt, {.graphs = graphs});
      EXPECT_EQ(report.victims, report.predicted);
      EXPECT_TRUE(report.victims.static_input.empty());
      EXPECT_FALSE(report.victims.grad_output.empty());
      EXPECT_TRUE(parameter(report, "fc2 weight").difference);
      EXPECT_FALSE(parameter(report, "qkv weight").difference);
      EXPECT_FALSE(parameter(report, "output weight").difference);
    }
    module.flags.gathered_grad_output = true;
    expect_layer_right(
        report_of(verified(typed(kLate), every_layer(module, PlanKind::Te)), {.replays = 2}));
  }
}

// A chunk of a dense layer, an attention and a layer of experts.
TEST(LayerRuns, OtherModulesLieBesideThem) {
  const std::vector<Module> all = layers();
  Module attention = small(ModuleKind::Attention);
  attention.shape = all[0].shape;
  attention.shape.ffn.reset();
  CheckOptions options = every_layer(all[0]);
  options.modules.list.insert(options.modules.list.end(), {attention, all[2]});
  options.modules.layers = {{{0, 1, 2}}};
  const VerifiedPlan plan = verified(
      typed("capo 1\nmicrobatches 3\nlayers 3\nrank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\n"), options);
  for (const Granularity graphs : kGranularities) {
    expect_layer_right(report_of(plan, {.graphs = graphs}));
  }
}

// Float64 goes on from what lay between the halves. Where it went through both on its own, one seed
// in some hundreds was beyond the bounds, and the choices of another were not admissible.
TEST(LayerRuns, AreComparedHalfByHalf) {
  const Input input{
      .form = Form::OrderFile,
      .schedule =
          published({.name = "1f1b-interleaved", .ranks = 2, .microbatches = 4, .chunks = 2})
              .value()};
  const VerifiedPlan layers_of_experts = verified(input, every_layer(small_with_experts()));
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const RunReport report = report_of(layers_of_experts, {.replays = 0, .seed = seed});
    EXPECT_TRUE(report.within_bounds) << seed << " " << report.beyond[0].name;
    for (const TensorReport& tensor : report.parameters) {
      EXPECT_EQ(tensor.bound, 5e-3) << tensor.name;
    }
  }
  Module near = small_with_experts();
  near.recipe = Recipe::Mxfp8;
  near.shape = {.tokens = 16,
                .hidden = 24,
                .ffn = 24,
                .groups = 4,
                .top_k = 2,
                .heads = 6,
                .kv_heads = 2,
                .head_dim = 16,
                .sequence = 8};
  const VerifiedPlan four = verified(
      typed("capo 1\nplacement chain\nrank 0: F1 B1 F1 B1 F1 B1 F1 B1\n"), every_layer(near));
  const RunReport report = report_of(four, {.replays = 1, .seed = 77003259});
  EXPECT_TRUE(report.within_bounds) << report.beyond[0].name;
}

// --- what is kept --------------------------------------------------------------------------------

// A layer keeps what its halves keep, and three matrices of 12 x 8 in bf16 between them.
TEST(LayerRuns, KeepWhatTheirHalvesKeepAndWhatLiesBetween) {
  for (const Module& module : layers()) {
    const CheckOptions options = completed(typed("[1, -1]"), every_layer(module));
    const Module& whole = options.modules.list.front();
    const LayerShape shape = declared_shape(whole);
    const std::int64_t between = 3 * aligned(12 * 8 * 2);
    EXPECT_EQ(*whole.bytes.activations,
              between + kept_bytes(attention_half(shape)) + kept_bytes(second_half(shape)));
  }
}

// --- what they launch ----------------------------------------------------------------------------

std::string layer_word(const Call& call) {
  if (const auto* product = std::get_if<GroupedProduct>(&call)) {
    return fmt::format("{}({}x{})", kind_word(*product), product->out, product->in);
  }
  if (std::holds_alternative<Attention>(call)) return "attend";
  if (std::holds_alternative<AttentionQueryGradient>(call)) return "dq";
  if (std::holds_alternative<AttentionKeyGradient>(call)) return "dkv";
  if (std::holds_alternative<LayerNorm>(call)) return "norm";
  if (std::holds_alternative<LayerNormWeightGradient>(call)) return "dnorm";
  if (std::holds_alternative<LayerNormGradient>(call)) return "dx(norm)";
  if (std::holds_alternative<Route>(call)) return "route";
  if (std::holds_alternative<RouteGradient>(call)) return "droute";
  if (std::holds_alternative<Combine>(call)) return "combine";
  if (std::holds_alternative<Add>(call)) return "add";
  return "";
}

std::vector<std::string> layer_launches(const char* order, const Module& module) {
  return launched_words(verified(typed(order), every_layer(module)), layer_word,
                        [](const RunReport& report) { expect_layer_right(report); });
}

using LayerWords = std::vector<std::string>;

// 40 columns of qkv, 20 of what the second product reads; twice 6 in the middle of the MLP.
TEST(LayerRuns, ADenseLayerLaunchesItsTwoHalvesAndTheirSums) {
  const Module module = layers()[0];
  const std::string forward = "norm y(40x8) attend y(8x20) add norm y(12x8) y(8x6) add";
  EXPECT_EQ(layer_launches("[1, -1]", module),
            (LayerWords{forward,
                        "dx(8x6) dw(8x6) dw(12x8) dx(12x8) dnorm dx(norm) add "
                        "dx(8x20) dq dkv dw(8x20) dw(40x8) dx(40x8) dnorm dx(norm) add"}));
  EXPECT_EQ(layer_launches("[1, -1, -1.5]", module),
            (LayerWords{forward,
                        "dx(8x6) dx(12x8) dnorm dx(norm) add "
                        "dx(8x20) dq dkv dx(40x8) dnorm dx(norm) add",
                        "dw(8x6) dw(12x8) dw(8x20) dw(40x8)"}));
}

TEST(LayerRuns, ALayerOfExpertsLaunchesItsRouterBehindItsAttention) {
  EXPECT_EQ(layer_launches("[1, -1, -1.5]", layers()[2]),
            (LayerWords{"norm y(15x8) attend y(8x5) add "
                        "norm y(4x8) route y(12x8) y(8x6) combine",
                        "dx(8x6) droute dx(12x8) dx(4x8) combine dnorm dx(norm) add "
                        "dx(8x5) dq dkv dx(15x8) dnorm dx(norm) add",
                        "dw(8x6) dw(12x8) dw(4x8) dw(8x5) dw(15x8)"}));
}

// The gradient of the input ends with the attention's norm, whose parameters need all before it.
TEST(LayerRuns, ALayerWhoseInputNeedsNoGradientLeavesOutTheEnd) {
  Module module = layers()[0];
  module.flags.input_requires_grad = false;
  EXPECT_EQ(layer_launches("[1, -1, -1.5]", module)[1],
            "dx(8x6) dx(12x8) dnorm dx(norm) add dx(8x20) dq dkv dx(40x8) dnorm");
}

// --- wrong kernels -------------------------------------------------------------------------------

void expect_layer_beyond(const FaultyEngine::Fault& fault, std::string_view part) {
  for (const std::size_t which : {0U, 2U}) {
    FaultyEngine engine(fault);
    const VerifiedPlan plan = verified(
        typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n"),
        every_layer(layers()[which]));
    const RunReport report = report_on(engine, plan, {.replays = 1});
    EXPECT_TRUE(report.bit_equal) << "eager execution launches the same";
    EXPECT_FALSE(report.within_bounds);
    EXPECT_TRUE(std::any_of(
        report.beyond.begin(), report.beyond.end(),
        [&](const BeyondBound& one) { return one.name.find(part) != std::string::npos; }))
        << part << ", but " << (report.beyond.empty() ? "nothing" : report.beyond[0].name);
  }
}

TEST(LayerRuns, AnAttentionThatReadsLessThanItsSequenceIsSeen) {
  expect_layer_beyond(
      [](Call& call) {
        if (auto* of = std::get_if<Attention>(&call)) of->shape.sequence = 2;
      },
      "sum between the halves of layer 0 of chunk 1 of rank 0, microbatch 0");
}

TEST(LayerRuns, AGradientOfKeysOfAnotherSequenceIsSeen) {
  expect_layer_beyond(
      [](Call& call) {
        if (auto* of = std::get_if<AttentionKeyGradient>(&call)) of->shape.sequence = 2;
      },
      "layer 0 of chunk 1 of rank 0: qkv weight");
}

// Sums are the only calls of this kind in a step whose gradients are fused.
TEST(LayerRuns, ASumThatForgetsItsLastRowIsSeen) {
  for (const char* part :
       {"sum between the halves of layer 0 of chunk 1 of rank 0, microbatch 0",
        "gradient between the halves of layer 0 of chunk 2 of rank 0, microbatch 0"}) {
    expect_layer_beyond(
        [](Call& call) {
          auto* of = std::get_if<Add>(&call);
          if (of != nullptr && of->count == 12 * 8) of->count -= 8;
        },
        part);
  }
}

TEST(LayerRuns, AWeightGradientOfHalfOfTheRowsIsSeen) {
  expect_layer_beyond(
      [](Call& call) {
        auto* of = std::get_if<GroupedProduct>(&call);
        if (of == nullptr || of->kind != GroupedProduct::Kind::WeightGradient) return;
        if (of->rows.count == 12) of->rows.count = 6;
      },
      "layer 0 of chunk 1 of rank 0: output weight");
}

}  // namespace
}  // namespace capo::run

// Attention as a module, run: its shapes on schedules that split backward and on those that do not,
// under both plans, whatever lies beside it; what it launches; and wrong kernels, which float64
// sees.

#include "tests/run/labelled_engine.h"
#include "tests/run/launched_words.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

struct Heads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;
};

// 12 rows of 8 columns.
Module attention(const Heads& of) {
  Module module = small(ModuleKind::Attention);
  module.shape = {.tokens = 12,
                  .hidden = 8,
                  .heads = of.heads,
                  .kv_heads = of.kv_heads,
                  .head_dim = of.head_dim,
                  .sequence = of.sequence};
  return module;
}

// One sequence and twelve, heads alone, in pairs and all together, narrower and wider than hidden.
const std::vector<Heads> kShapes{{.heads = 1, .kv_heads = 1, .head_dim = 3, .sequence = 12},
                                 {.heads = 4, .kv_heads = 2, .head_dim = 5, .sequence = 4},
                                 {.heads = 3, .kv_heads = 3, .head_dim = 8, .sequence = 6},
                                 {.heads = 6, .kv_heads = 1, .head_dim = 2, .sequence = 3},
                                 {.heads = 2, .kv_heads = 1, .head_dim = 4, .sequence = 1}};

std::string words_of(const Module& module) {
  const ModuleShape& shape = module.shape;
  return fmt::format("{} heads, {} kv_heads, head_dim {}, sequence {}, {}", *shape.heads,
                     *shape.kv_heads, *shape.head_dim, *shape.sequence, name_of(*module.dtype));
}

void expect_equal_and_bounded(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
}

Input schedule(const char* name, std::int32_t chunks) {
  return {.form = Form::OrderFile,
          .schedule =
              published({.name = name, .ranks = 2, .microbatches = 4, .chunks = chunks}).value()};
}

TEST(AttentionRuns, EveryShapeIsRightOnSchedulesOfTwoRanks) {
  for (const auto& [name, chunks] : {std::pair("1f1b", 1), std::pair("zb-h1", 1),
                                     std::pair("1f1b-interleaved", 2), std::pair("zbv", 2)}) {
    for (const Heads& heads : kShapes) {
      for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
        Module module = attention(heads);
        module.dtype = type;
        module.flags.bias = type == DataType::Fp16;
        module.flags.fuse_wgrad_accumulation = type != DataType::Fp16;
        SCOPED_TRACE(fmt::format("{}, {}", name, words_of(module)));
        const VerifiedPlan plan = verified(schedule(name, chunks), every_layer(module));
        for (const Granularity graphs : kGranularities) {
          expect_equal_and_bounded(report_of(plan, {.graphs = graphs, .replays = 2}));
        }
      }
    }
  }
}

// TransformerEngine's reuse gives every buffer time in these lists.
TEST(AttentionRuns, EveryShapeIsRightUnderTransformerEnginesPlan) {
  for (const char* order : {"[1, 1, -1, -1]", "[1, -1, -1.5, 1, -1, -1.5]",
                            "[1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]"}) {
    for (const Heads& heads : kShapes) {
      const Module module = attention(heads);
      SCOPED_TRACE(fmt::format("{}, {}", order, words_of(module)));
      const VerifiedPlan plan = verified(typed(order), every_layer(module, PlanKind::Te));
      for (const Granularity graphs : kGranularities) {
        expect_equal_and_bounded(report_of(plan, {.graphs = graphs, .replays = 2}));
      }
    }
  }
}

// W of the second microbatch reads the input of its first product and the gradient that came in,
// which TransformerEngine has given to others by then: of a module that copies both it reads
// copies.
TEST(AttentionRuns, ReuseHurtsBothWeightsUnlessTheyReadCopies) {
  constexpr const char* kLate = "[1, 1, -1, 1, -1, -1.5, -1.5, -1, -1.5]";
  Module module = attention(kShapes[1]);
  const UncheckedPlan hurt = admitted(typed(kLate), every_layer(module, PlanKind::Te));
  for (const Granularity graphs : kGranularities) {
    const RunReport report = report_of(hurt, {.graphs = graphs});
    EXPECT_EQ(report.victims, report.predicted);
    EXPECT_FALSE(report.victims.static_input.empty());
    EXPECT_FALSE(report.victims.grad_output.empty());
    EXPECT_TRUE(parameter(report, "qkv weight").difference);
    EXPECT_TRUE(parameter(report, "output weight").difference);
    EXPECT_TRUE(report.within_bounds);  // eager execution has memory for each
  }
  module.flags.gathered_input = true;
  module.flags.gathered_grad_output = true;
  expect_equal_and_bounded(
      report_of(verified(typed(kLate), every_layer(module, PlanKind::Te)), {}));
}

// A chunk of an attention, an MLP behind a norm, a linear and an attention of other heads.
TEST(AttentionRuns, OtherModulesLieBesideIt) {
  Module mlp = small(ModuleKind::LayerNormMlp);
  Module linear = small(ModuleKind::Linear);
  for (Module* module : {&mlp, &linear}) {
    module->shape.tokens = 12;
    module->shape.hidden = 8;
  }
  linear.shape.ffn = 8;
  Module other = attention(kShapes[3]);
  other.name = "other";
  CheckOptions options = every_layer(attention(kShapes[1]));
  options.modules.list.insert(options.modules.list.end(), {mlp, linear, other});
  options.modules.layers = {{{0, 1, 2, 3}}};
  const VerifiedPlan plan = verified(
      typed("capo 1\nmicrobatches 3\nlayers 4\nrank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\n"), options);
  for (const Granularity graphs : kGranularities)
    expect_equal_and_bounded(report_of(plan, {.graphs = graphs}));
}

// It has no groups: whatever sizes others have, all of its rows are there.
TEST(AttentionRuns, NoRowIsLeftOutBesideAnAttention) {
  Module experts = small(ModuleKind::GroupedMlp);
  CheckOptions options = every_layer(small(ModuleKind::Attention));
  options.modules.list.push_back(experts);
  options.modules.layers = {{{0}, {1}}};
  const VerifiedPlan plan =
      verified(typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F2 F1 F2 B2 B1 B2 B1\n"),
               options);
  for (const SizeKind sizes : {SizeKind::Balanced, SizeKind::Zipf, SizeKind::Random}) {
    expect_equal_and_bounded(report_of(plan, {.sizes = sizes}));
  }
}

// --- what it launches ----------------------------------------------------------------------------

std::string word_of(const Call& call) {
  if (const auto* product = std::get_if<GroupedProduct>(&call)) {
    return fmt::format("{}({}x{})", kind_word(*product), product->out, product->in);
  }
  if (std::holds_alternative<Attention>(call)) return "attend";
  if (std::holds_alternative<AttentionQueryGradient>(call)) return "dq";
  if (std::holds_alternative<AttentionKeyGradient>(call)) return "dkv";
  return "";
}

// The products and attentions of each graph, in the order of capture.
std::vector<std::string> launched(const char* order, const Module& module) {
  return launched_words(verified(typed(order), every_layer(module)), word_of,
                        [](const RunReport& report) { expect_equal_and_bounded(report); });
}

// 4 heads and 2 kv heads of 5 columns: 40 columns of qkv, 20 of what the second product reads.
TEST(AttentionRuns, LaunchesItsProductsAroundItsKernels) {
  using Words = std::vector<std::string>;
  Module module = attention(kShapes[1]);
  EXPECT_EQ(launched("[1, -1]", module),
            (Words{"y(40x8) attend y(8x20)", "dx(8x20) dq dkv dw(8x20) dw(40x8) dx(40x8)"}));
  EXPECT_EQ(launched("[1, -1, -1.5]", module),
            (Words{"y(40x8) attend y(8x20)", "dx(8x20) dq dkv dx(40x8)", "dw(8x20) dw(40x8)"}));
  module.flags.input_requires_grad = false;
  EXPECT_EQ(launched("[1, -1]", module),
            (Words{"y(40x8) attend y(8x20)", "dx(8x20) dq dkv dw(8x20) dw(40x8)"}));
}

// --- wrong kernels -------------------------------------------------------------------------------

template <typename Of, typename Change>
FaultyEngine::Fault in(Change change) {
  return [change](Call& call) {
    if (auto* of = std::get_if<Of>(&call)) change(of->shape);
  };
}

constexpr const char* kTwoAttentions =
    "capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n";

bool is_beyond(const RunReport& report, std::string_view part) {
  return std::any_of(report.beyond.begin(), report.beyond.end(), [&](const BeyondBound& one) {
    return one.name.find(part) != std::string::npos;
  });
}

// All of float64, and a sample with one sequence of a microbatch and one kv head of a layer.
void expect_seen(const FaultyEngine::Fault& fault, std::string_view part) {
  const VerifiedPlan plan = verified(typed(kTwoAttentions), every_layer(attention(kShapes[1])));
  for (const Float64 how : {Float64::FirstReplay, Float64::Sampled}) {
    FaultyEngine engine(fault);
    const RunReport report =
        report_on(engine, plan, {.replays = 1, .float64 = how, .float64_samples = 3});
    EXPECT_TRUE(report.bit_equal) << "eager execution launches the same";
    EXPECT_FALSE(report.within_bounds);
    EXPECT_TRUE(is_beyond(report, part)) << part;
  }
}

TEST(AttentionRuns, AForwardThatReadsMoreThanItsSequenceOrLessIsSeen) {
  for (const std::int64_t sequence : {0, 2}) {
    expect_seen(in<Attention>([sequence](AttentionShape& shape) { shape.sequence = sequence; }),
                "input that layer 0 of chunk 2 of rank 0 read");
  }
}

TEST(AttentionRuns, AGradientOfQueriesOfAnotherSequenceIsSeen) {
  expect_seen(in<AttentionQueryGradient>([](AttentionShape& shape) { shape.sequence = 2; }),
              "layer 0 of chunk 1 of rank 0: qkv weight");
}

TEST(AttentionRuns, AGradientOfKeysOfAnotherSequenceIsSeen) {
  expect_seen(in<AttentionKeyGradient>([](AttentionShape& shape) { shape.sequence = 2; }),
              "layer 0 of chunk 1 of rank 0: qkv weight");
}

// One kv head of two is looked at in each layer, whichever the seed draws.
TEST(AttentionRuns, ASampleHasOneKvHeadAndOneSequence) {
  const VerifiedPlan plan = verified(typed(kTwoAttentions), every_layer(attention(kShapes[1])));
  RunOptions options{.replays = 0, .float64 = Float64::Sampled, .float64_samples = 3};
  for (options.seed = 1; options.seed <= 8; ++options.seed) {
    const RunReport report = report_of(plan, options);
    EXPECT_TRUE(report.within_bounds);
    // Three of ten columns of a kv head's heads; their keys and values may be the same two columns.
    const auto qkv = *parameter(report, "chunk 1 of rank 0: qkv weight").float64_elements;
    EXPECT_EQ(qkv % 8, 0);
    EXPECT_GE(qkv / 8, 3 + 2 * 2);
    EXPECT_LE(qkv / 8, 3 + 2 * 3);
    EXPECT_EQ(*parameter(report, "chunk 1 of rank 0: output weight").float64_elements, 3 * 8);
    // Four of twelve rows in each of two microbatches.
    for (const TensorReport& tensor : report.input_gradients) {
      EXPECT_EQ(*tensor.float64_elements, 4 * 8) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace capo::run

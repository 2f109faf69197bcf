// Layers whose products read codes, run: every published schedule of up to four ranks under both
// recipes; sizes that end in the middle of blocks; what a split path and one call of several
// microbatches launch; wrong kernels, which float64 sees; and what is refused.

#include "core/order/fuse_weights.h"
#include "tests/run/labelled_engine.h"
#include "tests/run/launched_words.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

constexpr std::array kRecipes{Recipe::Block, Recipe::Mxfp8};
constexpr std::array kCodedKinds{ModuleKind::Linear,          ModuleKind::LayerNormLinear,
                                 ModuleKind::LayerNormMlp,    ModuleKind::GroupedLinear,
                                 ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp,
                                 ModuleKind::BasicLinearOp,   ModuleKind::Attention,
                                 ModuleKind::MoeLayer,        ModuleKind::TransformerLayer};

Module coded(ModuleKind kind, Recipe recipe) {
  Module module = small(kind);
  module.recipe = recipe;
  return module;
}

// Rows of a group, columns, heads and tokens all end in the middle of blocks of 128 and of 32.
Module widened(Module module) {
  ModuleShape& shape = module.shape;
  shape.tokens = 300;
  shape.hidden = 136;
  // Layers of one product follow each other.
  if (shape.ffn) shape.ffn = is_one_product(*module.kind) ? shape.hidden : 72;
  if (shape.head_dim) shape.head_dim = 20;
  if (shape.sequence) shape.sequence = 100;
  return module;
}

Module wide(ModuleKind kind, Recipe recipe) {
  return widened(coded(kind, recipe));
}

Module coded_experts(Recipe recipe) {
  Module module = small_with_experts();
  module.recipe = recipe;
  return module;
}

std::string words(const Module& module) {
  return fmt::format("{}, {}", name_of(*module.kind), name_of(recipe_of(module)));
}

void expect_coded_right(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
}

TEST(RecipeRuns, EveryScheduleOfFourRanksIsEqualToEager) {
  std::size_t schedules = 0;
  Sample turns;
  for (const std::string& name : published_names()) {
    for (const std::int32_t chunks : {1, 2}) {
      auto schedule = published({.name = name, .ranks = 4, .microbatches = 8, .chunks = chunks});
      if (!schedule) continue;
      ++schedules;
      for (const Recipe recipe : kRecipes) {
        if (!turns.takes_next()) continue;
        const ModuleKind kind = kCodedKinds[schedules % kCodedKinds.size()];
        const Module module = coded(kind, recipe);
        SCOPED_TRACE(name + ", " + words(module));
        const VerifiedPlan plan =
            verified({.form = Form::OrderFile, .schedule = *schedule}, every_layer(module));
        for (const Granularity graphs : kGranularities) {
          expect_coded_right(report_of(plan, {.graphs = graphs, .replays = 3}));
        }
      }
      break;
    }
  }
  EXPECT_EQ(schedules, published_names().size());
}

TEST(RecipeRuns, EveryKindIsRightWhereBlocksEndAnywhere) {
  for (const char* name : {"1f1b", "zb-h1"}) {
    for (const ModuleKind kind : kCodedKinds) {
      for (const Recipe recipe : kRecipes) {
        for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
          Module module = wide(kind, recipe);
          module.dtype = type;
          module.flags.bias = type == DataType::Fp16 && !has_router(kind);
          module.flags.fuse_wgrad_accumulation = type == DataType::Bf16;
          module.flags.grad_added_to_main_grad = type == DataType::Bf16;
          if (is_grouped(kind) && type == DataType::Fp16) module.splits = Splits::Input;
          SCOPED_TRACE(fmt::format("{}, {}, {}", name, words(module), name_of(type)));
          const VerifiedPlan plan = verified(
              {.form = Form::OrderFile,
               .schedule = published({.name = name, .ranks = 2, .microbatches = 2}).value()},
              every_layer(module));
          expect_coded_right(report_of(plan, {.replays = 2}));
        }
      }
    }
  }
}

// A router and its experts behind attention, and the weights that all of them quantize.
TEST(RecipeRuns, ALayerOfExpertsIsRightWhoeverQuantizesItsWeights) {
  for (const char* name : {"1f1b", "zb-h1"}) {
    for (const Recipe recipe : kRecipes) {
      for (const bool cached : {false, true}) {
        Module module = widened(coded_experts(recipe));
        if (cached) module.weight_cache = WeightCache::Device;
        SCOPED_TRACE(fmt::format("{}, {}, {}", name, name_of(recipe), cached));
        const VerifiedPlan plan =
            verified({.form = Form::OrderFile,
                      .schedule = published({.name = name, .ranks = 2, .microbatches = 2}).value()},
                     every_layer(module));
        const Granularity graphs = cached ? Granularity::PerStep : Granularity::PerAction;
        expect_coded_right(report_of(plan, {.graphs = graphs, .replays = 3}));
      }
    }
  }
}

Input delayed_order(const std::string& weights) {
  return typed("capo 1\nranks 1\nmicrobatches 2\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1 " +
               weights + "\n");
}

TEST(RecipeRuns, SplitPathsMultiplyGroupByGroup) {
  for (const ModuleKind kind :
       {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp}) {
    for (const Recipe recipe : kRecipes) {
      Module module = wide(kind, recipe);
      module.splits = Splits::Host;
      SCOPED_TRACE(words(module));
      expect_coded_right(report_of(admitted(delayed_order("W1.0 W1.1"), every_layer(module)),
                                   {.replays = 2, .sizes = SizeKind::Balanced}));
    }
  }
}

TEST(RecipeRuns, OneCallOfSeveralMicrobatchesAddsThemOneByOne) {
  for (const ModuleKind kind : kCodedKinds) {
    const Module module = coded(kind, Recipe::Block);
    SCOPED_TRACE(words(module));
    Input input = delayed_order("W1.0 W1.1");
    EXPECT_GT(fuse_weights(input.schedule, 2).calls, 0u);
    expect_coded_right(report_of(verified(std::move(input), every_layer(module)), {.replays = 2}));
  }
}

// What reads codes is no victim of whoever overwrites the tensors.
TEST(RecipeRuns, WeightGradientsReadNeitherTheInputNorTheGradient) {
  const CheckOptions options = every_layer(coded(ModuleKind::Linear, Recipe::Mxfp8));
  const VerifiedPlan plan = verified(delayed_order("W1.0 W1.1"), options);
  LabelledEngine engine(test_engine());
  static_cast<void>(report_on(engine, plan, {.replays = 1}));
  std::size_t products = 0;
  for (GraphId graph = 0; graph < 6; ++graph) {
    for (const CapturedLaunch& launched : engine.launches(graph)) {
      if (!launched.label.starts_with("W")) continue;
      EXPECT_TRUE(std::holds_alternative<ScaledProduct>(launched.call)) << launched.label;
      ++products;
    }
  }
  EXPECT_EQ(products, 2u);
}

// 8 tokens choose 2 of 3 groups, so that experts have 16 rows.
TEST(RecipeRuns, ARouterReadsNumbersAndItsExpertsReadCodes) {
  using Words = std::vector<std::string>;
  const auto word = [](const Call& call) -> std::string {
    if (const auto* plain = std::get_if<GroupedProduct>(&call)) {
      return fmt::format("{}({}x{})", kind_word(*plain), plain->out, plain->in);
    }
    if (const auto* scaled = std::get_if<ScaledProduct>(&call)) {
      return fmt::format("coded {}x{} of {}", scaled->out, scaled->in, scaled->rows.count);
    }
    if (std::holds_alternative<Gather>(call)) return "dispatch";
    const auto* rows = std::get_if<QuantizeRows>(&call);
    return rows != nullptr && rows->made.by == RowsMade::By::Gather ? "gather" : "";
  };
  const auto launches = [&](const Module& module) {
    return launched_words(verified(typed("[1, -1, -1.5]"), every_layer(module)), word,
                          [](const RunReport& report) { expect_coded_right(report); });
  };
  const std::string second = "coded 16x16 of 16";
  const std::string first = "coded 32x16 of 16";
  EXPECT_EQ(
      launches(coded(ModuleKind::MoeLayer, Recipe::Block)),
      (Words{"y(3x16) gather " + first + " " + second,
             "gather " + second + " " + first + " dx(3x16)", second + " " + first + " dw(3x16)"}));
  const std::string projection = "coded 16x16 of 8";
  const std::string qkv = "coded 32x16 of 8";
  EXPECT_EQ(launches(coded_experts(Recipe::Mxfp8)),
            (Words{qkv + " " + projection + " y(3x16) gather " + first + " " + second,
                   "gather " + second + " " + first + " dx(3x16) " + projection + " " + qkv,
                   second + " " + first + " dw(3x16) " + projection + " " + qkv}));
}

// --- weights that stay quantized -----------------------------------------------------------------

CheckOptions kept_by_te(ModuleKind kind, Recipe recipe, WeightCache cache) {
  Module module = coded(kind, recipe);
  module.weight_cache = cache;
  return every_layer(module, PlanKind::Te);
}

// A mistake of forward shows in the weight gradient of the layer behind.
Input step_of(const std::string& order) {
  return typed("capo 1\nranks 1\nlayers 2\nmicrobatches 2\nrank 0: " + order + "\n");
}

// Codes of the step before are there as a replay begins, and the first microbatch makes new ones.
TEST(RecipeRuns, AWeightThatTheFirstMicrobatchQuantizesIsThatOfTheStep) {
  for (const ModuleKind kind : kCodedKinds) {
    for (const Recipe recipe : kRecipes) {
      const CheckOptions options = kept_by_te(kind, recipe, WeightCache::Device);
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(name_of(kind));
        expect_coded_right(report_of(verified(step_of("F1.0 F1.1 B1.0 B1.1"), options),
                                     {.graphs = graphs, .replays = 2}));
      }
    }
  }
}

// Y07 and C13.
TEST(RecipeRuns, AStaleWeightShows) {
  for (const ModuleKind kind : kCodedKinds) {
    for (const Recipe recipe : kRecipes) {
      SCOPED_TRACE(fmt::format("{}, {}", name_of(kind), name_of(recipe)));
      const auto report = [&](const std::string& order, WeightCache cache) {
        const CheckOptions options = kept_by_te(kind, recipe, cache);
        return report_of(admitted(step_of(order), options), {.replays = 2});
      };
      const RunReport late = report("F1.1 F1.0 B1.1 B1.0", WeightCache::Device);
      EXPECT_FALSE(late.bit_equal);
      EXPECT_TRUE(late.within_bounds) << "eager execution quantizes the weight of the step";
      EXPECT_EQ(late.victims, late.predicted);
      EXPECT_TRUE(report("F1.0 F1.1 B1.1 B1.0", WeightCache::Device).bit_equal);
      EXPECT_FALSE(report("F1.0 F1.1 B1.1 B1.0", WeightCache::Python).bit_equal);
    }
  }
}

TEST(RecipeRuns, AFrozenWeightIsNeverStale) {
  CheckOptions options =
      kept_by_te(ModuleKind::LayerNormLinear, Recipe::Block, WeightCache::Python);
  for (Module& module : options.modules.list) module.flags.frozen_weight = true;
  expect_coded_right(report_of(verified(step_of("F1.0 F1.1 B1.0 B1.1"), options), {.replays = 2}));
}

// Without a cache of weights they are buffers: as large as planned, and read by B where F made
// them.
TEST(RecipeRuns, AWeightThatEachMicrobatchQuantizesIsABuffer) {
  for (const ModuleKind kind : kCodedKinds) {
    SCOPED_TRACE(name_of(kind));
    const auto planned = [&](const Module& module, const std::string& order) {
      return report_of(verified(step_of(order), every_layer(module)), {.replays = 1}).bytes.planned;
    };
    Module kept = coded(kind, Recipe::Block);
    kept.weight_cache = WeightCache::Device;
    const Module each = coded(kind, Recipe::Block);
    const std::int64_t one =
        planned(each, "F1.0 B1.0 F1.1 B1.1") - planned(kept, "F1.0 B1.0 F1.1 B1.1");
    EXPECT_GT(one, 0);
    EXPECT_EQ(planned(each, "F1.0 F1.1 B1.0 B1.1") - planned(kept, "F1.0 F1.1 B1.0 B1.1"), 2 * one);
  }
}

// --- wrong kernels -------------------------------------------------------------------------------

template <typename Of, typename Change>
void expect_coded_beyond(ModuleKind kind, Recipe recipe, std::string_view part, Change change) {
  FaultyEngine engine([change](Call& call) {
    if (auto* of = std::get_if<Of>(&call)) change(*of);
  });
  const VerifiedPlan plan = verified(delayed_order("W1.0 W1.1"), every_layer(wide(kind, recipe)));
  const RunReport report = report_on(engine, plan, {.replays = 1});
  EXPECT_FALSE(report.within_bounds);
  EXPECT_TRUE(
      std::any_of(report.beyond.begin(), report.beyond.end(),
                  [&](const BeyondBound& one) { return one.name.find(part) != std::string::npos; }))
      << part << ", but " << (report.beyond.empty() ? "nothing" : report.beyond[0].name);
}

TEST(RecipeRuns, ScalesOfAnotherRowAreSeen) {
  expect_coded_beyond<ScaledProduct>(ModuleKind::LayerNormMlp, Recipe::Mxfp8, "weight",
                                     [](ScaledProduct& call) {
                                       if (call.kind != GroupedProduct::Kind::Forward) return;
                                       call.x.scales = static_cast<std::byte*>(call.x.scales) + 1;
                                     });
}

TEST(RecipeRuns, BlocksOfAnotherDepthAreSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::Linear, Recipe::Block, "weight",
                                    [](QuantizeRows& call) { call.along_rows.codes += 1; });
}

TEST(RecipeRuns, WeightsOfAnotherGroupAreSeen) {
  expect_coded_beyond<ScaledProduct>(ModuleKind::GroupedLinear, Recipe::Block, "input of chunk 1",
                                     [](ScaledProduct& call) {
                                       if (call.kind != GroupedProduct::Kind::InputGradient) return;
                                       call.w.codes += call.in * call.out;
                                     });
}

TEST(RecipeRuns, SwiGluWithoutItsProbabilitiesIsSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::GroupedMlp, Recipe::Block, "fc2 weight",
                                    [](QuantizeRows& call) {
                                      if (call.made.by != RowsMade::By::SwiGlu) return;
                                      call.made.probabilities = nullptr;
                                    });
}

TEST(RecipeRuns, ExpertsWithoutTheProbabilitiesOfTheirRouterAreSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::MoeLayer, Recipe::Mxfp8, "fc2 weight",
                                    [](QuantizeRows& call) {
                                      if (call.made.by != RowsMade::By::SwiGlu) return;
                                      call.made.probabilities = nullptr;
                                    });
}

TEST(RecipeRuns, RowsOfAnotherTokenAreSeen) {
  expect_coded_beyond<QuantizeRows>(
      ModuleKind::MoeLayer, Recipe::Block, "fc1 weight", [](QuantizeRows& call) {
        if (call.made.by != RowsMade::By::Gather) return;
        call.x = static_cast<const std::byte*>(call.x) + call.columns * bytes_of(call.type);
      });
}

// Blocks along rows begin with a group's first row, which only the router's choices tell.
TEST(RecipeRuns, BlocksOfRowsThatSpanExpertsAreSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::MoeLayer, Recipe::Block, "fc1 weight",
                                    [](QuantizeRows& call) {
                                      if (call.along_rows.codes == nullptr) return;
                                      call.rows = {.count = call.rows.count};
                                    });
}

TEST(RecipeRuns, AProjectionOfTheCodesOfItsOtherDirectionIsSeen) {
  expect_coded_beyond<ScaledProduct>(ModuleKind::Attention, Recipe::Mxfp8, "qkv weight",
                                     [](ScaledProduct& call) {
                                       if (call.kind != GroupedProduct::Kind::InputGradient) return;
                                       call.w.codes += call.out;
                                     });
}

TEST(RecipeRuns, AGradientOfSwiGluOfOtherGatesIsSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::LayerNormMlp, Recipe::Mxfp8, "weight",
                                    [](QuantizeRows& call) {
                                      if (call.made.by != RowsMade::By::SwiGluGradient) return;
                                      call.made.dy = call.x;
                                    });
}

// Rows that are quantized as they lie, where their SwiGLU is asked for.
TEST(RecipeRuns, GatesInPlaceOfSwiGluAreSeen) {
  expect_coded_beyond<QuantizeRows>(ModuleKind::LayerNormMlp, Recipe::Block, "fc2 weight",
                                    [](QuantizeRows& call) {
                                      if (call.made.by == RowsMade::By::SwiGlu) call.made = {};
                                    });
}

// Gradients of a bias and of probabilities are made of numbers and not of codes.
TEST(RecipeRuns, SwiGluHasNoTensorUnlessSomebodyReadsIt) {
  struct Made {
    ModuleKind kind;
    bool bias;
    bool is_written;
  };
  // A grouped MLP has probabilities, whose gradients are made with that of SwiGLU.
  for (const Made& one :
       {Made{ModuleKind::LayerNormMlp, false, false}, Made{ModuleKind::LayerNormMlp, true, true},
        Made{ModuleKind::GroupedMlp, false, true}}) {
    Module module = coded(one.kind, Recipe::Block);
    module.flags.bias = one.bias;
    SCOPED_TRACE(words(module));
    LabelledEngine engine(test_engine());
    expect_coded_right(
        report_on(engine, verified(typed("[1, -1]"), every_layer(module)), {.replays = 1}));
    std::size_t made = 0;
    std::size_t written = 0;
    for (GraphId graph = 0; graph < 2; ++graph) {
      for (const CapturedLaunch& launched : engine.launches(graph)) {
        EXPECT_FALSE(std::holds_alternative<SwiGlu>(launched.call)) << launched.label;
        if (const auto* rows = std::get_if<QuantizeRows>(&launched.call)) {
          made += rows->made.by != RowsMade::By::Nobody ? 1U : 0U;
        }
        const auto* gradient = std::get_if<SwiGluGradient>(&launched.call);
        written += gradient != nullptr && gradient->dx != nullptr ? 1U : 0U;
      }
    }
    EXPECT_EQ(made, one.is_written ? 1U : 2U);
    EXPECT_EQ(written, one.is_written ? 1U : 0U);
  }
}

// --- what is refused -----------------------------------------------------------------------------

TEST(RecipeRuns, ASampleOfFloat64IsRefused) {
  const VerifiedPlan plan =
      verified(typed("[1, -1]"), every_layer(coded(ModuleKind::Linear, Recipe::Block)));
  const auto report = attempt(plan, {.float64 = Float64::Sampled, .float64_samples = 3});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "a layer whose products read codes is compared with float64 as a whole or not at all: "
            "leave it out (--float64 none) or compare all of a step (--float64 first)");
}

TEST(RecipeRuns, APlanThatAliasesTheirOperandsIsRefused) {
  CheckOptions options = every_layer(coded(ModuleKind::Linear, Recipe::Block));
  options.plan.aliases = Aliases{.input = false, .grad_output = true};
  const auto gradient = attempt(verified(typed("[1, -1]"), options), {});
  ASSERT_FALSE(gradient);
  EXPECT_NE(gradient.error().message.find("no alias of the incoming gradient"), std::string::npos)
      << gradient.error().message;
  options.plan.aliases = Aliases{.input = true, .grad_output = false};
  const auto input = attempt(verified(typed("[1, -1]"), options), {});
  ASSERT_FALSE(input);
  EXPECT_NE(input.error().message.find("no alias of its input"), std::string::npos)
      << input.error().message;
}

}  // namespace
}  // namespace capo::run

// Every member is written, and reads back. What generators declare: shown_order_test.cpp and
// truth/paste_test.cpp.

#include "testing/model_text.h"

#include "core/text/model_reader.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

TEST(ModelText, OfNothingIsItsSchema) {
  EXPECT_EQ(model_text(Model{}), "{\"schema\":1}\n");
}

TEST(ModelText, OfOneModuleWithoutLayersReadsBackAsEveryLayer) {
  Model model;
  model.modules.list = {Module{.name = "bare"}};
  const auto read = read_model(model_text(model), Limits{});
  ASSERT_TRUE(read) << model_text(model);
  model.modules.layers = {{{0}}};
  EXPECT_EQ(*read, model);
}

TEST(ModelText, HasEverythingThatIsDeclared) {
  CheckOptions declared{.environment = {.communicators = Communicators::PerPair,
                                        .transfers = TransferMode::Buffered,
                                        .comm_init = CommInit::Lazy,
                                        .p2p = MegatronCalls::Flush,
                                        .ep_overlap = true,
                                        .ep_slots = {.early_release = true},
                                        .weight_stream = true},
                        .groups = {{.name = "dp",
                                    .members = {0, 2},
                                    .actions = {Kind::ReduceGradient},
                                    .streams = {{Kind::ReduceGradient, "side"}}},
                                   {.name = "ep",
                                    .members = {1},
                                    .actions = {Kind::DispatchForward, Kind::CombineForward},
                                    .streams = {}}},
                        .plan = {.kind = PlanKind::Te,
                                 .aliases = Aliases{.input = true},
                                 .budget = 1000,
                                 .model_chunks = {2, 1},
                                 .warm_up_keeps_outputs = true}};
  Module full{.name = "full",
              .kind = ModuleKind::GroupedMlp,
              .dtype = DataType::Fp16,
              .recipe = Recipe::Nvfp4,
              .weight_cache = WeightCache::Python};
  full.shape = {.tokens = 8,
                .hidden = 2,
                .ffn = 3,
                .groups = 4,
                .top_k = 7,
                .heads = 6,
                .kv_heads = 3,
                .head_dim = 5,
                .sequence = 2};
  full.bytes = {.input = 5,
                .output = 6,
                .activations = 7,
                .operands = 8,
                .weight = 9,
                .quantized_weight = 10};
  full.flags.bias = true;
  full.flags.input_requires_grad = false;
  full.splits = Splits::Input;
  full.main_grad = MainGrad{.shape = {4, 3}, .strides = {3, 1}};
  full.calls = 2;
  full.output_position = 3;
  full.grad_buckets = 4;
  declared.modules = {.list = {full, Module{.name = "bare"}}, .layers = {{{0, 1}, {1}}, {{1}}}};

  const auto read = read_model(model_text(declared), Limits{});
  ASSERT_TRUE(read) << model_text(declared);
  EXPECT_EQ(read->environment, declared.environment);
  EXPECT_EQ(read->groups, declared.groups);
  EXPECT_EQ(read->plan, declared.plan);
  EXPECT_EQ(read->modules, declared.modules);
}

}  // namespace
}  // namespace capo::testing

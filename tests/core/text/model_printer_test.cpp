// A configured model that is printed reads back as it was.

#include "core/text/model_printer.h"

#include "core/model/derive.h"
#include "core/model/ready_models.h"
#include "core/text/model_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

Model read(const std::string& text) {
  const auto model = read_model(text, {});
  EXPECT_TRUE(model) << text;
  return model ? *model : Model{};
}

TEST(ModelPrinter, PrintsWhatReadsBackAsItWas) {
  for (const ReadyModel& ready : ready_models()) {
    Model model{.configuration = ready.configuration};
    model.modules.list = {
        {.name = "dense", .kind = ModuleKind::TransformerLayer, .mlp = MlpKind::Dense},
        {.name = "rest", .kind = ModuleKind::GroupedMlp}};
    model.modules.layers = {{{0, 1}, {1}}, {{1, 1}}, {}};
    const std::string text =
        print_configured_model("a comment", ready.configuration, model.modules);
    derive(model);
    EXPECT_EQ(read(text), model) << text;
  }
}

TEST(ModelPrinter, PrintsEveryMemberThatIsNotAsUsual) {
  const ModelConfiguration all{.layers = 3,
                               .dense_layers = 1,
                               .hidden = 64,
                               .ffn = 96,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_size = 16,
                               .latent = LatentAttention{1, 2, 3, 4, 5},
                               .qk_norm = true,
                               .experts = 8,
                               .top_k = 2,
                               .expert_ffn = 32,
                               .shared_experts = 2,
                               .vocabulary = 100,
                               .tied_embedding = true,
                               .sequence = 128,
                               .micro_batch = 3,
                               .capacity_factor = 1.25,
                               .tensor_parallel = 2,
                               .expert_parallel = 4,
                               .expert_tensor_parallel = 1,
                               .context_parallel = 2,
                               .dtype = DataType::Fp16,
                               .recipe = Recipe::Mxfp8,
                               .weight_cache = WeightCache::Python,
                               .recompute = Recompute::Full};
  EXPECT_EQ(read(print_configured_model("", all, {})).configuration, all);
  EXPECT_EQ(read(print_configured_model("", {}, {})).configuration, ModelConfiguration{});
}

TEST(ModelPrinter, PrintsOneModuleOfAllLayersByItsName) {
  ModuleTable table;
  table.list = {{.name = "layer", .kind = ModuleKind::MoeLayer}};
  table.layers = {{{0}}};
  EXPECT_EQ(print_configured_model("c", {.hidden = 4, .dtype = DataType::Bf16}, table), R"({
  "schema": 1,
  "comment": "c",
  "configuration": {
    "hidden": 4,
    "tensor_parallel": 1,
    "context_parallel": 1,
    "dtype": "bf16",
    "recompute": "none"
  },
  "modules": {
    "layer": {
      "kind": "moe-layer"
    }
  },
  "layers": "layer"
}
)");
}

TEST(WithMembers, SetsNumbersWordsAndObjects) {
  const std::vector<ConfigurationMember> members{
      {"hidden", "8"}, {"recipe", "block"}, {"qk_norm", "true"}, {"recompute", "\"full\""}};
  const Model model =
      read(with_members(R"({"configuration": {"hidden": 4, "layers": 2}})", members));
  EXPECT_EQ(model.configuration, (ModelConfiguration{.layers = 2,
                                                     .hidden = 8,
                                                     .qk_norm = true,
                                                     .recipe = Recipe::Block,
                                                     .recompute = Recompute::Full}));
}

}  // namespace
}  // namespace capo

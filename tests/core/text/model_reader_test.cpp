#include "core/text/model_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

Model read(const std::string& text, const Limits& limits = {}) {
  return read_model(text, limits).value();
}

using Layers = std::vector<std::vector<std::vector<std::int32_t>>>;

Layers layers(const std::string& layers) {
  return read(R"({"modules":{"a":{},"b":{}},"layers":)" + layers + "}").modules.layers;
}

TEST(ModelReader, LeavesUndeclaredWhatIsLeftOut) {
  EXPECT_EQ(read("{}"), Model{});
  EXPECT_EQ(read(R"({"schema":1,"comment":[{"any":null}]})"), Model{});
  EXPECT_EQ(read(R"({"modules":{},"groups":[],"transfer":{}})"), Model{});
}

TEST(ModelReader, ReadsTheEnvironment) {
  const Model model = read(
      R"({"communicators":"per-edge","transfers":"buffered","p2p":"flush","ep_overlap":true})");
  EXPECT_EQ(model.environment, (Environment{.communicators = Communicators::PerEdge,
                                            .transfers = TransferMode::Buffered,
                                            .p2p = MegatronCalls::Flush,
                                            .ep_overlap = true}));
  EXPECT_FALSE(read(R"({"ep_overlap":false})").environment.ep_overlap);
}

TEST(ModelReader, KnowsEveryWord) {
  for (const char* word : {"independent", "chain", "loop", "v"}) {
    EXPECT_EQ(name_of(*read(std::string(R"({"topology":")") + word + "\"}").topology), word);
  }
  for (const char* word : {"per-rank", "per-pair", "per-edge"}) {
    const Model model = read(std::string(R"({"communicators":")") + word + "\"}");
    EXPECT_EQ(name_of(*model.environment.communicators), word);
  }
  for (const char* word : {"rendezvous", "buffered"}) {
    const Model model = read(std::string(R"({"transfers":")") + word + "\"}");
    EXPECT_EQ(name_of(*model.environment.transfers), word);
  }
  for (const char* word : {"batch", "overlap", "flush"}) {
    EXPECT_EQ(name_of(*read(std::string(R"({"p2p":")") + word + "\"}").environment.p2p), word);
  }
  for (const char* word :
       {"linear", "grouped-linear", "layernorm-linear", "layernorm-mlp", "grouped-mlp", "attention",
        "transformer-layer", "moe-layer", "grouped-linear-op", "basic-linear-op"}) {
    const Model model = read(std::string(R"({"modules":{"m":{"kind":")") + word + "\"}}}");
    EXPECT_EQ(name_of(*model.modules.list.at(0).kind), word);
  }
  for (const char* word : {"bf16", "fp16", "fp32"}) {
    const Model model = read(std::string(R"({"modules":{"m":{"dtype":")") + word + "\"}}}");
    EXPECT_EQ(name_of(*model.modules.list.at(0).dtype), word);
  }
  for (const char* word : {"none", "delayed", "current", "block", "mxfp8", "nvfp4"}) {
    const Model model = read(std::string(R"({"modules":{"m":{"recipe":")") + word + "\"}}}");
    EXPECT_EQ(name_of(*model.modules.list.at(0).recipe), word);
  }
  for (const char* word : {"device", "python"}) {
    const Model model = read(std::string(R"({"modules":{"m":{"weight_cache":")") + word + "\"}}}");
    EXPECT_EQ(name_of(*model.modules.list.at(0).weight_cache), word);
  }
  for (const char* word : {"host", "device", "input"}) {
    const Model model = read(std::string(R"({"modules":{"m":{"splits":")") + word + "\"}}}");
    EXPECT_EQ(name_of(*model.modules.list.at(0).splits), word);
  }
  for (const char* word : {"te", "safe"}) {
    EXPECT_EQ(name_of(*read(std::string(R"({"plan":")") + word + "\"}").plan.kind), word);
  }
}

// Files said it so before there were recipes.
TEST(ModelReader, ReadsTheTypeFp8AsARecipeAndNotesIt) {
  const Model model = read(R"({"modules":{"a":{"dtype":"fp8"},
                                          "b":{"dtype":"fp8","recipe":"mxfp8"},
                                          "c":{"recipe":"block"}},"layers":"a"})");
  const std::vector<Module>& modules = model.modules.list;
  EXPECT_EQ(modules.at(0).recipe, Recipe::Current);
  EXPECT_EQ(modules.at(1).recipe, Recipe::Mxfp8);
  for (const Module& module : modules) EXPECT_EQ(module.dtype, DataType::Bf16);
  EXPECT_EQ(model.notes,
            std::vector<std::string>{
                "the `dtype` fp8 of module `a` and 1 more is read as bf16, with recipe current "
                "unless another is declared: `recipe` says how operands are quantized"});
  EXPECT_TRUE(read(R"({"modules":{"c":{"dtype":"fp16","recipe":"block"}}})").notes.empty());
}

TEST(ModelReader, GivesTheRecipeOfAConfigurationToModulesWithout) {
  const Model model = read(R"({"configuration":{"dtype":"fp8"},"layers":"a",
                               "modules":{"a":{},"b":{"recipe":"none"}}})");
  EXPECT_EQ(model.configuration->recipe, Recipe::Current);
  EXPECT_EQ(model.modules.list.at(0).recipe, Recipe::Current);
  EXPECT_EQ(model.modules.list.at(1).recipe, Recipe::None);
  EXPECT_EQ(model.notes.size(), 1u);
}

TEST(ModelReader, ReadsStagesRankByRank) {
  const Model model = read(R"({"topology":{"stages":[[0,3],[],[2,1]]}})");
  EXPECT_EQ(model.topology, Topology::Custom);
  EXPECT_EQ(model.stages, (std::vector<std::vector<std::int32_t>>{{0, 3}, {}, {2, 1}}));
  EXPECT_TRUE(read(R"({"topology":"v"})").stages.empty());
}

TEST(ModelReader, ReadsModulesInTheOrderOfTheText) {
  const Model model = read(R"({"modules": {
      "mlp": {"kind": "grouped-mlp", "dtype": "fp16",
              "shape": {"tokens": 1, "hidden": 2147483647, "ffn": 3, "groups": 4},
              "flags": {"delay_wgrad": true, "fuse_wgrad_accumulation": true,
                        "overwrite_main_grad": true, "save_original_input": true},
              "bytes": {"input": 0, "output": 1, "activations": 2, "operands": 3,
                        "weight": 9007199254740991},
              "cost": {"forward": 0, "backward": 1.5, "weight": 2, "dispatch": 1e12,
                       "combine": -0.0, "autograd": 7, "whole": 8, "fuse": 0.25}},
      "attn": {"flags": {"delay_wgrad": false}}}, "layers": "mlp"})");
  const Module mlp{.name = "mlp",
                   .kind = ModuleKind::GroupedMlp,
                   .dtype = DataType::Fp16,
                   .shape = {.tokens = 1, .hidden = 2147483647, .ffn = 3, .groups = 4},
                   .flags = {.delay_wgrad = true,
                             .fuse_wgrad_accumulation = true,
                             .overwrite_main_grad = true,
                             .save_original_input = true},
                   .bytes = {.input = 0,
                             .output = 1,
                             .activations = 2,
                             .operands = 3,
                             .weight = 9007199254740991},
                   .cost = {.forward = 0,
                            .backward = 1.5,
                            .weight = 2,
                            .dispatch = 1e12,
                            .combine = 0,
                            .autograd = 7,
                            .whole = 8,
                            .fuse = 0.25}};
  EXPECT_EQ(model.modules.list, (std::vector<Module>{mlp, {.name = "attn"}}));
}

ModuleFlags flags(const std::string& members) {
  return read(R"({"modules":{"m":{"flags":{)" + members + "}}}}").modules.list.at(0).flags;
}

TEST(ModelReader, ReadsTheHeadsOfAnAttention) {
  const Model model = read(R"({"modules": {"attn": {"kind": "attention", "shape": {
      "tokens": 12, "hidden": 5, "heads": 6, "kv_heads": 2, "head_dim": 7, "sequence": 4}}}})");
  EXPECT_EQ(model.modules.list.at(0), (Module{.name = "attn",
                                              .kind = ModuleKind::Attention,
                                              .shape = {.tokens = 12,
                                                        .hidden = 5,
                                                        .heads = 6,
                                                        .kv_heads = 2,
                                                        .head_dim = 7,
                                                        .sequence = 4}}));
  // Half of a pair says nothing.
  EXPECT_EQ(read(R"({"modules":{"a":{"shape":{"heads":3}}}})").modules.list.at(0).shape.heads, 3);
  EXPECT_EQ(read(R"({"modules":{"a":{"shape":{"kv_heads":3,"sequence":5}}}})")
                .modules.list.at(0)
                .shape.sequence,
            5);
}

TEST(ModelReader, ReadsHowManyGroupsATokenChooses) {
  const Model model = read(R"({"modules": {"moe": {"kind": "moe-layer", "shape": {
      "tokens": 12, "hidden": 5, "ffn": 6, "groups": 7, "top_k": 2}}}})");
  EXPECT_EQ(model.modules.list.at(0),
            (Module{.name = "moe",
                    .kind = ModuleKind::MoeLayer,
                    .shape = {.tokens = 12, .hidden = 5, .ffn = 6, .groups = 7, .top_k = 2}}));
}

TEST(ModelReader, ReadsEachFlagOfAModuleIntoItsOwnMember) {
  const std::vector<std::pair<std::string, bool ModuleFlags::*>> members{
      {"delay_wgrad", &ModuleFlags::delay_wgrad},
      {"fuse_wgrad_accumulation", &ModuleFlags::fuse_wgrad_accumulation},
      {"overwrite_main_grad", &ModuleFlags::overwrite_main_grad},
      {"grad_added_to_main_grad", &ModuleFlags::grad_added_to_main_grad},
      {"zero_out_wgrad", &ModuleFlags::zero_out_wgrad},
      {"is_first_microbatch", &ModuleFlags::is_first_microbatch},
      {"wgrad_hooks", &ModuleFlags::wgrad_hooks},
      {"frozen_weight", &ModuleFlags::frozen_weight},
      {"shared_weight", &ModuleFlags::shared_weight},
      {"bias", &ModuleFlags::bias},
      {"single_weight", &ModuleFlags::single_weight},
      {"sharded_weight", &ModuleFlags::sharded_weight},
      {"single_bias", &ModuleFlags::single_bias},
      {"scale_bias", &ModuleFlags::scale_bias},
      {"save_original_input", &ModuleFlags::save_original_input},
      {"high_precision_backward", &ModuleFlags::high_precision_backward},
      {"gathered_input", &ModuleFlags::gathered_input},
      {"gathered_grad_output", &ModuleFlags::gathered_grad_output},
      {"input_requires_grad", &ModuleFlags::input_requires_grad},
      {"contiguous_input", &ModuleFlags::contiguous_input},
      {"contiguous_output", &ModuleFlags::contiguous_output},
      {"clone_param_grads", &ModuleFlags::clone_param_grads},
      {"synchronises", &ModuleFlags::synchronises},
      {"unjoined_stream", &ModuleFlags::unjoined_stream},
      {"offloaded", &ModuleFlags::offloaded},
      {"hooks", &ModuleFlags::hooks},
      {"hooks_each_call", &ModuleFlags::hooks_each_call}};
  EXPECT_EQ(members.size(), sizeof(ModuleFlags)) << "each flag is a byte";
  for (const auto& [key, member] : members) {
    ModuleFlags expected;
    EXPECT_EQ(flags("\"" + key + "\":" + (expected.*member ? "true" : "false")), expected) << key;
    expected.*member = !(expected.*member);
    EXPECT_EQ(flags("\"" + key + "\":" + (expected.*member ? "true" : "false")), expected) << key;
  }
}

TEST(ModelReader, ReadsWhatGraphsNeedToKnowOfAModule) {
  const Model model = read(R"({"modules":{"m":{
      "splits": "device", "main_grad": {"shape": [8, 2147483647], "strides": [0, 1]},
      "calls": 2, "output_position": 1, "grad_buckets": 0}}})");
  const Module module{.name = "m",
                      .splits = Splits::Device,
                      .main_grad = MainGrad{.shape = {8, 2147483647}, .strides = {0, 1}},
                      .calls = 2,
                      .output_position = 1,
                      .grad_buckets = 0};
  EXPECT_EQ(model.modules.list, std::vector<Module>{module});
  EXPECT_EQ(read(R"({"modules":{"m":{"calls":1,"output_position":0,"grad_buckets":1}}})"),
            read(R"({"modules":{"m":{}}})"))
      << "the defaults";
}

TEST(ModelReader, ReadsThePlan) {
  const PlanOptions plan = read(R"({"plan":"te","alias":["grad-output","input"],"budget":1,
                                    "model_chunks":[1,2]})")
                               .plan;
  EXPECT_EQ(plan, (PlanOptions{.kind = PlanKind::Te,
                               .aliases = Aliases{.input = true, .grad_output = true},
                               .budget = 1,
                               .model_chunks = {1, 2}}));
  EXPECT_EQ(read(R"({"budget":9007199254740991})").plan.budget, 9'007'199'254'740'991);
  EXPECT_EQ(read(R"({"budget":"80GiB"})").plan.budget, std::int64_t{80} << 30);
  EXPECT_EQ(read(R"({"budget":"1.5MB"})").plan.budget, 1'500'000);
}

TEST(ModelReader, TellsNoAliasFromNoneDeclared) {
  EXPECT_EQ(read("{}").plan.aliases, std::nullopt);
  EXPECT_EQ(read(R"({"alias":[]})").plan.aliases, Aliases{});
  EXPECT_EQ(read(R"({"alias":["input"]})").plan.aliases, Aliases{.input = true});
  EXPECT_EQ(read(R"({"alias":["grad-output"]})").plan.aliases, Aliases{.grad_output = true});
}

TEST(ModelReader, TellsByTheDepthOfNamesWhatLayersSpeakOf) {
  EXPECT_EQ(layers(R"("b")"), (Layers{{{1}}}));
  EXPECT_EQ(layers(R"(["a","b","a"])"), (Layers{{{0, 1, 0}}}));
  EXPECT_EQ(layers(R"([["a"],["a","b"]])"), (Layers{{{0}, {0, 1}}}));
  EXPECT_EQ(layers(R"([[["a"],["b"]],[["b","b"]]])"), (Layers{{{0}, {1}}, {{1, 1}}}));
  EXPECT_EQ(layers(R"([[],[["a"]],[]])"), (Layers{{}, {{0}}, {}})) << "ranks without chunks";
}

TEST(ModelReader, TakesOneModuleWithoutLayersForEveryLayer) {
  EXPECT_EQ(read(R"({"modules":{"default":{"kind":"linear"}}})"),
            read(R"({"modules":{"default":{"kind":"linear"}},"layers":"default"})"));
}

TEST(ModelReader, SortsGroupsByRankAndAction) {
  const Model model = read(R"({"groups": [
      {"name": "ep", "members": [3, 0], "actions": ["combine-B", "dispatch-F"],
       "streams": {"combine-B": "c", "dispatch-F": "d"}},
      {"name": "ep", "members": [1], "actions": ["reduce", "reshard", "unshard", "combine-F",
                                                 "dispatch-B"]}]})");
  const CollectiveGroup first{
      .name = "ep",
      .members = {0, 3},
      .actions = {Kind::DispatchForward, Kind::CombineBackward},
      .streams = {{Kind::DispatchForward, "d"}, {Kind::CombineBackward, "c"}}};
  const CollectiveGroup second{.name = "ep",
                               .members = {1},
                               .actions = {Kind::CombineForward, Kind::DispatchBackward,
                                           Kind::Unshard, Kind::Reshard, Kind::ReduceGradient}};
  EXPECT_EQ(model.groups, (std::vector<CollectiveGroup>{first, second}));
}

TEST(ModelReader, LetsARankPerformDifferentActionsWithDifferentGroups) {
  EXPECT_EQ(read(R"({"groups":[{"name":"ep","members":[0,1],"actions":["dispatch-F"]},
                               {"name":"dp","members":[1,2],"actions":["reduce"]}]})")
                .groups.size(),
            2U);
}

TEST(ModelReader, ReadsWhatATransferCosts) {
  EXPECT_EQ(read(R"({"transfer":{"latency":2.5,"bandwidth":0.000001,"bytes":7}})").transfer,
            (TransferCost{.latency = 2.5, .bandwidth = 1e-6, .bytes = 7}));
  EXPECT_EQ(read(R"({"transfer":{"bandwidth":1000000000000}})").transfer.bandwidth, 1e12);
  EXPECT_EQ(read(R"({"transfer":{"crowded":1,"ahead":9007199254740991}})").transfer,
            (TransferCost{.crowded = 1, .ahead = 9007199254740991}));
  EXPECT_EQ(read(R"({"transfer":{"crowded":1000000}})").transfer.crowded, 1e6);
}

TEST(ModelReader, ReadsThePaceOfEachDevice) {
  EXPECT_EQ(read(R"({"paces":[1,0.1,10]})").paces, (std::vector<double>{1, 0.1, 10}));
  EXPECT_TRUE(read(R"({"paces":[]})").paces.empty());
}

TEST(ModelReader, ReadsTheExample) {
  std::ifstream file(CAPO_SOURCE_DIR "/examples/model.json");
  std::ostringstream text;
  text << file.rdbuf();
  const Model model = read(text.str());
  EXPECT_EQ(model.stages, (std::vector<std::vector<std::int32_t>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(model.modules.list.at(1).cost.dispatch, 85);
  EXPECT_EQ(model.modules.layers, (Layers{{{0, 1}}}));
  EXPECT_EQ(model.groups.at(0).streams.size(), 2U);
  EXPECT_EQ(model.transfer.bytes, 16'777'216);
  // Cut anywhere, it is refused with a place inside it.
  const std::string whole = text.str().substr(0, text.str().rfind('}') + 1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = read_model(whole.substr(0, size), {});
    ASSERT_FALSE(cut) << size;
    const Span span = cut.error().finding.labels.at(0).span;
    EXPECT_LE(span.offset + span.length, size);
  }
}

TEST(ModelReader, PointsAtBothOfTwo) {
  const auto second_label = [](const std::string& text) {
    const Label label = read_model(text, {}).error().finding.labels.at(1);
    return std::to_string(label.span.offset) + ": " + label.text;
  };
  EXPECT_EQ(second_label(R"({"topology":{"stages":[[0,1],[1]]}})"), "26: it stands here already");
  EXPECT_EQ(second_label(R"({"groups":[{"name":"g","members":[5,5],"actions":["reduce"]}]})"),
            "34: it is here already");
  EXPECT_EQ(
      second_label(R"({"groups":[{"name":"g","members":[5],"actions":["reduce","reduce"]}]})"),
      "48: it is here already");
  EXPECT_EQ(second_label(R"({"groups":[{"name":"g","members":[5],"actions":["reduce"]},)"
                         R"({"name":"h","members":[5],"actions":["reduce"]}]})"),
            "34: it is a member here");
}

// --- refusals of plans and modules ---------------------------------------------------------------

std::string refused(const std::string& text) {
  const auto model = read_model(text, {});
  if (model) return "";
  EXPECT_EQ(model.error().kind, Refusal::Kind::Malformed);
  const Diagnostic& finding = model.error().finding;
  const Span span = finding.labels.at(0).span;
  return finding.message + " @" + text.substr(span.offset, span.length);
}

TEST(ModelReader, RefusesWhatIsNoPlan) {
  EXPECT_EQ(refused(R"({"plan":"TE"})"), "`plan` is one of te, safe, mcore-local @\"TE\"");
  EXPECT_EQ(refused(R"({"plan":null})"), "`plan` is one of te, safe, mcore-local @null");
  EXPECT_EQ(refused(R"({"alias":"input"})"),
            "`alias` is a string, not an array of operands @\"input\"");
  EXPECT_EQ(refused(R"({"alias":["none"]})"),
            "an operand of `alias` is one of input, grad-output @\"none\"");
  EXPECT_EQ(refused(R"({"alias":["input","input"]})"), "`input` is twice in `alias` @\"input\"");
  EXPECT_EQ(refused(R"({"budget":0})"), "`budget` must be at least 1 @0");
  EXPECT_EQ(refused(R"({"budget":9007199254740992})"),
            "`budget` must be at most 9007199254740991 @9007199254740992");
  EXPECT_EQ(refused(R"({"budget":1.5})"), "`budget` is a float, not a whole number @1.5");
  EXPECT_EQ(refused(R"({"budget":"80"})"),
            "`budget`: `80` is no size: write a number and B, KiB, MiB, GiB, TiB, kB, MB or GB, as "
            "in 80GiB @\"80\"");
  EXPECT_EQ(refused(R"({"budget":"0.5B"})"), "`budget`: `0.5B` is less than a byte @\"0.5B\"");
  EXPECT_EQ(refused(R"({"model_chunks":2})"),
            "`model_chunks` is a number, not an array of whole numbers @2");
  EXPECT_EQ(refused(R"({"model_chunks":[]})"), "`model_chunks` is empty @[]");
  EXPECT_EQ(refused(R"({"model_chunks":[1,0]})"),
            "an item of `model_chunks` must be at least 1 @0");
}

TEST(ModelReader, ReadsTheDeviceAndItsLibrary) {
  const Model model = read(R"({"architecture":"hopper","cublaslt":"13.4"})");
  EXPECT_EQ(model.environment.architecture, Architecture::Hopper);
  EXPECT_EQ(model.environment.cublaslt, 1304);
  EXPECT_EQ(read(R"({"cublaslt":"9.12"})").environment.cublaslt, 912);
  EXPECT_EQ(refused(R"({"architecture":"ada"})"),
            "`architecture` is one of hopper, blackwell @\"ada\"");
  for (const char* text : {"13", "13.", ".4", "13.4.1", "133.4", "13.x", ""})
    EXPECT_NE(refused(std::string(R"({"cublaslt":")") + text + "\"}"), "") << text;
  EXPECT_EQ(refused(R"({"cublaslt":13.4})"), "`cublaslt` is no version such as \"13.4\" @13.4");
}

TEST(ModelReader, ReadsTheRanksThatReduceMagnitudes) {
  EXPECT_EQ(read(R"({"amax_group":[3,0]})").environment.amax_group,
            (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(refused(R"({"amax_group":[3,0,3]})"), "rank 3 is twice in `amax_group` @[3,0,3]");
  EXPECT_EQ(refused(R"({"amax_group":[3]})"), "`amax_group` is of two ranks at least @[3]");
  EXPECT_EQ(refused(R"({"amax_group":0})"),
            "`amax_group` is a number, not an array of whole numbers @0");
}

TEST(ModelReader, RefusesWhatNoModuleIs) {
  const auto module = [](const std::string& members) {
    return refused(R"({"modules":{"m":{)" + members + "}}}");
  };
  EXPECT_EQ(module(R"("dtype":"fp4")"), "`dtype` is one of bf16, fp16, fp32 @\"fp4\"");
  EXPECT_EQ(module(R"("splits":"cpu")"), "`splits` is one of host, device, input @\"cpu\"");
  EXPECT_EQ(module(R"("calls":1)"), "");
  EXPECT_EQ(module(R"("calls":0)"), "`calls` must be at least 1 @0");
  EXPECT_EQ(module(R"("calls":2147483647)"), "");
  EXPECT_EQ(module(R"("calls":2147483648)"), "`calls` must be at most 2147483647 @2147483648");
  EXPECT_EQ(module(R"("calls":true)"), "`calls` is a boolean, not a whole number @true");
  EXPECT_EQ(module(R"("output_position":-1)"), "`output_position` must be at least 0 @-1");
  EXPECT_EQ(module(R"("grad_buckets":-1)"), "`grad_buckets` must be at least 0 @-1");
  EXPECT_EQ(module(R"("flags":{"bias":0})"), "`flags.bias` is a number, not a boolean @0");
  EXPECT_EQ(module(R"("flags":{"synchronizes":true})"),
            "unknown key `synchronizes` @\"synchronizes\"");
}

TEST(ModelReader, RefusesALayoutThatCannotBe) {
  const auto main_grad = [](const std::string& members) {
    return refused(R"({"modules":{"m":{"main_grad":)" + members + "}}}");
  };
  EXPECT_EQ(main_grad(R"({"shape":[1],"strides":[0]})"), "");
  EXPECT_EQ(main_grad("[2,3]"), "`main_grad` is an array, not an object @[2,3]");
  EXPECT_EQ(main_grad(R"({"shape":[2]})"), "`main_grad` has no `strides` @{\"shape\":[2]}");
  EXPECT_EQ(main_grad(R"({"strides":[2]})"), "`main_grad` has no `shape` @{\"strides\":[2]}");
  EXPECT_EQ(main_grad(R"({"shape":[2],"strides":[1],"offset":0})"),
            "unknown key `offset` @\"offset\"");
  EXPECT_EQ(main_grad(R"({"shape":2,"strides":[1]})"),
            "`main_grad.shape` is a number, not an array of whole numbers @2");
  EXPECT_EQ(main_grad(R"({"shape":[],"strides":[]})"), "`main_grad.shape` is empty @[]");
  EXPECT_EQ(main_grad(R"({"shape":[2,0],"strides":[1,1]})"),
            "an item of `main_grad.shape` must be at least 1 @0");
  EXPECT_EQ(main_grad(R"({"shape":[2147483648],"strides":[1]})"),
            "an item of `main_grad.shape` must be at most 2147483647 @2147483648");
  EXPECT_EQ(main_grad(R"({"shape":[2],"strides":[-1]})"),
            "an item of `main_grad.strides` must be at least 0 @-1");
  EXPECT_EQ(main_grad(R"({"shape":[2],"strides":[1.5]})"),
            "an item of `main_grad.strides` is a float, not a whole number @1.5");
  EXPECT_EQ(main_grad(R"({"shape":[2,3],"strides":[3]})"),
            "`main_grad` has strides for 1 dimensions, but its shape has 2 @[3]");
}

TEST(ModelReader, RefusesALayoutThatIsTooLargeToCount) {
  const auto main_grad = [](const std::string& members) {
    return refused(R"({"modules":{"m":{"main_grad":)" + members + "}}}");
  };
  // 2^30 * 2^22 = 2^52, and twice that is 2^53.
  EXPECT_EQ(main_grad(R"({"shape":[1073741824,4194304],"strides":[0,0]})"), "");
  const std::string product = R"({"shape":[1073741824,4194304,2],"strides":[0,0,0]})";
  EXPECT_EQ(main_grad(product), "`main_grad` is larger than 9007199254740991 elements @" + product);
  // The last element is the first plus the stride.
  EXPECT_EQ(main_grad(R"({"shape":[2],"strides":[9007199254740990]})"), "");
  const std::string reach = R"({"shape":[2],"strides":[9007199254740991]})";
  EXPECT_EQ(main_grad(reach), "`main_grad` is larger than 9007199254740991 elements @" + reach);
  EXPECT_EQ(main_grad(R"({"shape":[1],"strides":[9007199254740991]})"), "");
}

// --- limits --------------------------------------------------------------------------------------

std::string limit(const std::string& text, const Limits& limits) {
  const auto model = read_model(text, limits);
  if (model) return "";
  EXPECT_EQ(model.error().kind, Refusal::Kind::Limit);
  const Diagnostic& finding = model.error().finding;
  EXPECT_EQ(finding.rule, "I02");
  const Span span = finding.labels.at(0).span;
  return finding.message + " @" + text.substr(span.offset, span.length) + " " + finding.help.text;
}

TEST(ModelReader, HoldsItselfToTheLimitOfRanks) {
  const std::string flag = " raise the limit with --max-ranks";
  const std::string stages = R"({"topology":{"stages":[[0],[1],[2]]}})";
  EXPECT_EQ(limit(stages, {.ranks = 3}), "");
  EXPECT_EQ(limit(stages, {.ranks = 2}), "more than 2 ranks @[2]" + flag);
  const std::string paces = R"({"paces":[1,2,3]})";
  EXPECT_EQ(limit(paces, {.ranks = 3}), "");
  EXPECT_EQ(limit(paces, {.ranks = 2}), "more than 2 ranks @3" + flag);
  const std::string of_ranks = R"({"modules":{"a":{}},"layers":[[["a"]],[],[["a"]]]})";
  EXPECT_EQ(limit(of_ranks, {.ranks = 3}), "");
  EXPECT_EQ(limit(of_ranks, {.ranks = 2}), "more than 2 ranks @[[\"a\"]]" + flag);
  const std::string group = R"({"groups":[{"name":"g","members":[2],"actions":["reduce"]}]})";
  EXPECT_EQ(limit(group, {.ranks = 3}), "");
  EXPECT_EQ(limit(group, {.ranks = 2}), "a member is beyond the limit of 2 ranks @2" + flag);
  const std::string huge =
      R"({"groups":[{"name":"g","members":[99999999999999999999],"actions":["reduce"]}]})";
  EXPECT_EQ(limit(huge, {}),
            "a member is beyond the limit of 65536 ranks @99999999999999999999" + flag);
}

TEST(ModelReader, HoldsItselfToTheLimitOfCounts) {
  const std::string flag = " raise the limit with --max-count";
  const std::string stages = R"({"topology":{"stages":[[0,1,2,3]]}})";
  EXPECT_EQ(limit(stages, {.counts = 3}), "");
  EXPECT_EQ(limit(stages, {.counts = 2}), "a stage is above the limit of 2 @3" + flag);
  const std::string modules = R"({"modules":{"a":{},"b":{},"c":{}},"layers":"a"})";
  EXPECT_EQ(limit(modules, {.counts = 3}), "");
  EXPECT_EQ(limit(modules, {.counts = 2}), "more than 2 modules @\"c\"" + flag);
  const std::string of_layers = R"({"modules":{"a":{}},"layers":["a","a","a"]})";
  EXPECT_EQ(limit(of_layers, {.counts = 3}), "");
  EXPECT_EQ(limit(of_layers, {.counts = 2}), "more than 2 layers @\"a\"" + flag);
  const std::string over_ranks = R"({"modules":{"a":{}},"layers":[[["a"]],[["a"]],[["a"]]]})";
  EXPECT_EQ(limit(over_ranks, {.counts = 3}), "");
  EXPECT_EQ(limit(over_ranks, {.counts = 2}), "more than 2 chunks @[\"a\"]" + flag);
  EXPECT_EQ(limit(R"({"model_chunks":[3,3]})", {.counts = 3}), "");
  EXPECT_EQ(limit(R"({"model_chunks":[3,3]})", {.counts = 2}),
            "an item of `model_chunks` is above the limit of 2 @3" + flag);
  const std::string groups = R"({"groups":[{"name":"g","members":[0],"actions":["reduce"]},)"
                             R"({"name":"h","members":[0],"actions":["unshard"]}]})";
  EXPECT_EQ(limit(groups, {.counts = 2}), "");
  EXPECT_TRUE(limit(groups, {.counts = 1}).starts_with("more than 1 groups @{\"name\":\"h\""));
}

TEST(ModelReader, HoldsItselfToTheLimitsOfBytesAndDepth) {
  EXPECT_EQ(limit(R"({"ep_overlap":true})", {.bytes = 19}), "");
  EXPECT_EQ(limit(R"({"ep_overlap":true})", {.bytes = 18}),
            "the input has more than 18 bytes @ raise the limit with --max-bytes");
  EXPECT_EQ(limit(R"({"comment":[[1]]})", {.depth = 3}), "");
  EXPECT_EQ(limit(R"({"comment":[[1]]})", {.depth = 2}),
            "the JSON is nested more than 2 deep @[ raise the limit with --max-depth");
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(read_model(R"({"layers":)" + deep, {}));
}

// --- a topology alone ----------------------------------------------------------------------------

TEST(TopologyReader, ReadsTheStagesOfEachRank) {
  const std::vector<std::vector<std::int32_t>> stages{{0, 3}, {1, 2}};
  EXPECT_EQ(read_topology(R"({"schema":1,"stages":[[0,3],[1,2]]})", {}).value(), stages);
  EXPECT_EQ(read_topology(R"({"comment":"v","stages":[[0,3],[1,2]]})", {}).value(), stages);
}

TEST(TopologyReader, RefusesTheRest) {
  const auto refusal = [](const std::string& text, const Limits& limits = {}) {
    const auto stages = read_topology(text, limits);
    if (stages) return std::string();
    const Diagnostic& finding = stages.error().finding;
    const Span span = finding.labels.at(0).span;
    return finding.message + " @" + text.substr(span.offset, span.length);
  };
  EXPECT_EQ(refusal("[[0,3],[1,2]]"), "the topology is an array, not an object @[[0,3],[1,2]]");
  EXPECT_EQ(refusal("{}"), "the topology has no `stages` @{}");
  EXPECT_EQ(refusal(R"({"schema":2,"stages":[[0]]})"), "this capo reads schema 1 @2");
  EXPECT_EQ(refusal(R"({"stage":[[0]]})"), "unknown key `stage` @\"stage\"");
  EXPECT_EQ(refusal(R"({"topology":"loop","stages":[[0]]})"),
            "unknown key `topology` @\"topology\"");
  EXPECT_EQ(refusal(R"({"stages":[[0],[0]]})"), "stage 0 stands twice @0");
  EXPECT_EQ(refusal(R"({"stages":[[0],[3]]})"), "stage 3 is here, but stage 1 is on no rank @3");
  EXPECT_EQ(refusal(R"({"stages":[[0],[1]],"stages":[]})"),
            "the key `stages` occurs twice in one object @\"stages\"");
  EXPECT_EQ(refusal(R"({"stages":[[0],[1]]})", {.ranks = 1}), "more than 1 ranks @[1]");
  EXPECT_EQ(refusal("{"),
            "not valid JSON: syntax error while parsing object key - unexpected end of input; "
            "expected string literal @");
}

TEST(ModelReader, GivesModulesWhatFollowsFromTheConfiguration) {
  const auto model = read_model(
      R"({"modules": {"mlp": {"kind": "layernorm-mlp", "bytes": {"weight": 5}}}, "layers": "mlp",
          "configuration": {"hidden": 4, "ffn": 8, "sequence": 2, "micro_batch": 1,
                            "dtype": "bf16"}})",
      {});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->configuration->ffn, 8);
  const Module& mlp = model->modules.list.front();
  EXPECT_EQ(mlp.shape, (ModuleShape{.tokens = 2, .hidden = 4, .ffn = 8}));
  EXPECT_EQ(mlp.derived.input, 16);
  EXPECT_EQ(mlp.bytes, (ModuleBytes{.weight = 5}));
}

}  // namespace
}  // namespace capo

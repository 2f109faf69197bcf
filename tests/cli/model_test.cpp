// `capo model` as a user meets it, and what checks and simulations make of its files.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

std::string out_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run_capo(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

std::string usage_of(const std::vector<std::string>& arguments, int code = 2) {
  const Outcome outcome = run_capo(arguments);
  EXPECT_EQ(outcome.exit_code, code);
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(ModelCommand, ListsTheModelsThatThereAre) {
  const std::string list = out_of({"model", "--list"});
  for (const char* name : {"deepseek-v3", "qwen3-235b", "mixtral-8x7b", "llama3-70b", "tiny"}) {
    EXPECT_NE(list.find(name), std::string::npos) << list;
  }
}

TEST(ModelCommand, WritesAFileForEveryModelOnItsList) {
  for (const char* name : {"deepseek-v3", "qwen3-235b", "mixtral-8x7b", "llama3-70b", "tiny"}) {
    const ScratchFolder folder;
    const std::string file = (folder.path() / "model.json").string();
    EXPECT_EQ(out_of({"model", name, "-o", file}), "");
    const std::string report =
        out_of({"check", "--order", "[1, 1, -1, -1]", "--plan", "te", "--model", file});
    EXPECT_NE(report.find("iB of buffers"), std::string::npos) << name << ": " << report;
  }
}

TEST(ModelCommand, SetsMembersOfTheConfiguration) {
  const json model = json::parse(
      out_of({"model", "deepseek-v3", "--set", "expert_parallel=8", "--set", "recompute=full"}));
  EXPECT_EQ(model["configuration"]["expert_parallel"], 8);
  EXPECT_EQ(model["configuration"]["recompute"], "full");
  const std::string uneven = usage_of({"model", "deepseek-v3", "--set", "expert_parallel=7"}, 3);
  EXPECT_NE(uneven.find("`configuration.experts` is 256, no multiple of `expert_parallel`, 7"),
            std::string::npos)
      << uneven;
  const std::string unknown = usage_of({"model", "deepseek-v3", "--set", "expert_paralel=8"}, 3);
  EXPECT_NE(unknown.find("did you mean `expert_parallel`?"), std::string::npos) << unknown;
  const std::string shapeless = usage_of({"model", "deepseek-v3", "--set", "sequence"});
  EXPECT_NE(shapeless.find("expert_parallel=8"), std::string::npos) << shapeless;
}

TEST(ModelCommand, SpreadsLayersOverStages) {
  const json model = json::parse(out_of({"model", "tiny", "--pp", "2", "--vp", "1"}));
  EXPECT_EQ(model["layers"], json::parse(R"([[["dense", "experts"]], [["experts", "experts"]]])"));
  const json looped = json::parse(out_of({"model", "tiny", "--pp", "3", "--vp", "1"}));
  EXPECT_EQ(looped["layers"],
            json::parse(R"([[["dense", "experts"]], [["experts"]], [["experts"]]])"));
  const json chunks = json::parse(out_of({"model", "tiny", "--pp", "2", "--vp", "2"}));
  EXPECT_EQ(chunks["layers"],
            json::parse(R"([[["dense"], ["experts"]], [["experts"], ["experts"]]])"));
  const std::string many = usage_of({"model", "tiny", "--pp", "5"});
  EXPECT_NE(many.find("5 stages, but there are 4 layers"), std::string::npos) << many;
}

TEST(ModelCommand, RefusesWhatIsNoModel) {
  EXPECT_NE(usage_of({"model", "deepseek-v2"}).find("did you mean `deepseek-v3`?"),
            std::string::npos);
  EXPECT_NE(usage_of({"model", "gpt"}).find("`capo model --list` lists them"), std::string::npos);
  EXPECT_NE(usage_of({"model"}).find("the name of a model, or --list"), std::string::npos);
  const ScratchFolder folder;
  const std::string bare = folder.write("bare.json", "{}");
  EXPECT_NE(usage_of({"model", bare}).find("has no `configuration`"), std::string::npos);
  const std::string file = folder.write("model.json", R"({"configuration": {}})");
  EXPECT_NE(usage_of({"model", file, "--set", "hidden=8"}).find("write the member into the file"),
            std::string::npos);
}

TEST(ModelCommand, WritesTheRecipeOfTheModelOrAnother) {
  const auto written = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "model");
    return json::parse(out_of(arguments))["configuration"];
  };
  const json own = written({"deepseek-v3"});
  EXPECT_EQ(own["recipe"], "block");
  EXPECT_EQ(own["weight_cache"], "device");
  const json none = written({"deepseek-v3", "--recipe", "none"});
  EXPECT_EQ(none["recipe"], "none");
  EXPECT_FALSE(none.contains("weight_cache"));
  EXPECT_FALSE(written({"qwen3-235b"}).contains("recipe"));
  const json other = written({"qwen3-235b", "--recipe", "mxfp8"});
  EXPECT_EQ(other["recipe"], "mxfp8");
  EXPECT_EQ(other["weight_cache"], "device");
  EXPECT_NE(usage_of({"model", "tiny", "--recipe", "fp8"}).find("mxfp8"), std::string::npos);
  const ScratchFolder folder;
  const std::string file = folder.write("model.json", R"({"configuration": {}})");
  EXPECT_NE(usage_of({"model", file, "--recipe", "none"}).find("write `recipe` into the file"),
            std::string::npos);
  const std::string quantized = out_of({"model", "deepseek-v3", "--format", "text"});
  EXPECT_NE(quantized.find("[32768, 7168] in block"), std::string::npos) << quantized;
}

TEST(ModelCommand, ListsThePartsOfAModule) {
  const std::string text = out_of({"model", "deepseek-v3", "--recipe", "none", "--format", "text"});
  for (const char* part :
       {"671.03 billion parameters", "37.55 billion", "dispatched tokens", "448 MiB",
        "[32768, 7168] x 2", "kept from F to B", "left for a delayed W"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  const json inventory = json::parse(out_of({"model", "tiny", "--format", "json"}));
  EXPECT_EQ(inventory["parameters"]["embedding"], 16384);
  ASSERT_EQ(inventory["modules"].size(), 2U);
  const json& dense = inventory["modules"][0];
  EXPECT_EQ(dense["mlp"], "dense");
  std::int64_t kept = 0;
  for (const json& tensor : dense["tensors"]) {
    std::int64_t bytes = tensor["width"];
    for (const json& size : tensor["shape"]) bytes *= size.get<std::int64_t>();
    EXPECT_EQ(tensor["bytes"], bytes);
    if (tensor["use"] == "kept") kept += bytes;
  }
  EXPECT_EQ(dense["bytes"]["activations"], kept);
}

TEST(ModelCommand, NamesWhatAFileLeavesUndeclared) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "model.json", R"({"configuration": {"hidden": 64, "sequence": 8, "micro_batch": 1,
                                          "dtype": "bf16", "experts": 4, "top_k": 1},
                        "modules": {"moe": {"kind": "moe-layer"}}, "layers": "moe"})");
  const std::string text = out_of({"model", file, "--format", "text"});
  EXPECT_NE(text.find("moe (moe-layer): `configuration.expert_ffn` is undeclared"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("`configuration.layers` is undeclared"), std::string::npos) << text;
  const json inventory = json::parse(out_of({"model", file, "--format", "json"}));
  EXPECT_EQ(inventory["modules"][0]["lacks"], "configuration.expert_ffn");
}

// A plan of these modules is in GiB from two flags alone.
TEST(ModelConfig, GivesModulesOfTheCommandLineTheirBytes) {
  for (const char* kind : {"grouped-mlp", "moe-layer", "transformer-layer", "layernorm-mlp"}) {
    const Outcome outcome = run_capo({"check", "--order", "[1, 1, -1, -1]", "--plan", "safe",
                                      "--modules", kind, "--model-config", "deepseek-v3"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("GiB of buffers"), std::string::npos) << kind << outcome.out;
  }
}

TEST(ModelConfig, BringsItsModulesWhereNoneAreDeclared) {
  const std::string report =
      out_of({"check", "--order", "[1, -1]", "--plan", "te", "--model-config", "mixtral-8x7b"});
  EXPECT_NE(report.find("module layer"), std::string::npos) << report;
}

TEST(ModelConfig, HasANameOfTheListOrAFile) {
  const std::string unknown =
      usage_of({"check", "--order", "[1, -1]", "--model-config", "deepseek-v4"});
  EXPECT_NE(unknown.find("did you mean `deepseek-v3`?"), std::string::npos) << unknown;
  const ScratchFolder folder;
  const std::string file = folder.write("model.json", out_of({"model", "tiny"}));
  const std::string twice =
      usage_of({"check", "--order", "[1, -1]", "--model", file, "--model-config", "deepseek-v3"});
  EXPECT_NE(twice.find("the model file has a `configuration` itself"), std::string::npos) << twice;
}

TEST(Budget, NamesModuleAndMemberWhoseSizeIsUndeclared) {
  const auto warning = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"check", "--order",  "[1, -1]", "--plan",
                                       "te",    "--budget", "80GiB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_capo(arguments).out;
  };
  const std::string bare = warning({"--modules", "grouped-mlp"});
  EXPECT_NE(bare.find("module `grouped-mlp` declares no `dtype`"), std::string::npos) << bare;
  EXPECT_NE(bare.find("--model-config"), std::string::npos) << bare;
  const std::string linear = warning({"--modules", "linear", "--model-config", "deepseek-v3"});
  EXPECT_NE(linear.find("module `linear` declares no `shape.tokens`"), std::string::npos) << linear;
  EXPECT_NE(warning({}).find("a layer of rank 0 has no module"), std::string::npos) << warning({});
  const ScratchFolder folder;
  const std::string file = folder.write(
      "model.json", R"({"configuration": {"hidden": 64, "sequence": 8, "micro_batch": 1,
                                          "dtype": "bf16", "experts": 4, "top_k": 1},
                        "modules": {"moe": {"kind": "moe-layer"}}, "layers": "moe"})");
  const std::string lacking = warning({"--model", file});
  EXPECT_NE(lacking.find("module `moe` declares no `configuration.expert_ffn`"), std::string::npos)
      << lacking;
}

}  // namespace
}  // namespace capo

// The flags that declare a plan, as a user gives them. What a flag was read as shows in whether it
// agrees with a model file: both may state the same value, and no other.

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

class PlanFlags : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("two.order",
                  "capo 1\nranks 2\nchunks 2\nmicrobatches 1\n"
                  "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n");
  }

  [[nodiscard]] Outcome check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"check", "two.order"});
    return run_capo(arguments, {.directory = folder_.path()});
  }
  [[nodiscard]] Outcome check_with(const std::string& model,
                                   std::vector<std::string> arguments) const {
    folder_.write("model.json", model);
    arguments.insert(arguments.end(), {"--model", "model.json"});
    return check(std::move(arguments));
  }

  void expect_taken(const std::vector<std::string>& arguments) const {
    const Outcome outcome = check(arguments);
    EXPECT_LE(outcome.exit_code, 1) << ::testing::PrintToString(arguments) << outcome.err;
  }
  void expect_usage(const Outcome& outcome, const std::string& message) const {
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_EQ(outcome.out, "") << message;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << message << "\n" << outcome.err;
  }
  void expect_usage(const std::vector<std::string>& arguments, const std::string& message) const {
    expect_usage(check(arguments), message);
  }

  // Whether --budget `size` is what a model file states as `bytes`.
  [[nodiscard]] bool is_budget(const std::string& size, const std::string& bytes) const {
    const Outcome outcome =
        check_with(R"({"plan":"safe","budget":)" + bytes + "}", {"--budget", size});
    if (outcome.exit_code != 2) return true;
    EXPECT_NE(outcome.err.find("--budget: contradicts"), std::string::npos) << outcome.err;
    return false;
  }

  ScratchFolder folder_;
};

TEST_F(PlanFlags, WriteACertificateOfCaposPlanAlone) {
  const Outcome written = check({"--plan", "safe", "--plan-out", "-", "-o", "report.txt"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(json::parse(written.out).at("plan"), "safe");
  expect_usage({"--plan-out", "plan.json"}, "needs --plan");
  expect_usage({"two.order", "--plan", "safe", "--plan-out", "plan.json"}, "several are given");
  expect_usage({"--plan", "safe", "--plan-out", "plan.json", "--replay", "two.order"}, "--replay");
  folder_.write("two.order", "capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: B1.0 F1.0\n");
  expect_usage({"--plan", "safe", "--plan-out", "plan.json"}, "replayed as captured");
  folder_.write("two.order", "capo 1\nmicrobatches 1\nrank 0: B1.0 F1.0\n");
  const Outcome rejected = check({"--plan", "safe", "--plan-out", "-", "-o", "report.txt"});
  EXPECT_EQ(rejected.exit_code, 1);
  EXPECT_EQ(rejected.out, "") << "there is no plan of what is rejected";
}

TEST_F(PlanFlags, HaveAGroupOfTheirOwnInTheHelpOfWhatJudges) {
  const std::string group = "Plan (buffers, graphs and gradients)";
  for (const char* command : {"check", "graph"}) {
    EXPECT_NE(run_capo({command, "--help"}).out.find(group), std::string::npos) << command;
  }
  EXPECT_EQ(run_capo({"convert", "--help"}).out.find(group), std::string::npos);
}

// --- --plan --------------------------------------------------------------------------------------

TEST_F(PlanFlags, APlanIsTesOrSafe) {
  expect_taken({"--plan", "te"});
  expect_taken({"--plan", "safe"});
  expect_usage({"--plan", "megatron"}, "--plan");
  expect_usage({"--plan", ""}, "--plan");
}

TEST_F(PlanFlags, APlanMayRepeatTheModelFileAndNotContradictIt) {
  EXPECT_LE(check_with(R"({"plan":"te"})", {"--plan", "te"}).exit_code, 1);
  expect_usage(check_with(R"({"plan":"te"})", {"--plan", "safe"}),
               "--plan: contradicts what the model file states");
}

// --- --alias -------------------------------------------------------------------------------------

TEST_F(PlanFlags, AliasNamesOperandsInAnyOrder) {
  const std::string both = R"({"plan":"te","alias":["input","grad-output"]})";
  EXPECT_LE(check_with(both, {"--alias", "input,grad-output"}).exit_code, 1);
  EXPECT_LE(check_with(both, {"--alias", "grad-output,input"}).exit_code, 1);
  for (const char* other : {"input", "grad-output", "none"}) {
    expect_usage(check_with(both, {"--alias", other}), "--alias: contradicts");
  }
  EXPECT_LE(check_with(R"({"plan":"te","alias":["input"]})", {"--alias", "input"}).exit_code, 1);
  EXPECT_LE(
      check_with(R"({"plan":"te","alias":["grad-output"]})", {"--alias", "grad-output"}).exit_code,
      1);
}

TEST_F(PlanFlags, AliasNoneDeclaresAndUndeclaredDoesNot) {
  const std::string none = R"({"plan":"te","alias":[]})";
  EXPECT_LE(check_with(none, {"--alias", "none"}).exit_code, 1);
  expect_usage(check_with(none, {"--alias", "input"}), "--alias: contradicts");
  EXPECT_LE(check_with(R"({"plan":"te"})", {"--alias", "input"}).exit_code, 1);
}

TEST_F(PlanFlags, AliasRefusesWhatIsNoOperand) {
  const std::string words = " is no operand; take input, grad-output or both, or none alone";
  expect_usage({"--plan", "te", "--alias", "grad"}, "--alias: `grad`" + words);
  expect_usage({"--plan", "te", "--alias", "none,input"}, "--alias: `none`" + words);
  expect_usage({"--plan", "te", "--alias", "input,none"}, "--alias: `none`" + words);
  for (const char* list : {"", "input,", ",input", "input,,grad-output"}) {
    expect_usage({"--plan", "te", "--alias", list}, words);
  }
  expect_usage({"--plan", "te", "--alias", "input,input"}, "--alias: names input twice");
}

TEST_F(PlanFlags, AliasNeedsAPlanWhicheverItIs) {
  expect_usage({"--alias", "input"}, "--alias: needs --plan");
  expect_taken({"--alias", "input", "--plan", "te"});
  expect_taken({"--alias", "input", "--plan", "safe"});
}

// --- --modules -----------------------------------------------------------------------------------

TEST_F(PlanFlags, ModulesTakesEveryKind) {
  for (const char* kind :
       {"linear", "grouped-linear", "layernorm-linear", "layernorm-mlp", "grouped-mlp", "attention",
        "transformer-layer", "moe-layer", "grouped-linear-op", "basic-linear-op"}) {
    expect_taken({"--modules", kind});
  }
}

TEST_F(PlanFlags, ModulesRefusesOtherWords) {
  expect_usage({"--modules", "linaer"},
               "--modules: there is no module kind `linaer`; did you mean "
               "`linear`?");
  expect_usage({"--modules", "linear,groupd-mlp"}, "did you mean `grouped-mlp`?");
  expect_usage({"--modules", "router"},
               "there is no module kind `router`; there are linear, grouped-linear, "
               "layernorm-linear, layernorm-mlp, grouped-mlp, attention, transformer-layer, "
               "moe-layer, grouped-linear-op, basic-linear-op");
  for (const char* list : {"", "linear,", ",linear", "linear, linear"}) {
    expect_usage({"--modules", list}, "--modules: there is no module kind");
  }
}

TEST_F(PlanFlags, ModulesHasAsManyKindsAsEachRankHasChunksOrOne) {
  expect_taken({"--modules", "linear"});
  expect_taken({"--modules", "linear,linear"});
  expect_taken({"--modules", "linear,grouped-mlp"});
  expect_usage({"--modules", "linear,linear,linear"},
               "--modules: names 3 kinds, but rank 0 has 2 chunks");
  const auto list = [](const std::string& order, const std::string& kinds) {
    return run_capo({"check", "--order", order, "--modules", kinds});
  };
  EXPECT_EQ(list("[1, -1]", "linear").exit_code, 0);
  expect_usage(list("[1, -1]", "linear,linear"),
               "--modules: names 2 kinds, but rank 0 has 1 chunk");
  expect_usage(list("[1, 2, 3, -3, -2, -1]", "linear,linear"),
               "--modules: names 2 kinds, but rank 0 has 3 chunks");
  expect_usage(list("capo 1\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 B1.0", "linear,linear"),
               "--modules: names 2 kinds, but rank 1 has 1 chunk");
}

TEST_F(PlanFlags, ModulesContradictsAModelFileThatDeclaresThem) {
  const std::string message = "--modules: the model file declares modules itself";
  expect_usage(
      check_with(R"({"modules":{"a":{"kind":"linear"}},"layers":"a"})", {"--modules", "linear"}),
      message);
  expect_usage(check_with(R"({"modules":{"linear":{}}})", {"--modules", "linear"}), message);
  EXPECT_EQ(check_with(R"({"modules":{}})", {"--modules", "linear"}).exit_code, 0);
  EXPECT_EQ(check_with("{}", {"--modules", "linear"}).exit_code, 0);
}

// --- --budget ------------------------------------------------------------------------------------

TEST_F(PlanFlags, ABudgetHasAUnit) {
  EXPECT_TRUE(is_budget("1B", "1"));
  EXPECT_TRUE(is_budget("3kB", "3000"));
  EXPECT_TRUE(is_budget("3MB", "3000000"));
  EXPECT_TRUE(is_budget("80GB", "80000000000"));
  EXPECT_TRUE(is_budget("3KiB", "3072"));
  EXPECT_TRUE(is_budget("3MiB", "3145728"));
  EXPECT_TRUE(is_budget("80GiB", "85899345920"));
  EXPECT_TRUE(is_budget("3TiB", "3298534883328"));
  EXPECT_FALSE(is_budget("80GiB", "85899345919"));
  EXPECT_FALSE(is_budget("80GiB", "85899345921"));
}

TEST_F(PlanFlags, ABudgetIsRoundedDownToBytes) {
  EXPECT_TRUE(is_budget("1.5GiB", "1610612736"));
  EXPECT_TRUE(is_budget("0.5KiB", "512"));
  EXPECT_TRUE(is_budget("0.1KiB", "102"));
  EXPECT_TRUE(is_budget("2.0005kB", "2000"));
  EXPECT_TRUE(is_budget("1.999B", "1"));
  EXPECT_TRUE(is_budget("0.99999999999999999999999999999999999999TiB", "1099511627775"));
}

TEST_F(PlanFlags, ABudgetIsAtLeastAByteAndFits) {
  for (const char* none : {"0B", "0GiB", "0.0TiB", "0.9B", "0.0009kB"}) {
    expect_usage({"--plan", "te", "--budget", none}, "` is less than a byte");
  }
  expect_usage({"--plan", "te", "--budget", "0GiB"}, "--budget: `0GiB` is less than a byte");
  for (const char* most : {"9223372036854775807B", "8388607TiB", "8388607.9999999999999999999TiB",
                           "000000000000000000000000001B"}) {
    expect_taken({"--plan", "te", "--budget", most});
  }
  for (const char* more : {"9223372036854775808B", "8388608TiB", "18446744073709551616B",
                           "9999999999999999999999kB"}) {
    expect_usage({"--plan", "te", "--budget", more},
                 std::string("--budget: `") + more + "` is above 9223372036854775807 bytes");
  }
}

TEST_F(PlanFlags, ABudgetThatIsNoSizeIsRefused) {
  for (const char* size : {"", "GiB", "80", "80 GiB", "80gib", "80G", "1.GiB", ".5GiB", "1.5.5GiB",
                           "1e9B", "+1B", "0x1B", "1,5GiB", "80GiBs", "80GiB ", "inf", "nanB"}) {
    expect_usage({"--plan", "te", "--budget", size},
                 " is no size: write a number and B, KiB, MiB, GiB, TiB, kB, MB or GB");
  }
  expect_usage({"--plan", "te", "--budget=-1B"}, "--budget: `-1B` is no size");
}

TEST_F(PlanFlags, ABudgetNeedsAPlanInFlagsOrFile) {
  expect_usage({"--budget", "1GiB"}, "--budget: needs --plan");
  expect_usage(check_with(R"({"budget":1})", {"--budget", "1B"}), "--budget: needs --plan");
  EXPECT_LE(check_with(R"({"plan":"safe"})", {"--budget", "1GiB"}).exit_code, 1);
  EXPECT_EQ(check_with(R"({"budget":1})", {}).exit_code, 0) << "a file may state more than is used";
}

// --- --possible ----------------------------------------------------------------------------------

TEST_F(PlanFlags, PossibleNeedsTesPlan) {
  expect_taken({"--plan", "te", "--possible", "warn"});
  expect_usage({"--possible", "warn"}, "--possible: needs --plan te");
  expect_usage({"--plan", "safe", "--possible", "error"}, "--possible: needs --plan te");
}

// --- --te-version --------------------------------------------------------------------------------

TEST_F(PlanFlags, TeVersionNeedsTesPlan) {
  expect_taken({"--plan", "te", "--te-version", "2.19"});
  expect_taken({"--plan", "te", "--te-version", "2.20"});
  expect_usage({"--te-version", "2.19"}, "--te-version: needs --plan te");
  expect_usage({"--plan", "safe", "--te-version", "2.20"}, "--te-version: needs --plan te");
}

TEST_F(PlanFlags, TeVersionAgreesWithTheModelFile) {
  const char* const keeps = R"({"plan":"te","warm_up_keeps_outputs":true})";
  EXPECT_LE(check_with(keeps, {"--te-version", "2.19"}).exit_code, 1);
  expect_usage(check_with(keeps, {"--te-version", "2.20"}), "--te-version");
  EXPECT_LE(check_with(keeps, {"--te-version", "2.20", "--override"}).exit_code, 1);
}

// --- --model-chunks ------------------------------------------------------------------------------

TEST_F(PlanFlags, ModelChunksAddUpToTheChunksOfEachRank) {
  expect_taken({"--plan", "te", "--model-chunks", "2"});
  expect_taken({"--plan", "te", "--model-chunks", "1,1"});
  expect_usage({"--plan", "te", "--model-chunks", "1"},
               "--model-chunks: model chunks add up to 1, but rank 0 has 2 chunks");
  expect_usage({"--plan", "te", "--model-chunks", "1,2"},
               "--model-chunks: model chunks add up to 3, but rank 0 has 2 chunks");
  expect_usage({"--plan", "te", "--model-chunks", "2147483647,2147483647,4"},
               "model chunks add up to 4294967298, but rank 0 has 2 chunks");
  expect_usage(check_with(R"({"plan":"te","model_chunks":[3]})", {}),
               "--model: model chunks add up to 3, but rank 0 has 2 chunks");
  EXPECT_LE(check_with(R"({"plan":"te","model_chunks":[1,1]})", {}).exit_code, 1);
}

TEST_F(PlanFlags, ARankWithoutChunksFitsEverything) {
  const auto code = [](const std::string& order, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"check", "--order", order};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run_capo(arguments).exit_code;
  };
  const std::string order = "capo 1\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 1:";
  EXPECT_LE(code(order, {"--modules", "linear,linear"}), 1);
  EXPECT_LE(code(order, {"--plan", "te", "--model-chunks", "2"}), 1);
  EXPECT_EQ(code(order, {"--plan", "te", "--model-chunks", "1"}), 2);
}

TEST_F(PlanFlags, ModelChunksAreNumbersFromOne) {
  for (const char* list : {"0", "1,0", "-1", "1.0", "x", "1,", "", "2147483648"}) {
    expect_usage({"--plan", "te", std::string("--model-chunks=") + list}, "--model-chunks");
  }
}

TEST_F(PlanFlags, ModelChunksNeedTesPlan) {
  expect_usage({"--model-chunks", "2"}, "--model-chunks: needs --plan te");
  expect_usage({"--plan", "safe", "--model-chunks", "2"}, "--model-chunks: needs --plan te");
  EXPECT_LE(check_with(R"({"plan":"te"})", {"--model-chunks", "2"}).exit_code, 1);
  EXPECT_EQ(check_with(R"({"model_chunks":[2]})", {}).exit_code, 0);
}

TEST_F(PlanFlags, ModelChunksMayRepeatTheModelFileAndNotContradictIt) {
  const std::string model = R"({"plan":"te","model_chunks":[1,1]})";
  EXPECT_LE(check_with(model, {"--model-chunks", "1,1"}).exit_code, 1);
  expect_usage(check_with(model, {"--model-chunks", "2"}), "--model-chunks: contradicts");
}

// --- batches -------------------------------------------------------------------------------------

TEST_F(PlanFlags, OfABatchJudgeEachLine) {
  folder_.write("lines.jsonl", "{\"order\":[1,-1]}\n{\"order\":[1,2,-2,-1]}\n");
  const auto batch = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"check", "--batch", "lines.jsonl"});
    return run_capo(flags, {.directory = folder_.path()});
  };
  EXPECT_EQ(batch({"--modules", "linear"}).exit_code, 0);
  const Outcome outcome = batch({"--modules", "linear,linear"});
  EXPECT_EQ(outcome.exit_code, 3);
  const json first = json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  EXPECT_EQ(first.at("verdict"), "no-verdict");
  EXPECT_EQ(first.at("diagnostics").at(0).at("message"),
            "--modules names 2 kinds, but rank 0 has 1 chunk");
  const json second = json::parse(outcome.out.substr(outcome.out.find('\n')));
  EXPECT_NE(second.at("verdict"), "no-verdict");
  expect_usage(batch({"--budget", "1GiB"}), "--budget: needs --plan");
}

}  // namespace
}  // namespace capo

// Plans as a user asks for them: hazards in text and JSON, two files for capture and replay, a plan
// for each line of a batch, and the limits of a plan's size.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

json report(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "check");
  arguments.insert(arguments.end(), {"--format", "json"});
  return json::parse(run_capo(arguments).out);
}

TEST(PlanCommand, HazardsAreErrorsWhereAllIsDeclared) {
  const json out =
      report({"--order", "1 -1 1 -1.5 -1 -1.5", "--plan", "te", "--alias", "input,grad-output"});
  EXPECT_EQ(out.at("verdict"), "rejected");
  EXPECT_EQ(out.at("environment").at("plan"), "te");
  EXPECT_EQ(out.at("victims"), (json{{"static_input", {{1, 0}}}, {"grad_output", json::array()}}));
  EXPECT_EQ(out.at("slots"), 1);
  EXPECT_EQ(out.at("bytes"), nullptr);
  const json& hazard = out.at("hazards").at(0);
  EXPECT_EQ(hazard.at("kind"), "static-input");
  EXPECT_EQ(hazard.at("victim"), json({1, 0}));
  EXPECT_EQ(hazard.at("writer").at("action"), "F(c1,m1)");
  EXPECT_EQ(hazard.at("reader").at("action"), "W(c1,m0)");
  EXPECT_EQ(hazard.at("possible"), false);
}

TEST(PlanCommand, UndeclaredOperandsMakeWarningsWithTheSameVictims) {
  const json out = report({"--order", "1 -1 1 -1.5 -1 -1.5", "--plan", "te"});
  EXPECT_EQ(out.at("verdict"), "accepted");
  EXPECT_EQ(out.at("findings").at("warnings"), 1);
  EXPECT_EQ(out.at("victims").at("static_input"), json({{1, 0}}));
  EXPECT_EQ(out.at("hazards").at(0).at("possible"), true);
}

// A model says of the second layer what a list cannot: both commands look at it.
TEST(PlanCommand, TheLayersThatAModelNamesAreThoseOfTheOrder) {
  const ScratchFolder folder;
  const std::string model = folder.write(
      "waits.model",
      R"({"schema": 1, "plan": "te", "alias": [], "layers": [["attn", "waits"]], "modules": {
          "attn": {"kind": "linear"}, "waits": {"kind": "linear", "flags": {"synchronises": true}}}})");
  const json out = report({"--order", "1 -1", "--model", model});
  EXPECT_EQ(out.at("diagnostics").at(0).at("rule"), "C02");
  EXPECT_EQ(run_capo({"run", "--order", "1 -1", "--model", model, "--device", "host"}).exit_code,
            1);

  EXPECT_EQ(
      run_capo({"check", "--order", "1 -1", "--model", model, "--layers-per-chunk", "2"}).exit_code,
      1);
  const Outcome misfit =
      run_capo({"check", "--order", "1 -1", "--model", model, "--layers-per-chunk", "[3]"});
  EXPECT_EQ(misfit.exit_code, 2);
  EXPECT_TRUE(
      misfit.err.starts_with("error: --model: it names 2 layers of chunk 1 of rank 0, but "
                             "the input says 3 layers\n"))
      << misfit.err;
}

TEST(PlanCommand, WithoutAPlanAListThatTeCouldHurtIsWarnedOf) {
  EXPECT_EQ(report({"--order", "1 -1 1 -1.5 -1 -1.5"}).at("findings").at("warnings"), 1);
  // Nothing to hurt, and nothing that TE could capture.
  for (const char* order : {"1 1 -1 -1.5 -1 -1.5", "1 1 -1 -1 -1.5 -1.5"}) {
    const json out = report({"--order", order});
    EXPECT_EQ(out.at("findings").at("warnings"), 0) << order;
    EXPECT_EQ(out.at("hazards"), nullptr) << order;
  }
}

TEST(PlanCommand, ThePlanOfCapoHurtsNobody) {
  const json out =
      report({"--order", "1 -1 1 -1.5 -1 -1.5", "--plan", "safe", "--modules", "linear"});
  EXPECT_EQ(out.at("verdict"), "accepted");
  EXPECT_EQ(out.at("hazards"), json::array());
}

TEST(PlanCommand, BytesNeedSizes) {
  ScratchFolder folder;
  folder.write("model.json", R"({"schema": 1, "modules": {"a": {"kind": "linear", "dtype": "bf16",
      "shape": {"tokens": 1024, "hidden": 512, "ffn": 2048}, "bytes": {"weight": 4096}}},
      "layers": "a", "plan": "te"})");
  folder.write("a.te", "[1, 1, -1, -1]");
  const Outcome outcome = run_capo({"check", "a.te", "--model", "model.json", "--format", "json"},
                                   {.directory = folder.path()});
  const json rank = json::parse(outcome.out).at("bytes").at("ranks").at(0);
  constexpr int kInput = 1024 * 512 * 2;
  constexpr int kOutput = 1024 * 2048 * 2;
  EXPECT_EQ(rank.at("static_inputs"), 2 * kInput);
  EXPECT_EQ(rank.at("grad_outputs"), kOutput);
  EXPECT_EQ(rank.at("weights"), 4096);
  EXPECT_EQ(rank.at("peak"), rank.at("static_inputs").get<int>() +
                                 rank.at("grad_outputs").get<int>() + rank.at("pool").get<int>());
  EXPECT_LE(rank.at("lower_bound"), rank.at("peak"));
  EXPECT_EQ(rank.at("warm_up"), 2 * kInput + 2 * kOutput + kOutput + kInput)
      << "inputs, outputs, and the gradients of a backward";
}

TEST(PlanCommand, CaptureAndReplayComeFromTwoFiles) {
  ScratchFolder folder;
  folder.write("a.te", "[1, -1, -1.5, 1, -1, -1.5]");
  folder.write("b.te", "[1, 1, -1, -1.5, -1, -1.5]");
  const auto check = [&](const char* capture, const char* replay) {
    return run_capo(
        {"check", "--capture", capture, "--replay", replay, "--plan", "te", "--modules", "linear"},
        {.directory = folder.path()});
  };
  const Outcome hurt = check("a.te", "b.te");
  EXPECT_EQ(hurt.exit_code, 1);
  EXPECT_NE(hurt.out.find("error[Y01]"), std::string::npos) << hurt.out;
  EXPECT_NE(hurt.out.find("b.te:1:5"), std::string::npos) << hurt.out;
  EXPECT_NE(hurt.out.find("a.te:1:5"), std::string::npos) << hurt.out;
  const Outcome harmless = check("b.te", "a.te");
  EXPECT_EQ(harmless.exit_code, 0);
  EXPECT_NE(harmless.out.find("it does no harm"), std::string::npos) << harmless.out;
  EXPECT_EQ(check("a.te", "a.te").out.find("Y01"), std::string::npos);
  EXPECT_EQ(check("a.te", "absent.te").exit_code, 3);
}

TEST(PlanCommand, AReplayOfOtherRanksIsAUsageErrorAndABrokenOneIsJudgedByItself) {
  ScratchFolder folder;
  folder.write("a.te", "[1, -1]");
  folder.write("two.order", "capo 1\nranks 2\nrank 0: F1 B1\nrank 1: F1 B1\n");
  folder.write("odd.te", "[1, -1.25]");
  const auto check = [&](const char* replay) {
    return run_capo({"check", "a.te", "--replay", replay}, {.directory = folder.path()});
  };
  EXPECT_EQ(check("two.order").exit_code, 2);
  const Outcome odd = check("odd.te");
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_NE(odd.out.find("odd.te:1:5"), std::string::npos) << odd.out;
}

TEST(PlanCommand, ALineOfABatchNamesItsPlan) {
  ScratchFolder folder;
  folder.write("lines.jsonl",
               "{\"order\": [1, -1, 1, -1.5, -1, -1.5], \"plan\": \"te\", \"n\": 1}\n"
               "{\"order\": [1, -1, 1, -1.5, -1, -1.5], \"plan\": \"safe\"}\n"
               "{\"order\": [1, -1, 1, -1.5, -1, -1.5], \"plan\": \"other\"}\n"
               "{\"order\": [1, 2, -1, -1], \"plan\": \"te\"}\n"
               "{\"order\": [1, -1, -1], \"plan\": \"te\"}\n");
  const Outcome outcome =
      run_capo({"check", "--batch", "lines.jsonl"}, {.directory = folder.path()});
  std::istringstream lines(outcome.out);
  std::vector<json> results;
  for (std::string line; std::getline(lines, line);) results.push_back(json::parse(line));
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0].at("victims").at("static_input"), json({{1, 0}}));
  EXPECT_EQ(results[0].at("slots"), 1);
  EXPECT_EQ(results[0].at("input"), json({{"n", 1}}));
  EXPECT_EQ(results[1].at("hazards"), json::array());
  EXPECT_EQ(results[2].at("verdict"), "no-verdict");
  // Not sound, and captured by TE all the same; the last not even that.
  EXPECT_EQ(results[3].at("verdict"), "rejected");
  EXPECT_EQ(results[3].at("victims").at("static_input"), json::array());
  EXPECT_EQ(results[4].at("victims"), nullptr);
}

TEST(PlanCommand, ItsSizeIsLimited) {
  // Two microbatches of one layer: fourteen buffers.
  const auto check = [](const char* limit) {
    return run_capo({"check", "--order", "1 1 -1 -1", "--plan", "te", "--max-buffers", limit});
  };
  EXPECT_EQ(check("14").exit_code, 0);
  const Outcome over = check("13");
  EXPECT_EQ(over.exit_code, 4);
  EXPECT_NE(over.out.find("the plan has more than 13 buffers"), std::string::npos) << over.out;
  EXPECT_NE(over.out.find("--max-buffers"), std::string::npos) << over.out;
}

TEST(PlanCommand, NobodyAsksForOneOfAnySize) {
  // Three chunks of one microbatch: twenty-one buffers, and gradients that are taken over.
  const auto check = [](const char* limit) {
    return run_capo(
        {"check", "--order", "1 2 3 -3 -2 -1 -3.5 -2.5 -1.5", "--max-unasked-buffers", limit});
  };
  const std::string_view words = "TransformerEngine's reuse of memory could hurt this order";
  const Outcome looked = check("21");
  EXPECT_EQ(looked.exit_code, 0);
  EXPECT_NE(looked.out.find("accepted, with 2 warnings"), std::string::npos) << looked.out;
  EXPECT_EQ(looked.out.find(words), std::string::npos) << looked.out;
  const Outcome over = check("20");
  EXPECT_EQ(over.exit_code, 0);
  EXPECT_EQ(over.out.find("warning"), std::string::npos) << over.out;
  EXPECT_NE(over.out.find(words), std::string::npos) << over.out;
}

TEST(PlanCommand, ProgramsAreToldWhereNobodyLooked) {
  const auto check = [](const char* format, const char* limit) {
    return json::parse(run_capo({"check", "--order", "1 2 3 -3 -2 -1 -3.5 -2.5 -1.5", "--format",
                                 format, "--max-unasked-buffers", limit})
                           .out);
  };
  EXPECT_EQ(check("json", "20").at("left_unasked"), true);
  EXPECT_FALSE(check("json", "21").contains("left_unasked"));
  const auto notes = [&](const char* limit) {
    return check("sarif", limit)
        .at("runs")
        .at(0)
        .at("invocations")
        .at(0)
        .at("toolExecutionNotifications");
  };
  EXPECT_EQ(notes("20").at(0).at("level"), "note");
  EXPECT_EQ(notes("21"), json::array());
}

// Y01 asks of two orders what they do to each other, and is looked at up to the other limit.
TEST(PlanCommand, WhoReplaysAnotherOrderAsksForOne) {
  ScratchFolder folder;
  folder.write("a.te", "[1, -1, 1, -1]");
  folder.write("b.te", "[1, 1, -1, -1]");
  const auto check = [&](const char* option) {
    return run_capo({"check", "--capture", "a.te", "--replay", "b.te", option, "1"},
                    {.directory = folder.path()})
        .out;
  };
  const std::string looked = check("--max-unasked-buffers");
  EXPECT_NE(looked.find("warning[Y01]"), std::string::npos) << looked;
  const std::string over = check("--max-buffers");
  EXPECT_EQ(over.find("Y01"), std::string::npos) << over;
  EXPECT_NE(over.find("could hurt this order"), std::string::npos) << over;
}

TEST(PlanCommand, WhoDeclaresOneMeetsItsOwnLimit) {
  const Outcome outcome =
      run_capo({"check", "--order", "1 -1 -1.5", "--plan", "te", "--max-unasked-buffers", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("accepted"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace capo

// `capo run` as a user meets it: what it prints, what it returns, and what it refuses.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

constexpr const char* kSound = "[1,1,-1,-1.5,-1,-1.5]";
constexpr const char* kHazard = "[1,-1,1,-1.5,-1,-1.5]";  // reads an input that was taken over

json run_json(std::vector<std::string> arguments, int exit_code) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = run_capo(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(RunCommand, AnOrderRunsAsTyped) {
  const Outcome outcome = run_capo({"run", "--device", "host", "--order", kSound});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(
      "<order>: accepted\n"
      "  engine host (this machine's processor), 6 graphs, 3 replays\n"
      "  not declared: ffn 16; hidden 16; linear modules that fuse their accumulation; plan safe; "
      "tokens 8\n"
      "gradients equal to eager, to the bit: 1 of 1 of parameters, 2 of 2 of inputs\n"
      "eager against float64: worst relative error "))
      << outcome.out;
  EXPECT_NE(outcome.out.find(", within its bound\nmemory: 1536 bytes planned, 1536 allocated, "),
            std::string::npos)
      << outcome.out;
}

// A race upstream gives two gradients the same bits, so that who reads one for the other is right.
TEST(RunCommand, APredictedVictimThatCannotBeSeenIsExplained) {
  const ScratchFolder folder;
  const Outcome made = run_capo({"generate", "zbv", "--ranks", "2", "--microbatches", "2"});
  folder.write("zbv.order", made.out);
  const Outcome outcome = run_capo({"run", "zbv.order", "--plan", "te", "--modules",
                                    "grouped-linear-op", "--unchecked", "--device", "host"},
                                   {.directory = folder.path()});
  EXPECT_NE(outcome.out.find("  the grad output of chunk 1, microbatch 0 of rank 0 was not seen to "
                             "be hurt: the grad output of chunk 1, microbatch 1 of rank 0, which "
                             "took its memory over, holds the same bits\n"),
            std::string::npos)
      << outcome.out;
}

TEST(RunCommand, JsonHoldsWhatWasCompared) {
  const json report = run_json({"--device", "host", "--order", kSound}, 0);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["engine"], "host");
  EXPECT_EQ(report["verdict"], "accepted");
  EXPECT_EQ(report["bit_equal"], true);
  ASSERT_EQ(report["parameters"].size(), 1u);
  EXPECT_EQ(report["parameters"][0]["name"], "layer 0 of chunk 1 of rank 0: weight");
  EXPECT_EQ(report["parameters"][0]["bit_equal"], true);
  EXPECT_EQ(report["input_gradients"].size(), 2u);
  EXPECT_EQ(report["victims"]["static_input"], json::array());
  EXPECT_LT(report["float64"]["worst_relative_error"], 1e-5);
  EXPECT_EQ(report["bytes"]["planned"], report["bytes"]["allocated"]);
  EXPECT_GT(report["times"]["capture_us"], 0);
  EXPECT_GT(report["times"]["replay_us"], 0);
  EXPECT_EQ(report["times"]["launch_us"], 0);  // the host engine has no such calls
  EXPECT_EQ(report["graphs"]["count"], 6);
}

TEST(RunCommand, AStepIsOneGraphPerStep) {
  const json report = run_json({"--device", "host", "--order", kSound, "--graphs", "per-step"}, 0);
  EXPECT_EQ(report["graphs"]["count"], 1);
  EXPECT_EQ(report["bit_equal"], true);
}

TEST(RunCommand, WeightGradientsOfOneCallAreOneGraph) {
  const std::string order = "[1,1,-1,-1,-1.5,-1.5]";
  const json apart = run_json({"--device", "host", "--order", order, "--fuse-w", "1"}, 0);
  EXPECT_EQ(apart["graphs"]["count"], 6);
  const json fused = run_json({"--device", "host", "--order", order, "--fuse-w", "16"}, 0);
  EXPECT_EQ(fused["graphs"]["count"], 5);
  EXPECT_EQ(fused["bit_equal"], true);
}

TEST(RunCommand, OneGraphIsReplayedInTheOrderOfItsCapture) {
  const ScratchFolder folder;
  const std::string capture = folder.write("capture.te", kSound);
  const auto run = [&](const std::string& replay) {
    return run_capo({"run", capture, "--device", "host", "--graphs", "per-step", "--unchecked",
                     "--replay", folder.write("replay.te", replay)});
  };
  const Outcome same = run("[1, 1, -1, -1.5, -1, -1.5]");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const Outcome other = run("[1, 1, -1, -1, -1.5, -1.5]");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("give --graphs per-action for a replay order of its own"),
            std::string::npos)
      << other.err;
}

TEST(RunCommand, WhatIsRejectedIsNotRunAndSaysHow) {
  const Outcome outcome =
      run_capo({"run", "--order", kHazard, "--plan", "te", "--modules", "linear"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  EXPECT_TRUE(outcome.err.starts_with("error[B01]")) << outcome.err;
  EXPECT_NE(outcome.err.find("error: <order> was not run: rejected for B01\n"
                             "  help: --unchecked runs it all the same, and shows who is hurt\n"),
            std::string::npos)
      << outcome.err;
}

TEST(RunCommand, UncheckedNamesEachVictimAndWhatTookItsPlace) {
  const std::vector<std::string> arguments{"run",    "--device",   "host", "--order",
                                           kHazard,  "--plan",     "te",   "--modules",
                                           "linear", "--unchecked"};
  const Outcome outcome = run_capo(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.starts_with("<order>: rejected for B01, and run all the same\n"))
      << outcome.out;
  EXPECT_NE(
      outcome.out.find(
          "victims\n"
          "  static input: (c1,m0), as predicted\n"
          "  the static input of chunk 1, microbatch 0 of rank 0 was read too late: the static "
          "input of chunk 1, microbatch 1 of rank 0 had taken its memory over\n"
          "  wrong weight gradients: (c1,m0)\n"),
      std::string::npos)
      << outcome.out;
  const json report = run_json({"--device", "host", "--order", kHazard, "--plan", "te", "--modules",
                                "linear", "--unchecked"},
                               1);
  EXPECT_EQ(report["victims"]["static_input"], json::array({json::array({1, 0})}));
  EXPECT_EQ(report["victims"]["grad_output"], json::array());
  EXPECT_EQ(report["parameters"][0]["bit_equal"], false);
  EXPECT_EQ(report["parameters"][0]["difference"]["replay"], 1);
}

TEST(RunCommand, OtherFamiliesAreRefusedWithTheReason) {
  const Outcome outcome = run_capo({"run", "--order", "[1,1,-1]", "--unchecked"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("(shape) leaves nothing to run"), std::string::npos) << outcome.err;
  const json refusal = run_json({"--order", "[1,1,-1]", "--unchecked"}, 1);
  EXPECT_EQ(refusal["verdict"], "rejected");
  EXPECT_EQ(refusal["bit_equal"], nullptr);
  EXPECT_FALSE(refusal["findings"].empty());
}

TEST(RunCommand, TheStuckStateNamesTheMemberOfACompositeThatWaits) {
  const std::string order =
      "capo 1\nranks 2\nchunks 1\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 F1.1 recv-B1.0 B1.0 send-F1.1 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 recv-F1.1 (B1.0 F1.1) send-B1.0 B1.1 send-B1.1\n";
  const Outcome outcome = run_capo({"run", "-", "--unchecked"}, {.input = order});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find(
                "stays there:\n"
                "  rank 0 computes: `B1.0` waits for `recv-B1.0`\n"
                "  rank 0 transfers: `recv-B1.0` has begun and waits for `send-B1.0` of rank 1\n"
                "  rank 1 computes: `B1.0` waits with `F1.1` for `recv-F1.1`\n"
                "  rank 1 transfers: `recv-F1.1` has begun and waits for `send-F1.1` of rank 0\n"),
            std::string::npos)
      << outcome.err;
}

TEST(RunCommand, TheStuckStateNamesTheRankThatACollectiveWaitsFor) {
  const Outcome outcome =
      run_capo({"run", "bad-parameters.order", "--model", "fsdp.model", "--unchecked"},
               {.directory = CAPO_SOURCE_DIR "/tests/corpus/rules/T09"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("  rank 0 exchanges: `unshard1` has begun and waits for `unshard1` of "
                             "rank 1\n"),
            std::string::npos)
      << outcome.err;
}

TEST(RunCommand, HelpOffersUncheckedOnlyWhereItWouldRun) {
  const Outcome outcome = run_capo({"run", "--order", "[1,1,-1]"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err.find("--unchecked"), std::string::npos) << outcome.err;
}

TEST(RunCommand, ARejectedOrderIsNeverASuccess) {
  const json report = run_json(
      {"--device", "host", "--order", kSound, "--plan", "safe", "--budget", "1KiB", "--unchecked"},
      1);
  EXPECT_EQ(report["bit_equal"], true);
  EXPECT_EQ(report["verdict"], "rejected");
  ASSERT_EQ(report["findings"].size(), 1u);
  EXPECT_EQ(report["findings"][0]["rule"], "B08");
}

TEST(RunCommand, ALimitIsNoVerdictInBothForms) {
  const json refusal = run_json({"--order", kSound, "--max-buffers", "1"}, 4);
  EXPECT_EQ(refusal["verdict"], "no-verdict");
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--max-buffers", "1"}).exit_code, 4);
}

TEST(RunCommand, WhatCannotBeRunSaysSoInJsonToo) {
  const json refusal =
      run_json({"--order", kSound, "--modules", "transformer-layer", "--float64", "sampled"}, 1);
  EXPECT_EQ(refusal["bit_equal"], nullptr);
  EXPECT_NE(refusal["reason"].get<std::string>().find("as a whole or not at all"),
            std::string::npos);
}

TEST(RunCommand, AModelThatIsTooLargeIsRefusedInWords) {
  const ScratchFolder folder;
  const std::string model = folder.path() / "huge.json";
  std::ofstream(model) << R"({"schema": 1, "layers": "m", "modules": {"m": {"kind": "linear",
      "dtype": "bf16", "shape": {"tokens": 2147483647, "hidden": 2147483647, "ffn": 2147483647}}}})";
  const Outcome outcome = run_capo({"run", "--order", "[1,-1]", "--model", model});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err,
            "error: <order> was not run: module `m` takes more than 2^44 bytes, which is more than "
            "capo runs\n");
}

// Behind these layers one row outweighs all others, and the terms of its gradient by a choice
// cancel to a fifteenth, so that a rounding on an edge makes an error of 0.0074 of the sum.
TEST(RunCommand, ARoutersGradientIsComparedByItsTerms) {
  constexpr const char* kShape = R"("dtype": "bf16", "shape": {"tokens": 16, "hidden": 24, )";
  const ScratchFolder folder;
  folder.write("moe.order",
               "capo 1\nranks 3\nrank 0: F1.0 B1.0 F2.0 B2.0\nrank 1: F1.0 B1.0 F2.0 B2.0\n"
               "rank 2: F1.0 B1.0 F2.0 B2.0\n");
  folder.write("moe.json", fmt::format(R"({{"schema": 1, "plan": "te", "modules": {{
  "moe": {{"kind": "moe-layer", {0} "ffn": 24, "groups": 3, "top_k": 1}}}},
  "mlp": {{"kind": "layernorm-mlp", {0} "ffn": 24}}}},
  "op": {{"kind": "grouped-linear-op", {0} "ffn": 24, "groups": 1}}}},
  "attention": {{"kind": "attention", {0} "heads": 1, "kv_heads": 1, "head_dim": 8, "sequence": 4}},
                "flags": {{"bias": true}}}},
  "linear": {{"kind": "linear", {0} "ffn": 24}}}}}},
  "layers": [[["attention"], ["moe"]], [["mlp"], ["linear"]], [["op"], ["attention"]]]}})",
                                       kShape));
  const Outcome outcome = run_capo({"run", "moe.order", "--model", "moe.json", "--device", "host",
                                    "--replays", "2", "--seed", "6001961"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

// One linear of 8 tokens, 16 x 16, two microbatches: 3 products of 2048 multiply-adds each.
TEST(RunCommand, TheComparisonWithFloat64IsBoundedAndSaysHowMuchItTakes) {
  const auto run = [](const char* float64, const char* limit) {
    return run_capo({"run", "--device", "host", "--order", kSound, "--float64", float64,
                     "--float64-limit", limit});
  };
  EXPECT_EQ(run("all", "36864").exit_code, 0);
  const Outcome refused = run("all", "36863");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err,
            "error: <order> was not run: the comparison with float64 takes 3.69e+04 multiply-adds "
            "of this machine's processor, and the limit is 3.69e+04: take a sample (--float64 "
            "sampled), leave it out (--float64 none) or raise the limit (--float64-limit)\n");
  EXPECT_EQ(run("first", "12287").exit_code, 1);
  const Outcome first = run("first", "12288");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_NE(first.out.find("\neager against float64, 1 of 3 replays: worst relative error "),
            std::string::npos)
      << first.out;
  const Outcome none = run("none", "0");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_NE(none.out.find("\neager against float64: not compared\n"), std::string::npos)
      << none.out;
}

// Two rows of two microbatches go forward and back, one weight is drawn: 9 x 256; two columns take
// all rows in two products: 2 x 2 x 2 x 8 x 16.
TEST(RunCommand, ASampleOfFloat64IsBoundedAndSaysWhatWasCompared) {
  const auto run = [](const char* samples, const char* limit) {
    return run_capo({"run", "--device", "host", "--order", kSound, "--float64", "sampled",
                     "--float64-samples", samples, "--float64-limit", limit, "--seed", "7"});
  };
  const Outcome refused = run("2", "3327");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("takes 3.33e+03 multiply-adds of this machine's processor, and the "
                             "limit is 3.33e+03: take fewer samples (--float64-samples), leave"),
            std::string::npos)
      << refused.err;
  const Outcome within = run("2", "3328");
  EXPECT_EQ(within.exit_code, 0) << within.err;
  EXPECT_NE(within.out.find("\neager against a sample of float64, 1 of 3 replays: worst relative "),
            std::string::npos)
      << within.out;
  EXPECT_NE(within.out.find("\n  224 elements of 7 tensors, drawn by seed 7 (2 rows of each "
                            "microbatch, and as many columns of each weight); the worst of them"),
            std::string::npos)
      << within.out;
  EXPECT_NE(run("0", "1").exit_code, 0);
  EXPECT_EQ(run("1", "1e9").exit_code, 0);
  EXPECT_EQ(run("4294967296", "1e9").exit_code, 0);
  EXPECT_NE(run("4294967297", "1e9").exit_code, 0);
}

TEST(RunCommand, ASampleInJsonSaysHowManyElementsOfEachTensor) {
  const json report = run_json(
      {"--device", "host", "--order", kSound, "--float64", "sampled", "--float64-samples", "2"}, 0);
  const json& sampled = report["float64"]["sampled"];
  EXPECT_EQ(sampled["samples"], 2);
  EXPECT_EQ(sampled["seed"], 1);
  EXPECT_EQ(sampled["tensors"], 7);
  EXPECT_EQ(sampled["elements"], 224);
  EXPECT_LT(sampled["worst_element"], 1e-5);
  EXPECT_EQ(report["parameters"][0]["float64"]["elements"], 32);
  EXPECT_FALSE(report["parameters"][0]["float64"].contains("zero"));
}

TEST(RunCommand, ProbabilitiesAndScalesHaveGradientsThatAreCompared) {
  const json report =
      run_json({"--device", "host", "--order", "[1,-1,-1.5]", "--modules", "grouped-mlp"}, 0);
  ASSERT_EQ(report["input_gradients"].size(), 2u);
  EXPECT_EQ(report["input_gradients"][1]["name"],
            "probabilities of layer 0 of chunk 1 of rank 0, microbatch 0");
  EXPECT_EQ(report["input_gradients"][1]["bit_equal"], true);
  EXPECT_LT(report["input_gradients"][1]["float64"]["relative_error"], 5e-3);
}

TEST(RunCommand, AGradientThatIsLostIsNamed) {
  const Outcome outcome =
      run_capo({"run", "--device", "host", "--order", "[1,-1,-1.5]", "--plan", "te", "--model",
                CAPO_SOURCE_DIR "/tests/corpus/rules/G01/bad.model", "--unchecked"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("wrong weight gradients: (c1,m0)\n"), std::string::npos)
      << outcome.out;
}

TEST(RunCommand, SameSeedSameNumbersAnotherSeedOthers) {
  const auto errors = [](const char* seed) {
    const json report = run_json({"--device", "host", "--order", kSound, "--seed", seed}, 0);
    return report["float64"]["worst_relative_error"].get<double>();
  };
  EXPECT_EQ(errors("7"), errors("7"));
  EXPECT_NE(errors("7"), errors("8"));
}

TEST(RunCommand, ZeroReplaysIsEagerAlone) {
  const json report = run_json({"--device", "host", "--order", kSound, "--replays", "0"}, 0);
  EXPECT_EQ(report["graphs"]["count"], 0);
  EXPECT_EQ(report["bit_equal"], nullptr) << "nothing was compared";
  EXPECT_LT(report["float64"]["worst_relative_error"], 1e-5);
}

TEST(RunCommand, TheTimelineIsAChromeTraceOfAllWork) {
  const ScratchFolder folder;
  const std::string path = folder.path() / "timeline.json";
  const Outcome outcome = run_capo({"run", "--device", "host", "--order", kSound, "-o", path});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(path);
  const json trace = json::parse(in);
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  std::multiset<std::string> names;
  std::set<std::string> lanes;
  double last = -1;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") lanes.insert(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    names.insert(event["name"]);
    EXPECT_EQ(event["pid"], 0);
    EXPECT_TRUE(event["args"].contains("microbatch")) << event;
    EXPECT_GE(event["ts"], last) << "one stream runs in order";
    last = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(names, (std::multiset<std::string>{"F1.0", "F1.1", "B1.0", "W1.0", "B1.1", "W1.1"}));
  EXPECT_EQ(lanes, std::set<std::string>{"compute"});
}

// A transfer is measured at the end that finishes first, here on rank 0, and is one in a picture
// too.
TEST(RunCommand, AMeasuredTransferIsNamedAfterItsEnd) {
  const ScratchFolder folder;
  folder.write("two.csv", "0F0,0B0\n1F0,1B0\n");
  const testing_support::RunOptions here{.directory = folder.path()};
  ASSERT_EQ(run_capo({"run", "two.csv", "--device", "host", "-o", "run.json"}, here).exit_code, 0);
  std::multiset<std::string> names;
  const json trace = json::parse(folder.read("run.json"));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "communication") names.insert(event["name"]);
  }
  EXPECT_EQ(names, (std::multiset<std::string>{"send-F", "recv-B"}));
  ASSERT_EQ(run_capo({"draw", "run.json", "-o", "run.svg"}, here).exit_code, 0);
  const std::string picture = folder.read("run.svg");
  EXPECT_NE(picture.find(">s send, r receive<"), std::string::npos);
  EXPECT_EQ(picture.find("other collectives"), std::string::npos);
}

TEST(RunCommand, FlagsThatMakeNoSenseTogetherAreUsage) {
  const ScratchFolder folder;
  const std::string path = folder.path() / "timeline.json";
  const Outcome outcome = run_capo({"run", "--order", kSound, "--graphs", "per-step", "-o", path});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("take --graphs per-action"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--replays", "0", "-o", path}).exit_code, 2);
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--seed", "-1"}).exit_code, 2);
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--device", "tpu"}).exit_code, 2);
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--sizes", "even"}).exit_code, 2);
}

constexpr const char* kEarly =
    "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 reduce1 W1.1\n";
constexpr const char* kLast =
    "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1\n";

std::vector<std::string> with_replicas(const char* order, const char* count) {
  return {"--device", "host", "--form", "order", "--order", order, "--replicas", count};
}

TEST(RunCommand, ReplicasReduceTheirGradientsAndAnEarlyReductionShows) {
  const json right = run_json(with_replicas(kLast, "3"), 0);
  EXPECT_EQ(right["bit_equal"], true);
  EXPECT_EQ(right["replicas"], 3);
  EXPECT_EQ(right["reductions"], json::parse(R"([{"chunk": 1, "ranks": [0, 1, 2]}])"));
  auto early = with_replicas(kEarly, "2");
  const json refused = run_json(early, 1);
  EXPECT_EQ(refused["reason"], "rejected for G13");
  EXPECT_EQ(refused["findings"].size(), 1U) << "of one replica";
  early.emplace_back("--unchecked");
  const json wrong = run_json(early, 1);
  EXPECT_EQ(wrong["bit_equal"], false);
  EXPECT_EQ(wrong["float64"]["within_bounds"], true);
  for (const json& tensor : wrong["parameters"]) EXPECT_EQ(tensor["bit_equal"], false);
  auto alone = with_replicas(kEarly, "1");
  alone.emplace_back("--unchecked");
  EXPECT_EQ(run_json(alone, 1)["bit_equal"], true) << "one gradient is its own sum";
}

TEST(RunCommand, ReplicasAreLimitedLikeRanks) {
  auto arguments = with_replicas(kLast, "3");
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--max-ranks", "3"});
  const Outcome within = run_capo(arguments);
  EXPECT_EQ(within.exit_code, 0) << within.err;
  EXPECT_NE(within.out.find("\n  3 replicas of 1 rank\n  reduced: chunk 1 over ranks 0, 1, 2\n"),
            std::string::npos)
      << within.out;
  arguments.back() = "2";
  const Outcome beyond = run_capo(arguments);
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_NE(beyond.err.find("--replicas: makes 3 ranks, and the limit is 2 (--max-ranks)"),
            std::string::npos)
      << beyond.err;
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--replicas", "2", "--predict"}).exit_code, 2);
  EXPECT_EQ(run_capo({"run", "--order", kSound, "--replicas", "0"}).exit_code, 2);
}

TEST(RunCommand, AnAttentionRunsByItsNameAlone) {
  const json report = run_json({"--order", kSound, "--modules", "attention"}, 0);
  EXPECT_EQ(report["bit_equal"], true);
  const Outcome outcome = run_capo({"run", "--order", kSound, "--modules", "attention"});
  EXPECT_NE(outcome.out.find("head_dim 4; heads 4; hidden 16; kv_heads 4"), std::string::npos)
      << outcome.out;
}

// A file is read before anything is run, and says where the numbers stand.
TEST(RunCommand, AnAttentionThatDoesNotComeOutEvenIsRefusedAtItsPlace) {
  const ScratchFolder folder;
  const std::string model = folder.path() / "uneven.json";
  std::ofstream(model) << R"({"modules": {"a": {"kind": "attention", "shape": {"tokens": 12,
      "sequence": 5}}}})";
  const Outcome outcome = run_capo({"run", "--order", kSound, "--model", model});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("uneven.json:2:19"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`shape.tokens`, 12, is no multiple of it"), std::string::npos)
      << outcome.err;
}

TEST(RunCommand, ARouterWithItsExpertsRunsAsTyped) {
  const Outcome outcome = run_capo({"run", "--order", kSound, "--modules", "moe-layer"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("top_k 2"), std::string::npos) << outcome.out;
}

TEST(RunCommand, ATransformerLayerRunsAsTyped) {
  const Outcome outcome = run_capo({"run", "--order", kSound, "--modules", "transformer-layer"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("head_dim 4"), std::string::npos) << outcome.out;
}

// SwiGLU squares what it reads, so that eight layers without a norm leave nothing of it.
TEST(RunCommand, GradientsThatAreZeroAreSaidToShowNothing) {
  const ScratchFolder folder;
  folder.write("deep.order",
               run_capo({"generate", "gpipe", "--ranks", "8", "--microbatches", "1"}).out);
  const auto run = [&](const char* module, const char* format) {
    return run_capo(
               {"run", "deep.order", "--modules", module, "--device", "host", "--format", format},
               {.directory = folder.path()})
        .out;
  };
  EXPECT_NE(run("grouped-mlp", "text").find(" gradients are zero throughout"), std::string::npos);
  EXPECT_EQ(run("layernorm-mlp", "text").find(" gradients are zero throughout"), std::string::npos);
  const json report = json::parse(run("grouped-mlp", "json"), nullptr, false);
  EXPECT_EQ(report.at("input_gradients").at(0).at("float64").at("zero"), true);
}

}  // namespace
}  // namespace capo

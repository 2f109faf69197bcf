// `capo measure` as a user meets it, and a run that is predicted with what it wrote.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

constexpr const char* kModel = R"({
  "schema": 1,
  "modules": {"fc": {"kind": "linear", "dtype": "bf16",
                     "shape": {"tokens": 8, "hidden": 16, "ffn": 16},
                     "flags": {"fuse_wgrad_accumulation": true}}},
  "layers": "fc"
})";

json model_with(const json& changes) {
  json model = json::parse(kModel);
  model.merge_patch(changes);
  return model;
}

Outcome measure(const ScratchFolder& folder, const json& model) {
  const auto file = folder.write("model.json", model.dump());
  return run_capo({"measure", "--model", file, "--device", "host"});
}

TEST(MeasureCommand, WritesTheModelWithItsCosts) {
  const ScratchFolder folder;
  const Outcome outcome = measure(folder, json::parse(kModel));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  json written = json::parse(outcome.out);
  for (const char* cost : {"forward", "backward", "weight"}) {
    EXPECT_GT(written["modules"]["fc"]["cost"][cost].get<double>(), 0) << cost;
  }
  EXPECT_FALSE(written["modules"]["fc"]["cost"].contains("dispatch"));
  EXPECT_EQ(written["transfer"]["bytes"], 8 * 16 * 2);
  written["modules"]["fc"].erase("cost");
  written.erase("transfer");
  EXPECT_EQ(written, json::parse(kModel));
}

TEST(MeasureCommand, MeasuresExchangesThatAGroupPerforms) {
  const ScratchFolder folder;
  const Outcome outcome = measure(
      folder,
      model_with({{"groups",
                   {{{"name", "ep"},
                     {"members", {0}},
                     {"actions", {"dispatch-F", "combine-F", "dispatch-B", "combine-B"}}}}}}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json cost = json::parse(outcome.out)["modules"]["fc"]["cost"];
  EXPECT_TRUE(cost.contains("dispatch"));
  EXPECT_TRUE(cost.contains("combine"));
}

TEST(RunPredicted, AReductionTakesWhatTheModelStatesOfItsLayers) {
  const ScratchFolder folder;
  const json model = model_with(
      {{"modules",
        {{"fc",
          {{"cost", {{"forward", 100}, {"backward", 200}, {"weight", 300}, {"reduce", 50}}}}}}},
       {"layers", json::array({"fc", "fc"})},
       {"groups", {{{"name", "dp"}, {"members", {0, 1}}, {"actions", {"reduce"}}}}}});
  const auto costs = folder.write("costs.json", model.dump());
  const auto order = folder.write("step.order",
                                  "capo 1\nranks 2\nmicrobatches 1\nplacement independent\n"
                                  "rank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n");
  const auto makespan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"simulate", order, "--model", costs, "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_capo(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out)["makespan"];
  };
  EXPECT_EQ(makespan({}), 2 * (100 + 200 + 300) + 2 * 50);
  EXPECT_EQ(makespan({"--cost", "reduce=7"}), 2 * (100 + 200 + 300) + 7);
}

TEST(MeasureCommand, WithAFileTellsWhatItMeasured) {
  const ScratchFolder folder;
  const auto file = folder.write("model.json", kModel);
  const auto costs = (folder.path() / "costs.json").string();
  const Outcome outcome = run_capo({"measure", "--model", file, "--device", "host", "-o", costs});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out.find("measured on host (this machine's processor), microseconds\n"
                       "module                 forward  backward    weight  dispatch   "
                       "combine    reduce  autograd     whole      fuse    beside      rest   "
                       "quant F   "
                       "quant B\n"
                       "fc    "),
      0u)
      << outcome.out;

  const Outcome predicted = run_capo(
      {"run", "--order", "[1,-1,-1.5]", "--model", costs, "--device", "host", "--predict"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("\nmakespan: "), std::string::npos) << predicted.out;
  EXPECT_NE(predicted.out.find(" us measured, "), std::string::npos) << predicted.out;
  const Outcome as_json = run_capo({"run", "--order", "[1,-1,-1.5]", "--model", costs, "--device",
                                    "host", "--predict", "--format", "json", "--float64", "none"});
  const json report = json::parse(as_json.out);
  const json cost = json::parse(folder.read("costs.json"))["modules"]["fc"]["cost"];
  // The first backward adds its dummy to nothing, which takes a third (docs/simulation.md).
  const double sum = cost["forward"].get<double>() + cost["backward"].get<double>() +
                     cost["weight"].get<double>() + cost.value("autograd", 0.0) / 3;
  EXPECT_NEAR(report["simulated_makespan_us"].get<double>(), sum, 1e-6 * sum);
  EXPECT_TRUE(report["float64"].is_null());
}

TEST(MeasureCommand, SaysWhatAModelLacks) {
  const ScratchFolder folder;
  Outcome outcome = measure(folder, {{"schema", 1}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("declares no modules, and they are what is measured"),
            std::string::npos)
      << outcome.err;
  outcome = measure(folder, model_with({{"modules", {{"fc", {{"shape", {{"ffn", nullptr}}}}}}}}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "error: module `fc` does not say its ffn\n");
  outcome = measure(folder, model_with({{"modules", {{"fc", {{"kind", "transformer-layer"}}}}}}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "error: module `fc` does not say its heads\n");
  outcome = measure(folder, {{"schema", 2}});
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST(MeasureCommand, TakesTwoMicrobatchesAndNotOne) {
  const ScratchFolder folder;
  const auto file = folder.write("model.json", kModel);
  const auto with = [&](const char* microbatches) {
    return run_capo(
        {"measure", "--model", file, "--device", "host", "--microbatches", microbatches});
  };
  EXPECT_EQ(with("2").exit_code, 0);
  EXPECT_EQ(with("1").exit_code, 2);
  EXPECT_EQ(with("1001").exit_code, 2);
}

// The ranks of a run are all on one device, so they take turns in the simulation too.
// --- traces of torch -----------------------------------------------------------------------------

// A span of a process in the form of torch.profiler's export.
json span(int process, const std::string& name, double begin, double length) {
  return {{"ph", "X"},    {"cat", "gpu_user_annotation"},
          {"name", name}, {"pid", process},
          {"tid", 7},     {"ts", 1e9 + begin},
          {"dur", length}};
}

// Two ranks with one stage each, two microbatches of 1F1B.
std::string small_trace() {
  return json{{"schemaVersion", 1},
              {"traceEvents",
               {span(0, "PP:0F0", 0, 10), span(0, "PP:0F1", 10, 12), span(0, "PP:0B0", 45, 20),
                span(0, "PP:0B1", 77, 22), span(1, "PP:1F0", 12, 14), span(1, "PP:1I0", 26, 9),
                span(1, "PP:1W0", 35, 8), span(1, "PP:1F1", 43, 14), span(1, "PP:1I1", 57, 9),
                span(1, "PP:1W1", 66, 8), span(1, "PP:1SEND_B1", 66, 1)}}}
      .dump();
}

TEST(MeasureCommand, ATraceBecomesFlagsThatASimulationTakes) {
  const ScratchFolder folder;
  folder.write("trace.json", small_trace());
  const Outcome outcome =
      run_capo({"measure", "--trace", "trace.json"}, {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "--cost r0.c1:f=12,b=11,w=11\n--cost r1.c1:f=14,b=9,w=8\n");
  EXPECT_EQ(outcome.err,
            "11 actions on the device, medians in microseconds\n"
            "whole backwards are divided evenly between b and w\n");
  folder.write("a.order",
               "capo 1\nplacement loop\nrank 0: F1.0 F1.1 B1.0 B1.1\n"
               "rank 1: F1.0 I1.0 W1.0 F1.1 I1.1 W1.1\n");
  const Outcome simulated = run_capo({"simulate", "a.order", "--cost", "r0.c1:f=12,b=11,w=11",
                                      "--cost", "r1.c1:f=14,b=9,w=8", "--format", "json"},
                                     {.directory = folder.path()});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err << simulated.out;
}

TEST(MeasureCommand, EachRankMayHaveATraceOfItsOwn) {
  const ScratchFolder folder;
  for (const int rank : {0, 1}) {
    const json trace{{"distributedInfo", {{"rank", rank}}},
                     {"traceEvents", {span(0, "Forward 0", 0, 10 + rank)}}};
    folder.write("rank" + std::to_string(rank) + ".json", trace.dump());
  }
  const Outcome outcome = run_capo({"measure", "--trace", "rank1.json", "--trace", "rank0.json"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.out, "--cost r0.c1:f=10\n--cost r1.c1:f=11\n") << outcome.err;
}

TEST(MeasureCommand, FilesThatSayNoRankAreRanksInTheirOrder) {
  const ScratchFolder folder;
  for (const int rank : {0, 1}) {
    const json trace{{"traceEvents", {span(0, "Forward 0", 0, 10 + rank)}}};
    folder.write("rank" + std::to_string(rank) + ".json", trace.dump());
  }
  const Outcome outcome = run_capo({"measure", "--trace", "rank1.json", "--trace", "rank0.json"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.out, "--cost r0.c1:f=11\n--cost r1.c1:f=10\n") << outcome.err;
}

TEST(MeasureCommand, WhatIsNoTraceOfAPipelineIsSaid) {
  const ScratchFolder folder;
  folder.write("none.json", R"({"traceEvents": []})");
  const Outcome outcome =
      run_capo({"measure", "--trace", "none.json"}, {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("the trace names no action of a pipeline"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(run_capo({"measure"}).exit_code, 2);
  EXPECT_EQ(run_capo({"measure", "--trace", "none.json", "--model", "m.json"}).exit_code, 2);
  EXPECT_EQ(run_capo({"measure", "--trace", "none.json", "--max-bytes", "9"},
                     {.directory = folder.path()})
                .exit_code,
            4);
}

TEST(RunPredicted, RanksShareTheirDevice) {
  const ScratchFolder folder;
  json model = json::parse(kModel);
  model["modules"]["fc"]["cost"] = {{"forward", 100}, {"backward", 200}, {"weight", 300}};
  model["transfer"] = {{"latency", 0}, {"bytes", 256}};
  const auto costs = folder.write("costs.json", model.dump());
  const auto order = folder.write("step.order",
                                  "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
                                  "rank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n"
                                  "rank 1: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n");
  const Outcome outcome = run_capo({"run", order, "--model", costs, "--device", "host", "--predict",
                                    "--format", "json", "--float64", "none"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const double step = json::parse(outcome.out)["simulated_makespan_us"].get<double>();
  EXPECT_EQ(step, 4 * (100 + 200 + 300)) << "of two microbatches on two ranks";
}

TEST(RunPredicted, WholeBackwardsAddDummyGradientsAndInputHalvesUnderPlanTe) {
  const ScratchFolder folder;
  json model = json::parse(kModel);
  model["modules"]["fc"]["cost"] = {
      {"forward", 100}, {"backward", 200}, {"weight", 300}, {"autograd", 90}};
  model["modules"]["fc"]["flags"]["grad_added_to_main_grad"] = true;
  const auto costs = folder.write("costs.json", model.dump());
  const auto predicted = [&](const std::string& order, const char* plan) {
    const Outcome outcome = run_capo({"run", order, "--model", costs, "--device", "host", "--plan",
                                      plan, "--predict", "--format", "json", "--float64", "none"});
    return json::parse(outcome.out)["simulated_makespan_us"].get<double>();
  };
  const std::string head = "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nrank 0: ";
  const auto split = folder.write("split.order", head + "F1.0 B1.0 W1.0\n");
  const auto whole = folder.write("whole.order", head + "F1.0 B1.0\n");
  // The first backward has no gradient to add to: it makes zeros, or copies.
  EXPECT_EQ(predicted(split, "safe"), 600 + 30);
  EXPECT_EQ(predicted(split, "te"), 600 + 60);
  EXPECT_EQ(predicted(whole, "safe"), 600 + 60);
  EXPECT_EQ(predicted(whole, "te"), 600 + 60);
}

TEST(RunPredicted, AWholeBackwardTakesWhatTheModelStatesOfIt) {
  const ScratchFolder folder;
  json model = json::parse(kModel);
  model["modules"]["fc"]["cost"] = {
      {"forward", 100}, {"backward", 200}, {"weight", 300}, {"autograd", 90}, {"whole", 450}};
  const auto costs = folder.write("costs.json", model.dump());
  const std::string head = "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nrank 0: ";
  const auto simulated = [&](const std::string& order, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"simulate", order, "--model", costs, "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run_capo(arguments).out);
  };
  const auto split = folder.write("split.order", head + "F1.0 B1.0 W1.0\n");
  const auto whole = folder.write("whole.order", head + "F1.0 B1.0\n");
  EXPECT_EQ(simulated(split)["makespan"], 600 + 30);
  const json of_whole = simulated(whole);
  EXPECT_EQ(of_whole["makespan"], 550 - 30);
  EXPECT_EQ(of_whole["lower_bound"]["makespan"], 550 - 30) << of_whole["lower_bound"];
  EXPECT_EQ(simulated(whole, {"--cost", "w=100"})["makespan"], 100 + 200 + 100 + 60);
  EXPECT_EQ(simulated(whole, {"--cost", "b=100"})["makespan"], 100 + 100 + 300);
}

TEST(RunPredicted, NeedsCostsAndTheTimesOfParts) {
  const ScratchFolder folder;
  const auto file = folder.write("model.json", kModel);
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", "--order",  "[1,-1,-1.5]", "--model",
                                       file,  "--device", "host",        "--predict"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_capo(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_NE(refused({}).find("needs a model file with costs; `capo measure` writes one"),
            std::string::npos);
  EXPECT_NE(refused({"--graphs", "per-step"}).find("has no times of its parts"), std::string::npos);
  EXPECT_NE(refused({"--replays", "0"}).find("needs a replay, whose times it is of"),
            std::string::npos);
}

}  // namespace
TEST(RunPredicted, AWarmStepIsComparedAsAnyOther) {
  const std::vector<std::string> run{"run", "--order", "[1,-1]", "--device", "host", "--warm-up"};
  const auto after = [&](std::vector<std::string> more) {
    std::vector<std::string> all = run;
    all.insert(all.end(), more.begin(), more.end());
    return run_capo(all);
  };
  EXPECT_EQ(after({"0"}).exit_code, 0);
  const Outcome warm = after({"0.01"});
  EXPECT_EQ(warm.exit_code, 0) << warm.err;
  EXPECT_NE(warm.out.find("3 replays"), std::string::npos) << warm.out;
  EXPECT_EQ(after({"3600.5"}).exit_code, 2);
  EXPECT_EQ(after({"-1"}).exit_code, 2);
}

}  // namespace capo

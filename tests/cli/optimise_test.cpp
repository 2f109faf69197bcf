// `capo optimise` as a user runs it.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;
using testing_support::split_words;

Outcome run_optimise(const std::string& flags) {
  return run_capo(split_words("optimise " + flags));
}

json optimised(const std::string& flags) {
  const Outcome outcome = run_optimise(flags + " --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

// Its best order is not proved to be the best.
const std::string kTight = "--ranks 8 --microbatches 16 --cost f=5,b=6,w=4 --memory 4 --time 10m";

void expect_not_searched(const std::string& flags, const std::string& words) {
  const Outcome outcome = run_optimise(flags);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(holds(outcome.err, words)) << outcome.err;
}

TEST(Optimise, ProvesWhatIsTheBestPossible) {
  const Outcome outcome = run_optimise("--ranks 4 --microbatches 8");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with(
      "makespan  27, the best possible: at least 27 by the work of rank 0, and what must come "
      "before and behind each of its tasks\n"))
      << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "ended by proof"));
  EXPECT_TRUE(holds(outcome.out, "\nzb-h1 "));
  EXPECT_TRUE(holds(outcome.err, "makespan 27, the best possible\n")) << outcome.err;
}

TEST(Optimise, SaysThatItsBoundsAreNotAboutAScheduleThatIsBetter) {
  const Outcome outcome = run_optimise("--ranks 2 --microbatches 8 --chunks 2");
  EXPECT_TRUE(outcome.out.starts_with("makespan  24.5, the best possible")) << outcome.out;
  std::vector<std::string> marked;
  for (const std::string& line : testing_support::lines_of(outcome.out)) {
    if (holds(line, "placed otherwise, which the bounds are not about")) marked.push_back(line);
  }
  ASSERT_EQ(marked.size(), 2U) << outcome.out;
  EXPECT_TRUE(marked[0].starts_with("dualpipe ")) << marked[0];
  EXPECT_TRUE(marked[1].starts_with("chimera ")) << marked[1];
}

TEST(Optimise, AFileIsAStart) {
  const ScratchFolder folder;
  folder.write("step.csv", "0F0,0B0\n1F0,1B0\n");
  const Outcome outcome = run_capo({"optimise", "step.csv"}, {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "`step.csv` is none; --from step.csv begins with that order"))
      << outcome.err;
}

// Two pipelines that share one microbatch have none each.
TEST(Optimise, HasOneTaskOfEach) {
  const json printed = optimised("--ranks 1 --microbatches 1 --objective span");
  EXPECT_EQ(printed["span"], 3);
  EXPECT_TRUE(printed["proved"]);
  for (const json& each : printed["named"]) EXPECT_NE(each["name"], "chimera");
}

TEST(Optimise, TellsHowPublishedSchedulesCompareUnderTheSameMemory) {
  const json printed = optimised(kTight + " --moves 100000");
  double best = 1e300;
  bool exceeds = false;
  for (const json& each : printed["named"]) {
    exceeds = exceeds || !each["fits"];
    if (each["fits"] && each["name"] != "v-adaptive" && each["name"] != "zbv" &&
        !each["name"].get<std::string>().starts_with("v-") && each["name"] != "1f1b-v" &&
        !each["name"].get<std::string>().starts_with("gis")) {
      best = std::min(best, each["makespan"].get<double>());
    }
  }
  EXPECT_TRUE(exceeds);
  EXPECT_LT(printed["makespan"], best) << "of the same placement";
  EXPECT_GE(printed["makespan"], printed["lower_bound"]["makespan"]);
  EXPECT_LE(*std::max_element(printed["peak_memory"].begin(), printed["peak_memory"].end()), 4.0);
  EXPECT_EQ(printed["ended"], "moves");
}

// Whatever the number of threads, as long as the moves end it and not the clock.
TEST(Optimise, GivesTheSameOrderForTheSameSeed) {
  const std::string flags =
      "--ranks 8 --microbatches 16 --placement v --cost f=12,b=13,w=20,comm=3 --memory 5 --moves "
      "300000 --time 10m --format order --seed ";
  const Outcome one = run_optimise(flags + "7 --threads 1");
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.out, run_optimise(flags + "7 --threads 3").out);
  EXPECT_NE(one.out, run_optimise(flags + "8").out);
}

TEST(Optimise, WritesOrdersThatCapoReads) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "best.order").string();
  for (const std::string placement : {"loop", "v", "bidirectional"}) {
    SCOPED_TRACE(placement);
    const json printed = optimised(
        "--ranks 4 --microbatches 8 --cost f=3,b=4,w=2,comm=1 --moves 20000 "
        "--chunks " +
        std::string(placement == "loop" ? "1" : "2") + " --placement " + placement + " -o " + file);
    EXPECT_EQ(run_capo({"check", file}).exit_code, 0);
    const Outcome simulated =
        run_capo({"simulate", file, "--cost", "f=3,b=4,w=2,comm=1", "--format", "json"});
    const json times = json::parse(simulated.out);
    EXPECT_EQ(times["makespan"], printed["makespan"]);
    EXPECT_EQ(times["span"], printed["span"]);
  }
}

TEST(Optimise, PrintsTheOrderInItsForms) {
  const std::string flags = "--ranks 2 --microbatches 2 --format ";
  EXPECT_EQ(run_optimise(flags + "te").out,
            "[1, 1, -1, -1.5, -1, -1.5]\n[1, -1, 1, -1, -1.5, -1.5]\n");
  EXPECT_TRUE(run_optimise(flags + "tokens").out.starts_with("F0 F1 B0 W0 B1 W1\n"));
  EXPECT_TRUE(run_optimise(flags + "order").out.starts_with("capo 1\n"));
  EXPECT_TRUE(holds(run_optimise(flags + "csv").out, "0F0,0F1,0I0,0W0,0I1,0W1"));
  const ScratchFolder folder;
  const Outcome both = run_optimise(flags + "tokens -o " + (folder.path() / "o").string());
  EXPECT_TRUE(both.out.starts_with("makespan")) << "the report";
  EXPECT_TRUE(folder.read("o").starts_with("F0 F1 B0"));
}

TEST(Optimise, BeginsWithAnOrderThatItIsGiven) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "start.order").string();
  ASSERT_EQ(run_optimise(kTight + " --moves 400000 -o " + file).exit_code, 0);
  const json printed = optimised(kTight + " --moves 1 --from " + file);
  EXPECT_EQ(printed["from"], file);
  const json again = optimised(kTight + " --moves 400000");
  EXPECT_EQ(printed["makespan"], again["makespan"]);

  expect_not_searched("--ranks 3 --microbatches 16 --from " + file,
                      "--from: it has 8 ranks, not 3");
  expect_not_searched("--ranks 8 --microbatches 16 --memory 1 --from " + file, "and --memory is 1");
  EXPECT_EQ(run_optimise("--ranks 8 --microbatches 16 --from " + (folder.path() / "none").string())
                .exit_code,
            3);
}

TEST(Optimise, WritesWhatShowsItsBound) {
  const ScratchFolder folder;
  const std::string flags = kTight + " --moves 1 --objective span --bound-out ";
  const json printed = optimised(flags + (folder.path() / "one").string());
  const json written = json::parse(folder.read("one"));
  EXPECT_EQ(written["objective"], "span");
  EXPECT_EQ(written["bound"], printed["lower_bound"]["span"]);
  EXPECT_EQ(written["span"], printed["span"]);
  EXPECT_EQ(written["orders"].size(), 8U);
  EXPECT_EQ(run_optimise(flags + (folder.path() / "two").string()).exit_code, 0);
  EXPECT_EQ(folder.read("one"), folder.read("two"));

  const Outcome none = run_optimise(flags + (folder.path() / "no" / "folder").string());
  EXPECT_EQ(none.exit_code, 5);
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(holds(none.err, "no/folder")) << none.err;
}

TEST(Optimise, ProvesSmallStepsByAllOrders) {
  const ScratchFolder folder;
  const std::string flags =
      "--ranks 3 --microbatches 4 --placement bidirectional --cost f=10,b=16,w=4,comm=1 --memory 2 "
      "--moves 400000 --bound-out " +
      (folder.path() / "bound").string();
  const json printed = optimised(flags);  // 36 tasks
  EXPECT_EQ(printed["ended"], "proof");
  EXPECT_TRUE(printed["proved"]);
  EXPECT_EQ(printed["gap"], 0);
  EXPECT_EQ(printed["rests_on"], "a search of all orders");
  EXPECT_EQ(printed["lower_bound"]["makespan"], printed["makespan"]);
  const json written = json::parse(folder.read("bound"));
  ASSERT_TRUE(written.contains("exhaustive"));
  EXPECT_EQ(written["exhaustive"]["nodes"], printed["exhaustive_nodes"]);
  EXPECT_EQ(written["exhaustive"]["below"], printed["makespan"]);
  EXPECT_LT(written["bound"], printed["makespan"]) << "what the file shows";
  const Outcome text = run_optimise(flags + " --exhaustive 36");
  EXPECT_TRUE(holds(text.out, "the best possible: at least 176 by a search of all orders\n"));
  EXPECT_TRUE(holds(text.out, "\nsearched  all orders, with ")) << text.out;
  EXPECT_TRUE(holds(text.err, "shows at least 174, and the bound is 176")) << text.err;

  for (const std::string fewer : {" --exhaustive 35", " --exhaustive 0"}) {
    const json open = optimised(flags + fewer);
    EXPECT_FALSE(open["proved"]) << fewer;
    EXPECT_EQ(open["ended"], "moves");
    EXPECT_EQ(open["exhaustive_nodes"], 0);
    EXPECT_FALSE(json::parse(folder.read("bound")).contains("exhaustive"));
  }
  EXPECT_EQ(run_optimise("--ranks 2 --microbatches 2 --exhaustive 250").exit_code, 0);
  expect_not_searched("--ranks 2 --microbatches 2 --exhaustive 251", "not in range 0 to 250");
}

TEST(Optimise, TakesTheTimesOfAModelFile) {
  const ScratchFolder folder;
  const std::string model = (folder.path() / "model.json").string();
  const std::string order = (folder.path() / "best.order").string();
  const std::string modules =
      R"("modules": {"dense": {"kind": "linear", "cost": {"forward": 10, "backward": 12, "weight": 8}},
                     "large": {"kind": "linear", "cost": {"forward": 20, "backward": 22, "weight": 18}}},
         "transfer": {"latency": 3}})";
  for (const std::string layers : {R"([["dense"], ["large"]])", R"([["dense", "large"]])"}) {
    SCOPED_TRACE(layers);
    folder.write("model.json", R"({"schema": 1, "layers": )" + layers + ", " + modules);
    const std::string chunks = layers.find("], [") == std::string::npos ? "1" : "2";
    const std::string flags = "--ranks 2 --microbatches 4 --moves 9999 --chunks " + chunks +
                              " --model " + model + " --cost r1:f=7 ";
    const json printed = optimised(flags);
    EXPECT_EQ(printed["time_unit"], "microsecond");
    EXPECT_TRUE(holds(run_optimise(flags + "-o " + order).out, "times     in microseconds"));
    const json times = json::parse(
        run_capo({"simulate", order, "--model", model, "--cost", "r1:f=7", "--format", "json"})
            .out);
    EXPECT_NEAR(times["makespan"], printed["makespan"], 1e-9);
    EXPECT_NEAR(times["span"], printed["span"], 1e-9);
  }
  folder.write("model.json", R"({"schema": 1, "layers": [["dense"], ["large"]], )" + modules);
  expect_not_searched("--ranks 2 --microbatches 4 --chunks 3 --model " + model,
                      "declares no module of chunk 3 on rank 0");
  folder.write("model.json", R"({"modules": {"default": {"kind": "linear"}}})");
  expect_not_searched("--ranks 2 --microbatches 4 --model " + model, "states no times");
  EXPECT_EQ(run_optimise("--ranks 2 --microbatches 4 --model none.json").exit_code, 3);
}

TEST(Optimise, SaysWhyThereIsNone) {
  const Outcome none = run_optimise("--ranks 2 --microbatches 2 --memory 0.5");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err,
            "error: there is no such order: one microbatch by itself holds 1 on rank 0, and 0.5 is "
            "the limit\n");
  const Outcome late = run_optimise("--ranks 2 --microbatches 2 --time 0.000000001ms");
  EXPECT_EQ(late.exit_code, 4);
  EXPECT_EQ(late.err, "error: no order was found in time\n  help: give it more with --time\n");
}

TEST(Optimise, PrintsTheBestWhenItIsInterrupted) {
  const std::string command =
      std::string("exec timeout --preserve-status --signal INT 2 ") +
      testing_support::program_under_test() +
      " optimise --ranks 8 --microbatches 24 --placement v --cost f=10,b=16,w=4,comm=1 --memory 8 "
      "--time 50s --moves 1000000000000 --format json";
  const Outcome outcome = run_capo({"-c", command}, {.program = "/bin/sh"});
  EXPECT_EQ(outcome.exit_code, 130);
  const json printed = json::parse(outcome.out);
  EXPECT_EQ(printed["ended"], "stopped");
  EXPECT_LT(printed["seconds"], 20);
  EXPECT_EQ(printed["peak_memory"].size(), 8U);
}

TEST(Optimise, KeepsToItsLimits) {
  const std::string counts = "--ranks 2 --microbatches 4 --chunks 3 ";
  EXPECT_EQ(run_optimise(counts + "--max-entries 72").exit_code, 0);
  EXPECT_EQ(run_optimise(counts + "--max-entries 71").exit_code, 4);
  EXPECT_EQ(run_optimise(counts + "--max-count 6").exit_code, 0);
  EXPECT_EQ(run_optimise(counts + "--max-count 5").exit_code, 4);
  EXPECT_EQ(run_optimise(counts + "--max-ranks 2").exit_code, 0);
  EXPECT_EQ(run_optimise(counts + "--max-ranks 1").exit_code, 4);
}

TEST(Optimise, RefusesWhatItDoesNotSearch) {
  const std::string counts = "--ranks 2 --microbatches 2 ";
  expect_not_searched("--microbatches 2", "--ranks");
  expect_not_searched("--ranks 2", "--microbatches");
  expect_not_searched(counts + "--placement v --chunks 3",
                      "a V needs an even number of chunks a rank");
  expect_not_searched("--ranks 2 --microbatches 3 --placement bidirectional",
                      "two pipelines share them");
  expect_not_searched(counts + "--cost slowdown=2", "without composites");
  expect_not_searched(counts + "--cost r5:f=2", "speaks of rank 5, but there are 2");
  expect_not_searched(counts + "--mem f=1,b=0.5,w=-1.5", "memory that forwards take");
  expect_not_searched(counts + "--time 0", "is no time above 0");
  expect_not_searched(counts + "--time soon", "is no time above 0");
  expect_not_searched(counts + "--cost fuse=0.4", "has no use without --fuse-w");
}

// The report says what `check` and `simulate` make of the order with the same flag.
TEST(Optimise, SearchesCallsAsTheyAreSimulated) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "best.order").string();
  const std::string costs = "f=3,b=4,w=3,comm=1,fuse=0.3";
  for (const std::string frame : {"--microbatches 8", "--microbatches 8 --placement v",
                                  "--microbatches 12 --placement bidirectional"}) {
    SCOPED_TRACE(frame);
    const std::string flags = "--ranks 3 " + frame + " --memory 5 --moves 60000 --cost ";
    const json printed = optimised(flags + costs + " --fuse-w 3 -o " + file);
    const Outcome judged = run_capo({"check", file, "--fuse-w", "3", "--plan", "safe"});
    EXPECT_EQ(judged.exit_code, 0);
    const Outcome simulated =
        run_capo({"simulate", file, "--fuse-w", "3", "--cost", costs, "--format", "json"});
    const json times = json::parse(simulated.out);
    EXPECT_EQ(times["makespan"], printed["makespan"]);
    EXPECT_EQ(times["span"], printed["span"]);
    EXPECT_EQ(printed["fuse_w"]["most"], 3);
    EXPECT_TRUE(holds(judged.out, printed["fuse_w"]["gradients"].dump() +
                                      " weight gradients are fused into " +
                                      printed["fuse_w"]["calls"].dump() + " call"))
        << judged.out;
    const json alone = optimised(flags + "f=3,b=4,w=3,comm=1");
    EXPECT_EQ(alone["fuse_w"]["calls"], 0);
    EXPECT_LT(printed["makespan"], alone["makespan"]);
    for (const json& each : printed["named"]) {
      if (each["name"] != "zb-h1") continue;
      const std::string counts = frame.substr(15, 2);
      const Outcome made = run_capo({"generate", "zb-h1", "--ranks", "3", "--microbatches",
                                     counts.substr(0, counts.find(' ')), "-o", file});
      ASSERT_EQ(made.exit_code, 0) << made.err;
      const Outcome then =
          run_capo({"simulate", file, "--fuse-w", "3", "--cost", costs, "--format", "json"});
      EXPECT_EQ(each["makespan"], json::parse(then.out)["makespan"]) << "with the same calls";
    }
  }
}

TEST(Optimise, TakesWhatACallTakesFromAModelFile) {
  const ScratchFolder folder;
  const std::string model = (folder.path() / "model.json").string();
  const std::string file = (folder.path() / "best.order").string();
  folder.write("model.json", R"({"schema": 1, "layers": [["dense"], ["large"]], "modules": {
    "dense": {"kind": "linear",
              "cost": {"forward": 10, "backward": 12, "weight": 8, "fuse": 0.3}},
    "large": {"kind": "linear",
              "cost": {"forward": 20, "backward": 22, "weight": 18, "fuse": 0.45}}}})");
  const json printed =
      optimised("--ranks 2 --chunks 2 --microbatches 4 --moves 20000 --fuse-w 3 --model " + model +
                " -o " + file);
  EXPECT_GT(printed["fuse_w"]["calls"], 0);
  const Outcome simulated =
      run_capo({"simulate", file, "--model", model, "--fuse-w", "3", "--format", "json"});
  EXPECT_NEAR(json::parse(simulated.out)["makespan"], printed["makespan"], 1e-9);
}

TEST(Optimise, RefusesCallsThatHaveNoUse) {
  const std::string counts = "--ranks 2 --microbatches 4 --fuse-w 2 ";
  expect_not_searched(counts, "takes as long as the first: say what it takes");
  expect_not_searched(counts + "--cost fuse=0.4 --for te", "--fuse-w: has no use with --for te");
  expect_not_searched(counts + "--cost fuse=0.4 --for torch", "has no use with --for torch");
  expect_not_searched(counts + "--cost fuse=0.4 --for mcore", "has no use with --for mcore");
  expect_not_searched("--ranks 2 --microbatches 1 --fuse-w 2 --cost fuse=0.4",
                      "a chunk has one microbatch");
  expect_not_searched("--ranks 2 --microbatches 4 --fuse-w 0", "not in range 1 to 16");
  expect_not_searched("--ranks 2 --microbatches 4 --fuse-w 17", "not in range 1 to 16");
  EXPECT_EQ(
      run_optimise("--ranks 2 --microbatches 4 --fuse-w 16 --cost fuse=0.4 --moves 1").exit_code,
      0);
}

}  // namespace
}  // namespace capo

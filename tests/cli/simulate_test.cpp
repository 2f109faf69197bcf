// `capo generate NAME`, `simulate`, `compare` and `sweep` as a user runs them.

#include "tests/support/data.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

class SimulateCommand : public ::testing::Test {
 protected:
  // The words of a command line, split at blanks.
  [[nodiscard]] Outcome run(const std::string& line, const std::string& input = "") const {
    std::vector<std::string> arguments;
    std::istringstream in(line);
    for (std::string word; in >> word;) arguments.push_back(word);
    return run_capo(arguments, {.input = input, .directory = folder_.path()});
  }
  [[nodiscard]] std::string out_of(const std::string& line) const {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << line;
    return outcome.out;
  }
  void expect_usage_error(const std::string& line, const std::string& message) const {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.exit_code, 2) << line << "\n" << outcome.out;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << line << "\n" << outcome.err;
  }
  [[nodiscard]] std::string text_of(const std::string& file) const {
    std::ifstream in(folder_.path() / file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  ScratchFolder folder_;
};

TEST_F(SimulateCommand, GeneratesInEveryForm) {
  EXPECT_EQ(out_of("generate zb-h1 --ranks 2 --microbatches 2 --format tokens"),
            "F0 F1 B0 W0 B1 W1\nF0 B0 F1 B1 W0 W1\n");
  EXPECT_EQ(out_of("generate gpipe --ranks 2 --microbatches 2 --format csv"),
            "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_EQ(
      out_of("generate torch:GPipe --ranks 2 --stages-per-rank 1 --microbatches 2 --format csv"),
      "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  const auto parsed =
      json::parse(out_of("generate dualpipe --ranks 2 --microbatches 4 --format json"));
  EXPECT_EQ(parsed["placement"], "bidirectional");
  for (const char* form : {"order", "json", "csv"}) {
    const std::string file = std::string("zbv.") + form;
    EXPECT_EQ(out_of("generate zbv-1p --ranks 4 --microbatches 8 --format " + std::string(form) +
                     " -o " + file),
              "");
    EXPECT_EQ(run("check " + file).exit_code, 0) << file;
    EXPECT_EQ(json::parse(out_of("simulate " + file + " --topology v --format json"))["span"], 24)
        << file;
  }
}

// A lowered table without the actions of whole stages.
std::string transfers_alone(const std::string& table) {
  std::string kept;
  std::istringstream rows(table);
  for (std::string row; std::getline(rows, row);) {
    std::istringstream cells(row);
    std::string of_row;
    for (std::string cell; std::getline(cells, cell, ',');) {
      const bool whole =
          cell.find("SHARD") != std::string::npos || cell.find("REDUCE_GRAD") != std::string::npos;
      if (!whole) of_row += (of_row.empty() ? "" : ",") + cell;
    }
    kept += of_row + "\n";
  }
  return kept;
}

// PyTorch's own files of its three tests: two tables without their idle slots, and the lowering of
// one of them.
TEST_F(SimulateCommand, ReproducesPyTorchsFiles) {
  const auto file = [](const std::string& name) {
    std::ifstream in(testing_support::data_path("torch_csv/" + name));
    std::string text;
    for (std::string row; std::getline(in, row);) {
      if (!row.empty() && row.back() == '\r') row.pop_back();
      std::istringstream cells(row);
      std::string kept;
      for (std::string cell; std::getline(cells, cell, ',');) {
        if (!cell.empty()) kept += (kept.empty() ? "" : ",") + cell;
      }
      text += kept + "\n";
    }
    return text;
  };
  EXPECT_EQ(out_of("generate torch:DualPipeV --ranks 4 --microbatches 10 --format csv"),
            file("dualpipev_4rank_10mb.csv"));
  const std::string table =
      "generate torch:InterleavedZeroBubble --ranks 2 --stages-per-rank 2 --microbatches 8 "
      "--format csv";
  EXPECT_EQ(out_of(table), file("zb1p_2rank_2stagep_compute.csv"));
  (void)out_of(table + " --merge-halves -o merged.csv");
  // The file holds the transfers alone.
  EXPECT_EQ(transfers_alone(out_of("convert merged.csv --to csv --lower --for torch@2.11")),
            file("zb1p_2rank_2stagep_comms.csv"));
  expect_usage_error("generate 1f1b --ranks 2 --microbatches 4 --merge-halves", "torch:CLASS");
}

TEST_F(SimulateCommand, TheListNamesWhatCanBeGenerated) {
  const std::string list = out_of("generate --list");
  for (const char* name :
       {"gpipe", "1f1b", "1f1b-interleaved", "looped-bfs", "interleaved-zb", "zb-h1", "zb-h2", "zb",
        "zbv", "v-half", "v-min", "v-adaptive", "dualpipe", "dualpipev", "chimera", "hanayo", "gis",
        "torch:CLASS", "megatron"}) {
    EXPECT_NE(list.find(std::string("\n") + name + " "), std::string::npos) << name;
  }
}

TEST_F(SimulateCommand, RefusesWhatThereIsNot) {
  expect_usage_error("generate", "needs the name of a schedule, or `megatron`");
  expect_usage_error("generate zb-h3 --ranks 2",
                     "there is no schedule `zb-h3`; did you mean `zb-h");
  expect_usage_error("generate torch:Foo", "PyTorch has no schedule `Foo`; it has GPipe, 1F1B");
  expect_usage_error("generate dualpipe --ranks 3 --microbatches 8", "dualpipe");
  expect_usage_error("generate zb --ranks 2 --microbatches 4", "say --memory X");
  expect_usage_error("generate zb-1p --ranks 2 --microbatches 4 --memory 3", "--memory does too");
  expect_usage_error("generate 1f1b --ranks 2 --microbatches 4 --memory 3", "--memory has no use");
  expect_usage_error("generate 1f1b --ranks 2 --microbatches 4 --group 3", "--group has no use");
  expect_usage_error("generate 1f1b --ranks 0 --microbatches 4", "--ranks");
  expect_usage_error("generate zb-1p --ranks 2 --microbatches 4 --cost f=x", "`f=x` is not a cost");
  expect_usage_error("generate zb-1p --ranks 2 --microbatches 4 --mem f=1", "add up to 1");
  expect_usage_error("generate dualpipe --ranks 2 --microbatches 4 --format csv",
                     "csv cannot say it: the stages of a table are one pipeline");
  expect_usage_error("generate dualpipe --ranks 2 --microbatches 4 --format foo", "--format");
}

TEST_F(SimulateCommand, LimitsOfASchedule) {
  EXPECT_EQ(run("generate 1f1b --ranks 4 --microbatches 4 --max-ranks 3").exit_code, 4);
  EXPECT_EQ(run("generate 1f1b --ranks 4 --microbatches 4 --max-ranks 4").exit_code, 0);
  EXPECT_EQ(run("generate 1f1b --ranks 4 --microbatches 40 --max-count 39").exit_code, 4);
  EXPECT_EQ(run("generate 1f1b --ranks 4 --microbatches 40 --max-count 40").exit_code, 0);
  EXPECT_EQ(
      run("generate looped-bfs --chunks 10 --ranks 4 --microbatches 4 --max-count 39").exit_code,
      4);
  EXPECT_EQ(
      run("generate looped-bfs --chunks 10 --ranks 4 --microbatches 4 --max-count 40").exit_code,
      0);
  EXPECT_EQ(run("generate seq1f1b --group 3 --ranks 4 --microbatches 4 --max-count 11").exit_code,
            4);
  EXPECT_EQ(run("generate seq1f1b --group 3 --ranks 4 --microbatches 4 --max-count 12").exit_code,
            0);
}

// Entries are those of the schedule that is made: of whole backwards, of halves, of both, of two
// directions, of segments; and it can be read within the same limit.
TEST_F(SimulateCommand, TheLimitOfEntriesIsExact) {
  for (const std::string name :
       {"1f1b", "zb-h1", "zbv-1p", "dualpipe", "dualpipev", "chimera", "hanayo", "seq1f1b",
        "1f1b-interleaved-v3", "torch:InterleavedZeroBubble", "torch:GPipe"}) {
    const std::string line = "generate " + name + " --ranks 4 --microbatches 8";
    const auto made = json::parse(out_of(line + " --format json"));
    std::size_t entries = 0;
    for (const json& rank : made["ranks"]) {
      for (const json& entry : rank["order"]) entries += entry.is_array() ? entry.size() : 1;
    }
    const std::string limit = " --max-entries " + std::to_string(entries);
    const std::string below = " --max-entries " + std::to_string(entries - 1);
    EXPECT_EQ(run(line + limit + " -o made.order").exit_code, 0) << name;
    EXPECT_EQ(run("check made.order" + limit).exit_code, 0) << name;
    EXPECT_EQ(run("check made.order" + below).exit_code, 4) << name;
    const Outcome beyond = run(line + below);
    EXPECT_EQ(beyond.exit_code, 4) << name;
    EXPECT_EQ(beyond.out, "") << name;
    EXPECT_EQ(beyond.err, "error: the schedule has more than " + std::to_string(entries - 1) +
                              " entries\n  help: raise the limit with --max-entries\n");
  }
}

// Nothing is made, and no costs of ranks are taken, before the counts are known to be within
// limits.
TEST_F(SimulateCommand, WhatIsFarTooLargeTakesNoTime) {
  const std::string counts = " --ranks 2000000000 --microbatches 2000000000 --cost r0:f=2";
  EXPECT_EQ(run("generate 1f1b" + counts).exit_code, 4);
  EXPECT_EQ(run("sweep 1f1b" + counts).exit_code, 4);
  EXPECT_EQ(run("generate seq1f1b --group 2000000000" + counts).exit_code, 4);
}

TEST_F(SimulateCommand, SimulatesWhatItReads) {
  folder_.write("two.order",
                "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  const auto report =
      json::parse(out_of("simulate two.order --cost f=2,b=3,w=1,comm=5 --format json"));
  EXPECT_EQ(report["makespan"], 22);
  EXPECT_EQ(report["links"], "ideal");
  EXPECT_EQ(report["ranks"][1]["exposed_comm"], 5);
  const auto queued = json::parse(
      out_of("simulate two.order --cost f=2,b=3,w=1 --cost comm=5 --links queued --format json"));
  EXPECT_EQ(queued["links"], "rendezvous");
  EXPECT_EQ(queued["makespan"], 22);
  const auto buffered =
      json::parse(out_of("simulate two.order --cost comm=5 --transfers buffered --format json"));
  EXPECT_EQ(buffered["links"], "buffered");
  EXPECT_NE(out_of("simulate two.order").find("makespan"), std::string::npos);
  EXPECT_TRUE(out_of("simulate two.order --format grid").starts_with("rank 0 |F0"));
}

TEST_F(SimulateCommand, WritesATraceBeside) {
  folder_.write("one.te", "[1, 1, -1, -1]");
  EXPECT_NE(out_of("simulate one.te --trace out.json").find("makespan"), std::string::npos);
  EXPECT_EQ(json::parse(text_of("out.json")),
            json::parse(out_of("simulate one.te --format trace")));
  EXPECT_EQ(run("simulate one.te --trace /nowhere/out.json").exit_code, 5);
}

// The plan of the model file, or capo's own, is counted as `check` counts it.
TEST_F(SimulateCommand, SaysOfMemoryWhatCheckSays) {
  folder_.write("one.te", "[1, 1, 1, -1, -1.5, -1, -1.5, -1, -1.5]");
  folder_.write("model.json", out_of("model mixtral-8x7b"));
  for (const char* plan : {"te", "safe"}) {
    json model = json::parse(text_of("model.json"));
    model["plan"] = plan;
    folder_.write("planned.json", model.dump());
    const auto judged = json::parse(
        run("check one.te --model planned.json --format json").out)["bytes"]["ranks"][0];
    const auto simulated =
        json::parse(out_of("simulate one.te --model planned.json --format json"));
    EXPECT_EQ(simulated["memory_plan"], plan);
    EXPECT_EQ(simulated["ranks"][0]["peak_bytes"],
              judged["peak"].get<std::int64_t>() + judged["weights"].get<std::int64_t>());
  }
  const std::string text = out_of("simulate one.te --model model.json");
  EXPECT_NE(text.find("as `capo check --plan safe` counts them"), std::string::npos) << text;
  EXPECT_NE(text.find(" GiB"), std::string::npos) << text;
}

TEST_F(SimulateCommand, DerivesCostsFromADevice) {
  folder_.write("one.te", "[1, 1, -1, -1]");
  folder_.write("model.json", out_of("model deepseek-v3"));
  const std::string text = out_of("simulate one.te --model model.json --device-costs h100");
  EXPECT_NE(text.find("times in seconds"), std::string::npos) << text;
  EXPECT_NE(text.find("at 0.6 of 1.98 PFLOP/s"), std::string::npos) << text;
  folder_.write("wide.json", out_of("model deepseek-v3 --recipe none"));
  const std::string wide = out_of("simulate one.te --model wide.json --device-costs h100");
  EXPECT_NE(wide.find("at 0.6 of 989 TFLOP/s"), std::string::npos) << wide;
  const auto h100 =
      json::parse(out_of("simulate one.te --model model.json --device-costs h100 --format json"));
  const auto b200 = json::parse(
      out_of("simulate one.te --model-config deepseek-v3 --device-costs b200 --format json"));
  EXPECT_LT(b200["makespan"].get<double>(), h100["makespan"].get<double>());
  EXPECT_EQ(h100["time_unit"], "microsecond");
  EXPECT_EQ(h100["costs"][0]["task"], "forward");
  const auto slow =
      json::parse(out_of("simulate one.te --model model.json --device-costs h100 --efficiency "
                         "products=0.3,attention=0.25,memory=0.4,links=0.4 --format json"));
  EXPECT_NEAR(slow["makespan"].get<double>(), 2 * h100["makespan"].get<double>(), 1e-3);
  EXPECT_NE(run("simulate one.te --device-costs h100").err.find("no `configuration`"),
            std::string::npos);
  EXPECT_NE(run("simulate one.te --efficiency links=1").err.find("needs --device-costs"),
            std::string::npos);
  EXPECT_EQ(run("simulate one.te --model model.json --device-costs a100").exit_code, 2);
}

TEST_F(SimulateCommand, PrintsNoNumberWithAnExponent) {
  folder_.write("one.te", "[1, 1, -1, -1]");
  const std::string text = out_of("simulate one.te --cost f=1337409.6,b=0.00001337");
  EXPECT_NE(text.find("1337410"), std::string::npos) << text;
  EXPECT_EQ(text.find("e+"), std::string::npos) << text;
  EXPECT_EQ(text.find("e-0"), std::string::npos) << text;
}

TEST_F(SimulateCommand, AModelFileStatesCostsAndBytes) {
  folder_.write("one.te", "[1, 1, -1, -1]");
  folder_.write("model.json", R"({"schema": 1, "modules": {"mlp": {
      "cost": {"forward": 2, "backward": 3, "weight": 4},
      "bytes": {"input": 1, "output": 1, "activations": 7, "operands": 0}}}, "layers": "mlp"})");
  const auto report = json::parse(out_of("simulate one.te --model model.json --format json"));
  EXPECT_EQ(report["makespan"], 2 * (2 + 3 + 4));
  EXPECT_EQ(report["time_unit"], "microsecond");
  EXPECT_EQ(report["ranks"][0]["peak_bytes"], 2 * (7 + 1 + 1) + 1 + 1)
      << "two inputs, outputs and activations, and both gradients of a backward";
  EXPECT_EQ(json::parse(out_of("simulate one.te --model model.json --cost f=5 --format "
                               "json"))["makespan"],
            2 * (5 + 3 + 4));
}

TEST_F(SimulateCommand, AnOrderThatCannotRunIsExplained) {
  folder_.write("bad.te", "[-1, 1]");
  const Outcome bad = run("simulate bad.te");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_NE(bad.err.find("error[S23]"), std::string::npos) << bad.err;
  EXPECT_TRUE(
      bad.err.ends_with("error: bad.te cannot be simulated: the orders have errors of their own\n"))
      << bad.err;
  folder_.write("stuck.csv",
                "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  const Outcome stuck = run("simulate stuck.csv");
  EXPECT_EQ(stuck.exit_code, 1);
  EXPECT_NE(stuck.err.find("error[T09]"), std::string::npos) << stuck.err;
  EXPECT_EQ(run("simulate stuck.csv --links ideal").exit_code, 0);
}

TEST_F(SimulateCommand, WrongUseIsRefused) {
  folder_.write("one.te", "[1, -1]");
  expect_usage_error("simulate one.te --cost r1:f=2", "speaks of rank 1, but there are 1");
  expect_usage_error("simulate one.te --cost c2:f=2",
                     "speaks of chunk 2, but no rank has more than 1");
  expect_usage_error("simulate one.te --devices 0,0", "names the devices of 2 ranks");
  expect_usage_error("simulate one.te --mem f=1", "add up to 1");
  expect_usage_error("simulate one.te --ep-slots mtp", "needs --ep-overlap");
  expect_usage_error("simulate one.te --max-items=-1", "--max-items");
  expect_usage_error("simulate one.te --width 10", "--width");
  expect_usage_error("compare one.te", "at least two");
  EXPECT_EQ(run("simulate none.te").exit_code, 3);
}

TEST_F(SimulateCommand, ListsOfTheReportAreCut) {
  (void)out_of("generate 1f1b --ranks 4 --microbatches 8 -o s.order");
  const auto whole = json::parse(out_of("simulate s.order --format json"));
  const auto cut = json::parse(out_of("simulate s.order --format json --max-items 3"));
  EXPECT_EQ(cut["idle"].size(), 3U);
  EXPECT_EQ(cut["critical_path"].size(), 3U);
  EXPECT_EQ(cut["idle_total"], whole["idle_total"]);
  EXPECT_EQ(whole["idle"].size(), whole["idle_total"]);
}

TEST_F(SimulateCommand, ComparesSideBySide) {
  (void)out_of("generate 1f1b --ranks 4 --microbatches 8 -o a.order");
  (void)out_of("generate zb-h1 --ranks 4 --microbatches 8 -o b.order");
  const std::string text = out_of("compare a.order b.order");
  EXPECT_NE(text.find("a.order"), std::string::npos);
  EXPECT_NE(text.find("27 (-18.18 %)"), std::string::npos) << text;
  const auto parsed = json::parse(out_of("compare a.order b.order --format json"));
  EXPECT_EQ(parsed["simulations"][0]["makespan"], 33);
}

// ZB-V has two chunks a rank. Its costs are those of 1F1B as long as they are of a rank.
TEST_F(SimulateCommand, CostsAreOfARankUnlessAFlagSaysOfAChunk) {
  (void)out_of("generate 1f1b --ranks 4 --microbatches 8 -o a.order");
  (void)out_of("generate zbv --ranks 4 --microbatches 8 --cost f=10,b=12,w=8 -o b.order");
  const std::string line = "compare a.order b.order --cost f=10,b=12,w=8";
  const auto of_rank = json::parse(out_of(line + " --format json"));
  EXPECT_EQ(of_rank["cost_per"], "rank");
  EXPECT_LT(of_rank["simulations"][1]["makespan"], of_rank["simulations"][0]["makespan"]);
  EXPECT_TRUE(of_rank["simulations"][1]["best"]);
  const auto of_chunk = json::parse(out_of(line + " --cost-per chunk --format json"));
  EXPECT_EQ(of_chunk["cost_per"], "chunk");
  EXPECT_EQ(of_chunk["simulations"][0]["makespan"], of_rank["simulations"][0]["makespan"]);
  EXPECT_EQ(of_chunk["simulations"][1]["makespan"].get<double>(),
            2 * of_rank["simulations"][1]["makespan"].get<double>());
  EXPECT_NE(
      out_of(line).find("These orders have 1 and 2 chunks a rank. Costs are of one microbatch "
                        "on one rank"),
      std::string::npos);
  EXPECT_NE(out_of(line + " --cost-per chunk").find("in one chunk, so that orders"),
            std::string::npos);
  EXPECT_EQ(out_of("compare a.order a.order").find("chunks a rank"), std::string::npos);

  EXPECT_EQ(json::parse(out_of("simulate b.order --format json"))["cost_per"], "rank");
  EXPECT_NE(out_of("simulate b.order").find("units of --cost of a rank"), std::string::npos);
  EXPECT_EQ(json::parse(out_of("sweep 1f1b --ranks 2 --microbatches 2 --cost-per chunk --format "
                               "json"))["cost_per"],
            "chunk");
}

// A microbatch is in one of two pipelines, and passes one chunk of each rank.
TEST_F(SimulateCommand, TwoPipelinesShareNothing) {
  (void)out_of("generate dualpipe --ranks 4 --microbatches 8 -o d.order");
  EXPECT_EQ(out_of("simulate d.order --cost f=3,b=4,w=1 --format grid"),
            out_of("simulate d.order --cost f=3,b=4,w=1 --cost-per chunk --format grid"));
}

// A search sees the ratio of times to transfers that the simulation has.
TEST_F(SimulateCommand, ASearchTakesTheCostsOfTheSimulation) {
  EXPECT_EQ(out_of("generate zbv-1p --ranks 4 --microbatches 12 --cost f=6,b=8,w=4,comm=1"),
            out_of("generate zbv-1p --ranks 4 --microbatches 12 --cost f=3,b=4,w=2,comm=1 "
                   "--cost-per chunk"));
}

TEST_F(SimulateCommand, ALinkHasTwoDirections) {
  folder_.write("two.order",
                "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  const auto makespan = [&](const std::string& cost) {
    return json::parse(out_of("simulate two.order --cost " + cost + " --format json"))["makespan"];
  };
  EXPECT_EQ(makespan("r0-r1:comm=5"), 6 + 10);
  EXPECT_EQ(makespan("r0>r1:comm=5"), 6 + 5);
}

TEST_F(SimulateCommand, ZbvIsThePapersWithoutALimit) {
  const std::string counts = " --ranks 4 --microbatches 12";
  EXPECT_EQ(out_of("generate zbv" + counts), out_of("generate zbv-1p" + counts));
  expect_usage_error("generate zb" + counts, "searches within a limit");
}

// --- choosing ------------------------------------------------------------------------------------

TEST_F(SimulateCommand, ComparesPublishedSchedulesByName) {
  const std::string counts = " --ranks 4 --microbatches 8";
  const auto named = json::parse(out_of("compare 1f1b zbv dualpipev --format json" + counts));
  ASSERT_EQ(named["simulations"].size(), 3U);
  EXPECT_EQ(named["simulations"][0]["name"], "1f1b");
  EXPECT_EQ(named["simulations"][0]["makespan"], 33);
  folder_.write("zbv", "[1, -1]");  // a file comes first
  const Outcome mixed = run("compare 1f1b zbv --format json" + counts);
  EXPECT_EQ(json::parse(mixed.out)["simulations"][1]["makespan"], 3);
  expect_usage_error("compare all", "needs --ranks and --microbatches");
  EXPECT_NE(run("compare 1f1b gpipe").err.find("1f1b is also a published schedule"),
            std::string::npos);
  expect_usage_error("compare 1f1b foo" + counts, "there is no schedule `foo`");
}

TEST_F(SimulateCommand, ComparesAllThatThereAreOfTheCounts) {
  const Outcome all = run("compare all --ranks 3 --microbatches 8 --sort makespan --format json");
  EXPECT_EQ(all.exit_code, 0);
  const auto simulations = json::parse(all.out)["simulations"];
  EXPECT_GT(simulations.size(), 10U);
  for (std::size_t i = 1; i < simulations.size(); ++i) {
    EXPECT_LE(simulations[i - 1]["makespan"], simulations[i]["makespan"]);
  }
  EXPECT_TRUE(simulations[0]["best"]);
  EXPECT_NE(all.err.find("note: dualpipe is left out: "), std::string::npos) << all.err;
  // Too many for one line each: an order a line.
  EXPECT_NE(run("compare all --ranks 3 --microbatches 8").out.find("\n1f1b  "), std::string::npos);
}

TEST_F(SimulateCommand, AMemoryLimitIsAFilter) {
  const std::string line = "compare gpipe 1f1b --ranks 4 --microbatches 8 --sort makespan";
  const auto limited = json::parse(out_of(line + " --memory 4 --format json"))["simulations"];
  EXPECT_EQ(limited[0]["name"], "1f1b");
  EXPECT_TRUE(limited[0]["fits"]);
  EXPECT_TRUE(limited[0]["best"]);
  EXPECT_FALSE(limited[1]["fits"]);
  EXPECT_FALSE(limited[1]["best"]);
  EXPECT_TRUE(json::parse(out_of(line + " --format json"))["simulations"][0]["fits"].is_null());
  const std::string text = out_of(line + " --memory 4");
  EXPECT_NE(text.find("within 4"), std::string::npos) << text;
  EXPECT_NE(text.find("best by makespan"), std::string::npos) << text;
}

TEST_F(SimulateCommand, ASweepSortsAndMarksWithinACompetition) {
  const std::string grid = "sweep gpipe 1f1b zb-h1 --ranks 4 --microbatches 8,16";
  const auto runs = json::parse(out_of(grid + " --memory 4 --sort makespan --format json"))["runs"];
  ASSERT_EQ(runs.size(), 6U);
  std::vector<std::string> names;
  for (const auto& each : runs) names.push_back(each["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"zb-h1", "1f1b", "gpipe", "zb-h1", "1f1b", "gpipe"}));
  EXPECT_TRUE(runs[0]["best"]);
  EXPECT_FALSE(runs[1]["best"]);
  EXPECT_FALSE(runs[2]["fits"]);
  EXPECT_EQ(runs[3]["microbatches"], 16);
  EXPECT_TRUE(runs[3]["best"]);
  const std::string text = out_of(grid + " --memory 4");
  EXPECT_NE(text.find("exceeds 4"), std::string::npos) << text;
  EXPECT_NE(text.find("  best\n"), std::string::npos) << text;
  // A schedule that is searched for keeps to the limit as the peak is counted.
  const auto searched = json::parse(
      out_of("sweep zb zbv v-adaptive --ranks 4 --microbatches 8 --memory 6 --format json"));
  for (const auto& each : searched["runs"]) EXPECT_TRUE(each["fits"]) << each;
}

TEST_F(SimulateCommand, ASweepHasAll) {
  const auto runs =
      json::parse(out_of("sweep all --ranks 4 --microbatches 8 --format json"))["runs"];
  EXPECT_GT(runs.size(), 15U);
  expect_usage_error("sweep all zb-h3 --ranks 4 --microbatches 8", "there is no schedule `zb-h3`");
}

TEST_F(SimulateCommand, AGridShowsOneRank) {
  (void)out_of("generate 1f1b --ranks 4 --microbatches 8 -o a.order");
  const std::string all = out_of("simulate a.order --format grid");
  const std::string one = out_of("simulate a.order --format grid --rank 2");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 2);
  EXPECT_NE(all.find(one.substr(0, one.find('\n'))), std::string::npos);
}

TEST_F(SimulateCommand, SweepsAGrid) {
  const auto parsed =
      json::parse(out_of("sweep 1f1b dualpipe --ranks 4,5 --microbatches 10 --cost comm=0 --cost "
                         "comm=1 --format json"));
  ASSERT_EQ(parsed["runs"].size(), 8U);
  EXPECT_EQ(parsed["runs"][0]["makespan"], 39);
  EXPECT_EQ(parsed["runs"][1]["cost"], "comm=1");
  EXPECT_GT(parsed["runs"][1]["makespan"], 39);
  EXPECT_TRUE(parsed["runs"][6].contains("refused"));
  const std::string grid =
      "sweep 1f1b zb-2p zbv-1p --ranks 4,8 --microbatches 8,16,24 --cost f=2 --threads ";
  const std::string of_one_thread = out_of(grid + "1");
  EXPECT_EQ(out_of(grid + "2"), of_one_thread);
  EXPECT_EQ(out_of(grid + "8"), of_one_thread);
  const std::string text = out_of("sweep 1f1b --ranks 4 --microbatches 8,16");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  expect_usage_error("sweep 1f1b --ranks 4 --microbatches 8 --memory 0", "is no number above 0");
  expect_usage_error("sweep --ranks 4 --microbatches 8", "the name of a schedule");
}

TEST_F(SimulateCommand, LimitsOfASweep) {
  const std::string grid = "sweep 1f1b --ranks 4 --microbatches 8,16";
  const Outcome beyond = run(grid + " --max-runs 1");
  EXPECT_EQ(beyond.exit_code, 4);
  EXPECT_EQ(beyond.out, "");
  EXPECT_EQ(beyond.err,
            "error: the grid has more than 1 points\n  help: raise the limit with --max-runs\n");
  EXPECT_EQ(run(grid + " --max-runs 2").exit_code, 0);

  EXPECT_EQ(run(grid + " --max-entries 128").exit_code, 0);
  const Outcome one_beyond = run(grid + " --max-entries 127");
  EXPECT_EQ(one_beyond.exit_code, 4);
  EXPECT_EQ(std::count(one_beyond.out.begin(), one_beyond.out.end(), '\n'), 3);
  EXPECT_NE(one_beyond.out.find(
                "1f1b                     4    16        refused: the schedule has more than 127 "
                "entries; raise the limit with --max-entries\n"),
            std::string::npos)
      << one_beyond.out;
  EXPECT_EQ(run(grid + " --max-ranks 3").exit_code, 4);
  EXPECT_EQ(run(grid + " --max-count 15").exit_code, 4);
}

TEST_F(SimulateCommand, ASweepKnowsEveryNameOrRunsNone) {
  const std::string counts = " --ranks 4 --microbatches 8";
  expect_usage_error("sweep 1f1b foo" + counts,
                     "there is no schedule `foo`; `capo generate --list` lists them");
  expect_usage_error("sweep zb-h3" + counts, "there is no schedule `zb-h3`; did you mean `zb-h");
  expect_usage_error("sweep torch:Foo" + counts, "PyTorch has no schedule `Foo`; it has GPipe");
  for (const char* name : {"zb-2p", "gis-g4", "vpp", "1f1b-interleaved-v2", "torch:GPipe"}) {
    EXPECT_EQ(out_of("sweep " + (name + counts)).find("refused"), std::string::npos) << name;
  }
  // Of a known one, that there is none of these counts is an answer.
  EXPECT_NE(out_of("sweep dualpipe --ranks 3 --microbatches 8").find("refused: "),
            std::string::npos);
}

TEST_F(SimulateCommand, SameInputSameBytes) {
  (void)out_of("generate zbv-2p --ranks 4 --microbatches 12 --cost f=3,b=4,w=2,comm=1 -o s.order");
  for (const char* format : {"text", "json", "grid", "trace"}) {
    const std::string line = std::string("simulate s.order --format ") + format;
    EXPECT_EQ(out_of(line), out_of(line));
  }
}

}  // namespace
}  // namespace capo

// `mpirun -n P capo run FILE --transport mpi` where gradients are reduced and rows exchanged over
// processes: the report is that of the run in one process, wrong reductions are as wrong, and
// members that do not meet are stuck where the verdict says.

#include "tests/cli/mpirun.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

class MpiReductions : public Mpi {
 protected:
  // Runs in one process and in so many, and returns what both report.
  [[nodiscard]] std::pair<json, json> in_both(int processes, std::vector<std::string> run,
                                              int exit_code) const {
    run.insert(run.begin(), "run");
    run.insert(run.end(), {"--device", "host", "--format", "json"});
    const Outcome one = run_capo(run, {.directory = folder_.path()});
    EXPECT_EQ(one.exit_code, exit_code) << one.err;
    run.insert(run.end(), {"--transport", "mpi"});
    const Outcome across = mpirun(processes, run);
    EXPECT_EQ(across.exit_code, exit_code) << across.err;
    return {without_times(one.out), without_times(across.out)};
  }
  // Takes an order that gets stuck, over two processes, and returns what is said; it is as on
  // paper.
  [[nodiscard]] std::string stuck(const std::vector<std::string>& more) const {
    std::vector<std::string> run{"run", "step.order", "--unchecked", "--device", "host"};
    run.insert(run.end(), more.begin(), more.end());
    const Outcome alone = run_capo(run, {.directory = folder_.path()});
    run.insert(run.end(), {"--transport", "mpi", "--timeout", "20"});
    const Outcome outcome = mpirun(2, run);
    EXPECT_EQ(outcome.exit_code, alone.exit_code) << outcome.err;
    EXPECT_TRUE(holds(outcome.err, alone.err.substr(0, alone.err.rfind("error: ")))) << outcome.err;
    return outcome.err;
  }
};

constexpr const char* kPipeline =
    "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1\n"
    "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1 reduce1\n";
constexpr const char* kOneRank = "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1 reduce1\n";

TEST_F(MpiReductions, ReportWhatOneProcessDoes) {
  folder_.write("step.order", kOneRank);
  const auto [one, two] = in_both(2, {"step.order", "--replicas", "2"}, 0);
  EXPECT_EQ(two, one);
  EXPECT_EQ(two["bit_equal"], true);
  EXPECT_EQ(two["reductions"], json::parse(R"([{"chunk": 1, "ranks": [0, 1]}])"));
}

TEST_F(MpiReductions, OfReplicasOfAPipelineReportWhatOneProcessDoes) {
  folder_.write("step.order", kPipeline);
  for (const char* transfers : {"rendezvous", "buffered"}) {
    const auto [one, four] = in_both(
        4,
        {"step.order", "--replicas", "2", "--modules", "layernorm-mlp", "--transfers", transfers},
        0);
    EXPECT_EQ(four, one) << transfers;
    EXPECT_EQ(four["bit_equal"], true);
    EXPECT_EQ(four["float64"]["within_bounds"], true);
  }
}

TEST_F(MpiReductions, MembersMayShareAProcess) {
  folder_.write("step.order", kPipeline);
  std::vector<std::string> run{"run",      "step.order", "--replicas", "2",
                               "--device", "host",       "--format",   "json"};
  const Outcome one = run_capo(run, {.directory = folder_.path()});
  run.insert(run.end(), {"--transport", "mpi", "--ranks-per-device", "2"});
  const Outcome two = mpirun(2, run);
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(without_times(two.out), without_times(one.out));
  EXPECT_EQ(json::parse(two.out)["edges"],
            json::parse(R"({"in-process": [[0, 1], [2, 3]], "mpi": [[0, 2], [1, 3]]})"));
}

// G13 over processes: the late gradient is added on its rank alone.
TEST_F(MpiReductions, BeforeTheLastGradientShow) {
  folder_.write("step.order",
                "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 reduce1 W1.1\n");
  const auto [one, two] = in_both(2, {"step.order", "--replicas", "2", "--unchecked"}, 1);
  EXPECT_EQ(two, one);
  EXPECT_EQ(two["bit_equal"], false);
  EXPECT_EQ(two["float64"]["within_bounds"], true);
  for (const json& tensor : two["parameters"]) EXPECT_EQ(tensor["bit_equal"], false);
}

constexpr const char* kGroup =
    R"({"groups": [{"name": "dp", "members": [0, 1], "actions": ["reduce"]}]})";

// One member reduces chunk 1 first, the other chunk 2: neither goes on, over MPI as on paper.
TEST_F(MpiReductions, InTwoSequencesAreStuckWhereTheyShould) {
  folder_.write("m.json", kGroup);
  folder_.write("step.order",
                "capo 1\nranks 2\nmicrobatches 1\n"
                "rank 0: F1.0 F2.0 B2.0 B1.0 reduce1 reduce2\n"
                "rank 1: F1.0 F2.0 B2.0 B1.0 reduce2 reduce1\n");
  const std::string said = stuck({"--model", "m.json"});
  EXPECT_TRUE(holds(said, "  2 processes came as far over MPI and no further\n")) << said;
  EXPECT_TRUE(holds(said, "rank 0 exchanges: `reduce1` waits for what never comes")) << said;
  EXPECT_TRUE(holds(said, "rank 1 exchanges: `reduce2` waits for what never comes")) << said;
}

TEST_F(MpiReductions, ThatAMemberLacksAreStuckWhereTheyShould) {
  folder_.write("m.json", kGroup);
  folder_.write("step.order",
                "capo 1\nranks 2\nmicrobatches 1\n"
                "rank 0: F1.0 F2.0 B2.0 B1.0 reduce1 reduce2\n"
                "rank 1: F1.0 F2.0 B2.0 B1.0 reduce1\n");
  const std::string said = stuck({"--model", "m.json"});
  EXPECT_TRUE(holds(said, "  2 processes came as far over MPI and no further\n")) << said;
  EXPECT_TRUE(holds(said, "rank 0 exchanges: `reduce2` waits for what never comes")) << said;
}

class MpiExchanges : public MpiReductions {};

constexpr const char* kExperts =
    R"({"groups": [{"name": "ep", "members": [0, 1],
         "actions": ["dispatch-F", "combine-F", "dispatch-B", "combine-B"]}]})";
constexpr const char* kExchanging =
    "capo 1\nranks 2\nmicrobatches 2\n"
    "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 B1.0 combine-B1.1 dispatch-B1.1 B1.1\n"
    "rank 1: F1.0 F1.1 dispatch-F1.0 combine-F1.0 combine-B1.1 dispatch-B1.1 B1.0 B1.1\n";

TEST_F(MpiExchanges, ReportWhatOneProcessDoes) {
  folder_.write("m.json", kExperts);
  folder_.write("step.order", kExchanging);
  for (const char* transfers : {"rendezvous", "buffered"}) {
    const auto [one, two] =
        in_both(2, {"step.order", "--model", "m.json", "--transfers", transfers}, 0);
    EXPECT_EQ(two, one) << transfers;
    EXPECT_EQ(two["bit_equal"], true);
    EXPECT_EQ(two["float64"]["within_bounds"], true);
    EXPECT_EQ(two["exchanges"], json::parse(R"([{"ranks": [0, 1]}])"));
  }
}

// Between the exchanges of chunk 2 its experts compute on rows of both ranks.
TEST_F(MpiExchanges, AroundExpertsReportWhatOneProcessDoes) {
  folder_.write("m.json", kExperts);
  constexpr const char* kActions =
      "F1.0 dispatch-F2.0 F2.0 combine-F2.0 dispatch-F2.1 F2.1 combine-F2.1 F1.1 B1.0 combine-B2.0 "
      "I2.0 dispatch-B2.0 combine-B2.1 I2.1 W2.0 dispatch-B2.1 W2.1 B1.1\n";
  folder_.write("step.order", std::string("capo 1\nranks 2\nmicrobatches 2\nrank 0: ") + kActions +
                                  "rank 1: " + kActions);
  const auto [one, two] = in_both(2, {"step.order", "--model", "m.json"}, 0);
  EXPECT_EQ(two, one);
  EXPECT_EQ(two["bit_equal"], true);
  EXPECT_EQ(two["float64"]["within_bounds"], true);
}

TEST_F(MpiExchanges, OfAllCopiesReportWhatOneProcessDoes) {
  folder_.write("m.json", kExperts);
  folder_.write("step.order", kExchanging);
  const auto [one, four] = in_both(4, {"step.order", "--model", "m.json", "--replicas", "2"}, 0);
  EXPECT_EQ(four, one);
  EXPECT_EQ(four["bit_equal"], true);
  EXPECT_EQ(four["exchanges"], json::parse(R"([{"ranks": [0, 1, 2, 3]}])"));
}

// One member dispatches another microbatch first: neither goes on, over MPI as on paper.
TEST_F(MpiExchanges, InTwoSequencesAreStuckWhereTheyShould) {
  folder_.write("m.json", kExperts);
  folder_.write(
      "step.order",
      "capo 1\nranks 2\nmicrobatches 2\n"
      "rank 0: F1.0 F1.1 dispatch-F1.0 combine-F1.0 dispatch-F1.1 combine-F1.1 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 dispatch-F1.1 combine-F1.1 dispatch-F1.0 combine-F1.0 B1.0 "
      "B1.1\n");
  const std::string said = stuck({"--model", "m.json"});
  EXPECT_TRUE(holds(said, "  2 processes came as far over MPI and no further\n")) << said;
  EXPECT_TRUE(holds(said, "rank 0 exchanges: `dispatch-F1.0` waits for what never comes")) << said;
  EXPECT_TRUE(holds(said, "rank 1 exchanges: `dispatch-F1.1` waits for what never comes")) << said;
}

// Copies that do not share a device are foretold; both reduce for 100 behind what takes 24.
TEST_F(MpiReductions, OfCopiesOnDevicesOfTheirOwnAreForetold) {
  folder_.write("step.order", kOneRank);
  folder_.write("m.json", R"({"schema": 1, "transfer": {"latency": 1}, "layers": "m",
    "modules": {"m": {"kind": "linear", "cost": {"forward": 5, "backward": 4, "weight": 3,
                                                 "reduce": 100}}}})");
  const std::vector<std::string> run{"run", "step.order", "--model",  "m.json", "--replicas",
                                     "2",   "--predict",  "--device", "host"};
  std::vector<std::string> apart = run;
  apart.insert(apart.end(), {"--transport", "mpi"});
  const Outcome outcome = mpirun(2, apart);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, "us measured, 124 us simulated")) << outcome.out;
  const Outcome alone = run_capo(run, {.directory = folder_.path()});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(holds(alone.err, "nothing is predicted of replicas on one device")) << alone.err;
}

TEST_F(MpiReductions, NeedAProcessForEachRankOfAllReplicas) {
  folder_.write("step.order", kPipeline);
  const Outcome outcome = mpirun(2, {"run", "step.order", "--replicas", "2", "--transport", "mpi"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err, "error: step.order has 4 ranks and was started in 2 processes\n"))
      << outcome.err;
  EXPECT_TRUE(holds(outcome.err, "mpirun -n 4 capo run ")) << outcome.err;
}

}  // namespace
}  // namespace capo

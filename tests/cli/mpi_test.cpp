// `mpirun -n P capo run FILE --transport mpi`: what it prints is the report of the run in one
// process, and whatever goes wrong ends all processes with a reason.

#include "tests/cli/mpirun.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  std::istringstream lines(run_capo({"generate", "--list"}).out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!line.starts_with(' ') && !name.empty()) names.push_back(name);
  }
  return names;
}

TEST_F(Mpi, TwoProcessesReportWhatOneDoes) {
  ASSERT_TRUE(publish("1f1b", 2, 4));
  const std::vector<std::string> run{"run", "step.order", "--device", "host", "--format", "json"};
  const Outcome one = run_capo(run, {.directory = folder_.path()});
  std::vector<std::string> across = run;
  across.insert(across.end(), {"--transport", "mpi"});
  const Outcome two = mpirun(2, across);
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(without_times(two.out), without_times(one.out));
  EXPECT_EQ(json::parse(two.out)["transport"], "mpi");
  EXPECT_EQ(json::parse(one.out)["transport"], "in-process");
}

TEST_F(Mpi, TheReportNamesTheTransportAndNothingElseDiffers) {
  ASSERT_TRUE(publish("zbv", 2, 4));
  const Outcome two = mpirun(2, {"run", "step.order", "--transport", "mpi"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_TRUE(holds(two.out, "mpi between 2 processes, ")) << two.out;
  EXPECT_TRUE(holds(two.out, "gradients equal to eager, to the bit: 4 of 4 of parameters"))
      << two.out;
  EXPECT_EQ(two.err, "");
}

// When the task of this name ran on a rank, as the timeline has it.
std::pair<double, double> span_in(const json& trace, const std::string& name, int rank) {
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != name || event["pid"] != rank) continue;
    const double begin = event["ts"];
    return {begin, begin + event["dur"].get<double>()};
  }
  ADD_FAILURE() << name << " of rank " << rank << " is not in the timeline";
  return {};
}

// A task that waits for a message of another process begins after that message began there.
TEST_F(Mpi, TimesOfAllRanksAreOnOneAxis) {
  ASSERT_TRUE(publish("1f1b", 2, 2));
  const Outcome two = mpirun(2, {"run", "step.order", "--transport", "mpi", "-o", "t.json"});
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_TRUE(holds(two.out, "clocks: times of 2 processes agree within ")) << two.out;
  const json trace = json::parse(folder_.read("t.json"));
  EXPECT_GE(span_in(trace, "F1.0", 1).first, span_in(trace, "F1.0", 0).second);
  EXPECT_GE(span_in(trace, "B1.0", 0).first, span_in(trace, "B1.0", 1).second);
}

constexpr std::string_view kSmallModel =
    R"({"modules": {"default": {"kind": "linear", "dtype": "bf16",
        "shape": {"tokens": 4, "hidden": 4, "ffn": 4}}}})";

TEST_F(Mpi, MessagesBetweenTwoProcessesAreMeasured) {
  ASSERT_TRUE(publish("1f1b", 2, 2));
  folder_.write("m.json", std::string(kSmallModel));
  const Outcome measured =
      mpirun(2, {"measure", "--model", "m.json", "--transport", "mpi", "-o", "costs.json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_TRUE(holds(measured.out, "transfer of 32 bytes: latency ")) << measured.out;
  const json costs = json::parse(folder_.read("costs.json"));
  EXPECT_EQ(costs["transfer"]["bytes"], 32);
  EXPECT_GT(costs["transfer"]["latency"], 0);
  EXPECT_TRUE(costs["modules"]["default"]["cost"].contains("forward"));
  const Outcome run =
      mpirun(2, {"run", "step.order", "--model", "costs.json", "--transport", "mpi", "--predict"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(holds(run.out, " us simulated, ")) << run.out;
}

constexpr const char* kMeasuredExperts = R"({"schema": 1, "topology": "independent",
    "modules": {"experts": {"kind": "grouped-mlp", "dtype": "bf16", "splits": "device",
      "flags": {"fuse_wgrad_accumulation": true, "grad_added_to_main_grad": true},
      "shape": {"tokens": 8, "hidden": 16, "ffn": 16, "groups": 2}}}, "layers": "experts",
    "groups": [{"name": "ep", "members": [0, 1],
                "actions": ["dispatch-F", "combine-F", "dispatch-B", "combine-B"]},
               {"name": "dp", "members": [0, 1], "actions": ["reduce"]}]})";

TEST_F(Mpi, WhatGroupsExchangeAndReduceIsMeasuredBetweenTwoProcesses) {
  folder_.write("m.json", std::string(kMeasuredExperts));
  const Outcome measured =
      mpirun(2, {"measure", "--model", "m.json", "--transport", "mpi", "-o", "costs.json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const json cost = json::parse(folder_.read("costs.json"))["modules"]["experts"]["cost"];
  for (const char* of : {"dispatch", "combine", "reduce", "forward"}) {
    ASSERT_TRUE(cost.contains(of)) << of;
    EXPECT_GT(cost[of].get<double>(), 0) << of;
  }
  const std::string actions =
      "F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0 reduce1\n";
  folder_.write("step.order", "capo 1\nranks 2\nmicrobatches 1\nplacement independent\nrank 0: " +
                                  actions + "rank 1: " + actions);
  const Outcome run = mpirun(2, {"run", "step.order", "--model", "costs.json", "--transport", "mpi",
                                 "--predict", "--format", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const double whole = cost["whole"].get<double>();
  // The only backward finds no gradient to add to.
  const double added = std::min(cost.value("autograd", 0.0), whole);
  const double computes = cost["forward"].get<double>() + whole - added / 3;
  const double communicates = 2 * (cost["dispatch"].get<double>() + cost["combine"].get<double>()) +
                              cost["reduce"].get<double>();
  EXPECT_NEAR(json::parse(run.out)["simulated_makespan_us"].get<double>(), computes + communicates,
              1e-3 * (computes + communicates))
      << "nothing stands beside anything";
}

TEST_F(Mpi, WhatNoGroupOfSeveralPerformsIsNotMeasuredBetweenProcesses) {
  json alone = json::parse(kMeasuredExperts);
  alone["groups"] = {{{"name", "ep"},
                      {"members", {0}},
                      {"actions", {"dispatch-F", "combine-F", "dispatch-B", "combine-B"}}},
                     {{"name", "dp"}, {"members", {1}}, {"actions", {"reduce"}}}};
  folder_.write("m.json", alone.dump());
  const Outcome measured =
      mpirun(2, {"measure", "--model", "m.json", "--transport", "mpi", "-o", "costs.json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const json cost = json::parse(folder_.read("costs.json"))["modules"]["experts"]["cost"];
  EXPECT_TRUE(cost.contains("dispatch")) << "rows are permuted all the same";
  EXPECT_FALSE(cost.contains("reduce"));
}

TEST_F(Mpi, MessagesAreMeasuredBetweenTwoProcessesAndNoOtherNumber) {
  folder_.write("m.json", std::string(kSmallModel));
  const Outcome three = mpirun(3, {"measure", "--model", "m.json", "--transport", "mpi"});
  EXPECT_EQ(three.exit_code, 5);
  EXPECT_TRUE(
      holds(three.err, "error: messages are measured between 2 processes, and 3 were launched\n"))
      << three.err;
}

TEST(MeasuredMessages, NeedOneSizeAndTheMemoryOfTheTransport) {
  const ScratchFolder folder;
  folder.write("m.json", std::string(kSmallModel));
  folder.write("two.json", R"({"layers": "a", "modules": {
      "a": {"kind": "linear", "dtype": "bf16", "shape": {"tokens": 4, "hidden": 4, "ffn": 4}},
      "b": {"kind": "linear", "dtype": "bf16", "shape": {"tokens": 8, "hidden": 4, "ffn": 4}}}})");
  const auto measured = [&](const std::string& model, const std::string& device) {
    return run_capo({"measure", "--model", model, "--transport", "mpi", "--device", device},
                    {.directory = folder.path()});
  };
  const Outcome two = measured("two.json", "host");
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_TRUE(holds(two.err, "modules differ in what a stage hands on")) << two.err;
  const Outcome cuda = measured("m.json", "cuda");
  EXPECT_EQ(cuda.exit_code, 2);
  EXPECT_TRUE(holds(cuda.err, "mpi moves the memory of processors: take --device host"))
      << cuda.err;
}

// Runs every schedule that there is of so many ranks, one in three with buffered sends.
class Schedules : public Mpi, public ::testing::WithParamInterface<int> {};

TEST_P(Schedules, AreEqualToTheRunInOneProcess) {
  const int ranks = GetParam();
  int ran = 0;
  for (const std::string& name : schedule_names()) {
    if (!publish(name, ranks, 4)) continue;
    std::vector<std::string> run{"run",    "step.order", "--device",  "host", "--format",  "json",
                                 "--plan", "safe",       "--replays", "1",    "--float64", "none"};
    if (ran % 3 == 2) run.insert(run.end(), {"--transfers", "buffered"});
    const Outcome one = run_capo(run, {.directory = folder_.path()});
    run.insert(run.end(), {"--transport", "mpi"});
    const Outcome across = mpirun(ranks, run);
    EXPECT_EQ(across.exit_code, 0) << name << "\n" << across.err;
    EXPECT_EQ(without_times(across.out), without_times(one.out)) << name;
    ++ran;
  }
  EXPECT_GE(ran, 12);
}

INSTANTIATE_TEST_SUITE_P(OfRanks, Schedules, ::testing::Values(2, 4));

TEST_F(Mpi, RanksMayShareAProcess) {
  ASSERT_TRUE(publish("zbv", 4, 4));
  const std::vector<std::string> run{"run", "step.order", "--device", "host", "--format", "json"};
  const Outcome one = run_capo(run, {.directory = folder_.path()});
  std::vector<std::string> across = run;
  across.insert(across.end(), {"--transport", "mpi", "--ranks-per-device", "3"});
  const Outcome two = mpirun(2, across);
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(without_times(two.out), without_times(one.out));
}

TEST_F(Mpi, TheTimelineHoldsAllRanks) {
  ASSERT_TRUE(publish("1f1b", 2, 2));
  const Outcome two =
      mpirun(2, {"run", "step.order", "--transport", "mpi", "--float64", "none", "-o", "t.json"});
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const json trace = json::parse(folder_.read("t.json"));
  std::set<int> ranks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ranks.insert(event["pid"].get<int>());
  }
  EXPECT_EQ(ranks.size(), 2U);
}

TEST_F(Mpi, AWrongNumberOfProcessesIsSaidOnce) {
  ASSERT_TRUE(publish("1f1b", 2, 2));
  for (const int processes : {1, 3}) {
    const Outcome outcome = mpirun(processes, {"run", "step.order", "--transport", "mpi"});
    EXPECT_EQ(outcome.exit_code, 5);
    const std::string said = "error: step.order has 2 ranks and was started in " +
                             std::to_string(processes) +
                             (processes == 1 ? " process\n" : " processes\n");
    EXPECT_TRUE(holds(outcome.err, said)) << outcome.err;
    EXPECT_EQ(outcome.err.find(said), outcome.err.rfind(said));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Mpi, ARefusalIsSaidOnce) {
  folder_.write("bad.order", "capo 1\nranks 2\nnonsense\n");
  const Outcome outcome = mpirun(2, {"run", "bad.order", "--transport", "mpi"});
  EXPECT_EQ(outcome.exit_code, 3);
  const Outcome alone = run_capo({"run", "bad.order"}, {.directory = folder_.path()});
  EXPECT_TRUE(holds(outcome.err, alone.err)) << outcome.err;
  EXPECT_EQ(outcome.err.find(alone.err), outcome.err.rfind(alone.err));
}

// Both ranks send first, and neither receives: over MPI as on paper.
TEST_F(Mpi, AnUncheckedDeadlockIsStuckWhereItShould) {
  folder_.write(
      "both.csv",
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n");
  const std::vector<std::string> run{"run", "both.csv", "--unchecked", "--device", "host"};
  const Outcome alone = run_capo(run, {.directory = folder_.path()});
  std::vector<std::string> across = run;
  across.insert(across.end(), {"--transport", "mpi"});
  const Outcome outcome = mpirun(2, across);
  EXPECT_EQ(outcome.exit_code, alone.exit_code) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, "  2 processes came as far over MPI and no further\n"))
      << outcome.err;
  EXPECT_TRUE(holds(outcome.err, alone.err.substr(0, alone.err.rfind("error: ")))) << outcome.err;
}

// Memory that is taken over hurts the same microbatches, whichever process runs them. How far that
// goes on may differ, since a process can force races within its own rank alone.
TEST_F(Mpi, AnUncheckedHazardHurtsTheSame) {
  ASSERT_TRUE(publish("zbv", 2, 4));
  const std::vector<std::string> run{"run",       "step.order", "--device",   "host",
                                     "--plan",    "te",         "--modules",  "grouped-linear-op",
                                     "--format",  "json",       "--replays",  "1",
                                     "--float64", "none",       "--unchecked"};
  const Outcome one = run_capo(run, {.directory = folder_.path()});
  std::vector<std::string> across = run;
  across.insert(across.end(), {"--transport", "mpi"});
  const Outcome two = mpirun(2, across);
  EXPECT_EQ(two.exit_code, 1) << two.err;
  const json of_one = json::parse(one.out);
  const json of_two = json::parse(two.out);
  EXPECT_EQ(of_two["bit_equal"], false);
  EXPECT_EQ(of_two["victims"], of_one["victims"]);
  EXPECT_EQ(of_two["predicted"], of_one["predicted"]);
  EXPECT_EQ(of_two["bytes"], of_one["bytes"]);
}

TEST(MpiOptions, GraphsOfAStepAreRefusedWithTheReason) {
  const Outcome outcome =
      run_capo({"run", "--order", "[1,-1]", "--transport", "mpi", "--graphs", "per-step"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "no graph can hold that")) << outcome.err;
}

TEST(MpiOptions, ADeviceIsRefusedWithTheReason) {
  const Outcome outcome =
      run_capo({"run", "--order", "[1,-1]", "--transport", "mpi", "--device", "cuda"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "mpi moves the memory of processors")) << outcome.err;
}

TEST(MpiOptions, RanksShareAProcessOnlyWhereThereAreSeveral) {
  const Outcome outcome = run_capo({"run", "--order", "[1,-1]", "--ranks-per-device", "2"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "all ranks are in one process")) << outcome.err;
}

TEST(MpiOptions, ATimeoutIsMoreThanNothing) {
  const Outcome outcome =
      run_capo({"run", "--order", "[1,-1]", "--transport", "mpi", "--timeout", "0"});
  EXPECT_EQ(outcome.exit_code, 2);
}

// A build without NCCL's header says so, one with it that there is no library.
TEST(NcclOptions, WithoutNcclTheTransportIsRefused) {
  const Outcome outcome = run_capo({"run", "--order", "[1,-1]", "--transport", "nccl"},
                                   {.environment = {"CAPO_NCCL_LIBRARY=/nowhere/libnccl.so.2"}});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err, "error: this capo was built without NCCL\n") ||
              holds(outcome.err, "error: the library of NCCL cannot be loaded: /nowhere/"))
      << outcome.err;
}

// A program that lies elsewhere finds no library beside it, as one that was built without MPI.
TEST(MpiOptions, WithoutTheLibraryTheTransportIsRefused) {
  const ScratchFolder folder;
  const std::filesystem::path elsewhere = folder.path() / "capo";
  std::filesystem::copy_file(testing_support::program_under_test(), elsewhere);
  const std::vector<std::string> run{"run", "--order", "[1,-1]", "--device", "host"};
  EXPECT_EQ(run_capo(run, {.program = elsewhere}).exit_code, 0);
  std::vector<std::string> across = run;
  across.insert(across.end(), {"--transport", "mpi"});
  const Outcome outcome = run_capo(across, {.program = elsewhere});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(
      outcome.err.starts_with("error: the library of MPI cannot be loaded: this capo was built "
                              "without it\n"))
      << outcome.err;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The process of a rank whose command line holds the mark; 0 if there is none.
pid_t process_of(int rank, const std::string& mark) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds(text_of(entry.path() / "cmdline"), mark)) continue;
    if (holds(text_of(entry.path() / "environ"), wanted)) return std::stoi(name);
  }
  return 0;
}

// Hundredths of a second that a process has computed for.
long computed(pid_t process) {
  std::istringstream fields(text_of("/proc/" + std::to_string(process) + "/stat"));
  std::string skipped;
  for (int field = 1; field < 14; ++field) fields >> skipped;
  long user = 0;
  long system = 0;  // whoever waits in MPI spends it there
  fields >> user >> system;
  return user + system;
}

// A run of very many replays, one rank of which is sent a signal when they have long begun.
class Interfered : public Mpi {
 protected:
  [[nodiscard]] Outcome run_and_send(int rank, int signal) const {
    const std::string path = folder_.path() / "step.order";
    auto outcome = std::async(std::launch::async, [&] {
      return mpirun(2, {"run", path, "--transport", "mpi", "--replays", "1000000", "--float64",
                        "none", "--timeout", "2"});
    });
    const auto over = [&] {
      return outcome.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready;
    };
    pid_t found = 0;
    while (!over() && (found == 0 || computed(found) < 30)) found = process_of(rank, path);
    EXPECT_NE(found, 0);
    if (found != 0) ::kill(found, signal);
    return outcome.get();
  }
  void expect_nobody_left() const {
    for (const int rank : {0, 1}) EXPECT_EQ(process_of(rank, folder_.path()), 0);
  }
};

TEST_F(Interfered, ARankThatStopsIsNamedAfterTheTimeout) {
  ASSERT_TRUE(publish("1f1b", 2, 4));
  const Outcome outcome = run_and_send(1, SIGSTOP);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(
      holds(outcome.err, "no message came for 2 s, and ranks are stuck:\n  rank 0 waits for "))
      << outcome.err;
  EXPECT_TRUE(holds(outcome.err, "\n  rank 1 does not answer\n")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  expect_nobody_left();
}

TEST_F(Interfered, RankZeroMayBeTheOneThatStops) {
  ASSERT_TRUE(publish("1f1b", 2, 4));
  const Outcome outcome = run_and_send(0, SIGSTOP);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err, ", and rank 0 does not answer\n")) << outcome.err;
  expect_nobody_left();
}

// It is mpirun that sees a process killed, says so, and has the exit code of the signal.
TEST_F(Interfered, AKilledRankEndsAll) {
  ASSERT_TRUE(publish("1f1b", 2, 4));
  const Outcome outcome = run_and_send(1, SIGKILL);
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_TRUE(holds(outcome.err, "signal 9")) << outcome.err;
  expect_nobody_left();
}

}  // namespace
}  // namespace capo

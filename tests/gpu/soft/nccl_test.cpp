// `capo run FILE --transport nccl` on CUDA and NCCL in software: what it prints is the report of
// the run in one process, and whatever goes wrong ends all processes with a reason.

#include "gpu/nccl/nccl_transport.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

class OverNccl : public ::testing::Test {
 protected:
  // Runs capo on so many devices in software; `asked` is what its NCCL is to do.
  [[nodiscard]] Outcome run(int devices, std::vector<std::string> arguments,
                            const std::string& asked = "") const {
    arguments.insert(arguments.begin(), {"run", "step.order", "--device", "cuda"});
    return run_capo(arguments, {.directory = folder_.path(),
                                .environment = {"CAPO_SOFT_CUDA_DEVICES=" + std::to_string(devices),
                                                "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY,
                                                "CAPO_FAKE_NCCL=" + asked},
                                .program = CAPO_ON_SOFT_CUDA});
  }

  // Writes a schedule as "step.order".
  void publish(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "generate");
    const Outcome made = run_capo(arguments);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    folder_.write("step.order", made.out);
  }
  void publish(const std::string& name, int ranks) const {
    publish({name, "--ranks", std::to_string(ranks), "--microbatches", "4"});
  }

  const ScratchFolder folder_;
};

json without_times_of_devices(const std::string& text) {
  json report = json::parse(text, nullptr, false);
  report.erase("times");
  report.erase("transport");
  report.erase("edges");
  return report;
}

run::Ends message(std::int32_t from, std::int32_t to, run::StreamId sender,
                  run::StreamId receiver) {
  return {.message = {.channel = {.sender = from, .receiver = to}},
          .sender = sender,
          .receiver = receiver};
}

TEST(CommunicatorsOfStreams, AreOneWhereRanksHaveOneStreamForAll) {
  const auto all = gpu::joined_by_streams(
      {message(0, 1, 0, 1), message(1, 2, 1, 2), message(1, 0, 1, 0)}, {.ranks = 3});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].size(), 3U);
}

TEST(CommunicatorsOfStreams, AreOneForEachPairThatHasStreamsOfItsOwn) {
  const auto all = gpu::joined_by_streams(
      {message(0, 1, 0, 1), message(1, 2, 2, 3), message(1, 0, 1, 0)}, {.ranks = 3});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].size(), 2U);
  EXPECT_EQ(all[1].size(), 1U);
}

// NCCL has a process once in a communicator, with one stream at a time.
TEST(CommunicatorsOfStreams, AreOneForEachTwoStreamsWhereAProcessHasSeveral) {
  const run::Division two_each{.ranks = 4, .per_process = 2};
  const auto all = gpu::joined_by_streams(
      {message(1, 2, 1, 2), message(0, 3, 0, 3), message(0, 2, 0, 2), message(2, 0, 2, 0)},
      two_each);
  ASSERT_EQ(all.size(), 3U);
}

TEST(Watchdogs, WatchAnewWhileSomethingGoesOn) {
  int asked = 0;
  std::promise<void> acted;
  gpu::Watchdog dog(
      std::chrono::milliseconds(1), [&] { return ++asked == 3; }, [&] { acted.set_value(); });
  dog.watch();
  acted.get_future().wait();
  EXPECT_EQ(asked, 3);
}

TEST(Watchdogs, AreCalledOffByTheirEnd) {
  const auto acted = std::make_shared<bool>(false);
  {
    gpu::Watchdog dog(
        std::chrono::hours(1), [acted] { return *acted = true; }, [] {});
    dog.watch();
  }
  EXPECT_FALSE(*acted);
  EXPECT_EQ(acted.use_count(), 1);
}

TEST_F(OverNccl, TwoProcessesReportWhatOneDoes) {
  publish("zbv", 2);
  const std::vector<std::string> plain{"--format", "json"};
  const Outcome one = run(1, plain);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  for (const std::string layout : {"per-rank", "per-pair", "per-edge", "per-direction"}) {
    const Outcome two = run(2, {"--format", "json", "--transport", "nccl", "--comm", layout});
    EXPECT_EQ(two.exit_code, 0) << two.err;
    EXPECT_EQ(two.err, "");
    EXPECT_EQ(without_times_of_devices(two.out), without_times_of_devices(one.out)) << layout;
    EXPECT_EQ(json::parse(two.out)["transport"], "nccl");
  }
}

TEST_F(OverNccl, GroupsOfMegatronsCallsMoveTogether) {
  publish({"megatron", "--pp", "4", "--vp", "2", "--microbatches", "8", "--layers", "1,2",
           "--overlap", "--delayed-wgrad", "--rank", "all", "--format", "order"});
  const Outcome four = run(4, {"--transport", "nccl", "--plan", "safe"});
  EXPECT_EQ(four.exit_code, 0) << four.err;
  EXPECT_TRUE(holds(four.out, "nccl between 4 processes, ")) << four.out;
}

TEST_F(OverNccl, RanksMayShareADevice) {
  publish("1f1b", 5);
  const Outcome one = run(1, {"--format", "json"});
  const Outcome three =
      run(3, {"--format", "json", "--transport", "nccl", "--ranks-per-device", "2"});
  EXPECT_EQ(three.exit_code, 0) << three.err;
  EXPECT_EQ(without_times_of_devices(three.out), without_times_of_devices(one.out));
  EXPECT_EQ(json::parse(three.out)["edges"],
            json::parse(R"({"in-process": [[0, 1], [2, 3]], "nccl": [[1, 2], [3, 4]]})"));
  const Outcome words = run(3, {"--transport", "nccl", "--ranks-per-device", "2"});
  EXPECT_TRUE(holds(words.out, "  edges: in process 0-1, 2-3; nccl 1-2, 3-4\n")) << words.out;
}

TEST_F(OverNccl, FewerDevicesThanProcessesAreSaidOnce) {
  publish("1f1b", 4);
  const Outcome outcome = run(2, {"--transport", "nccl"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.err,
            "error: 4 processes of this machine need a CUDA device each, and it has 2\n"
            "  help: --ranks-per-device has several ranks share one\n");
}

#ifdef CAPO_MPIRUN
// One process has the device of its machine, the other two would need one each. MPI is looked for
// beside the program.
TEST_F(OverNccl, AMachineWithTooFewDevicesEndsAllAndIsNamed) {
  publish("1f1b", 3);
  std::filesystem::create_directories(folder_.path() / "bin");
  std::filesystem::create_directories(folder_.path() / "lib/capo");
  std::filesystem::copy_file(CAPO_ON_SOFT_CUDA, folder_.path() / "bin/capo");
  std::filesystem::copy_file(CAPO_MPI_LIBRARY, folder_.path() / "lib/capo/libcapo_mpi.so");
  std::vector<std::string> arguments{"--allow-run-as-root", "--oversubscribe"};
  for (const std::string place : {"0 of 1", "0 of 2", "1 of 2"}) {
    if (arguments.size() > 2) arguments.emplace_back(":");
    arguments.insert(arguments.end(),
                     {"-n", "1", "env", "OMPI_COMM_WORLD_LOCAL_RANK=" + place.substr(0, 1),
                      "OMPI_COMM_WORLD_LOCAL_SIZE=" + place.substr(5), "bin/capo", "run",
                      "step.order", "--transport", "nccl"});
  }
  const Outcome outcome = run_capo(
      arguments,
      {.directory = folder_.path(),
       .environment = {"CAPO_SOFT_CUDA_DEVICES=1", "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY},
       .seconds = 30,
       .program = CAPO_MPIRUN});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_TRUE(holds(outcome.err,
                    ": 2 processes of this machine need a CUDA device each, and it has 1\n"
                    "  help: --ranks-per-device has several ranks share one\n"))
      << outcome.err;
}
#endif

// The receive never gets its message, so all wait; who waits for whom is what the order says.
TEST_F(OverNccl, ALostMessageGivesTheStuckStateAfterTheTimeout) {
  publish("1f1b", 2);
  const Outcome outcome = run(2, {"--transport", "nccl", "--timeout", "1"}, "lose:2");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(
      outcome.err,
      "error: the run of step.order broke off: no message came for 1 s, and ranks are stuck:\n"
      "  rank 0 waits for rank 1 to receive message 1 from rank 0 to rank 1, which F of chunk "
      "1, microbatch 1 of rank 1 reads\n"
      "  rank 1 waits for rank 0 to send message 1 from rank 0 to rank 1, which F of chunk 1, "
      "microbatch 1 of rank 1 reads\n"
      "  in a circle: rank 0 for rank 1, which waits for rank 0\n"
      "  help: --timeout says how long a message may take\n");
  EXPECT_EQ(outcome.out, "");
}

// NCCL itself then waits for the one that is stopped.
TEST_F(OverNccl, ARankThatStopsIsNamedAfterTheTimeoutAndAllEnd) {
  publish("1f1b", 2);
  for (const std::string group : {"stop:4", "stop:9"}) {
    const Outcome outcome =
        run(2, {"--transport", "nccl", "--timeout", "1", "--float64", "none"}, group);
    EXPECT_EQ(outcome.exit_code, 5);
    EXPECT_TRUE(
        holds(outcome.err, "no message came for 1 s, and ranks are stuck:\n  rank 0 waits "))
        << outcome.err;
    EXPECT_TRUE(holds(outcome.err, "\n  rank 1 does not answer\n")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(OverNccl, AnErrorOfNcclEndsAllWithItsWords) {
  publish("1f1b", 2);
  const Outcome outcome = run(2, {"--transport", "nccl", "--timeout", "5"}, "fail:3");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err, "ncclGroupEnd gave `unhandled system error` (asked for)"))
      << outcome.err;
}

TEST_F(OverNccl, ARankThatCannotJoinEndsAll) {
  publish("1f1b", 2);
  const Outcome outcome = run(2, {"--transport", "nccl", "--timeout", "5"}, "init:1");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err, "rank 1: ncclCommInitRankConfig gave `unhandled system error`"))
      << outcome.err;
}

// NCCL's wait there is ended by nothing.
TEST_F(OverNccl, ARankThatDoesNotComeBackFromJoiningEndsAllAfterTheTimeout) {
  publish("1f1b", 2);
  const Outcome outcome = run(2, {"--transport", "nccl", "--timeout", "1"}, "silent:1");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(holds(outcome.err,
                    ": NCCL does not come back from making communicators: a process "
                    "does not answer\n  help: --timeout says how long"))
      << outcome.err;
}

// Eager execution has one stream, on which the receive would wait before the send that it needs.
TEST_F(OverNccl, AGroupOverTwoCommunicatorsMovesTogether) {
  folder_.write("step.order",
                "capo 1\nranks 2\nstages 2\nmicrobatches 2\nplacement loop\n"
                "rank 0 chunks 1\nrank 0 delayed 1\n"
                "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0 W1.0 F1.1 (send-F1.1 recv-B1.1) B1.1 W1.1\n"
                "rank 1 chunks 1\nrank 1 delayed none\n"
                "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n");
  for (const std::string layout : {"per-rank", "per-edge", "per-direction"}) {
    const Outcome outcome =
        run(2, {"--transport", "nccl", "--comm", layout, "--plan", "safe", "--timeout", "5"});
    EXPECT_EQ(outcome.exit_code, 0) << layout << outcome.err;
  }
}

// Its ranks wait for each other from the first call on, which fails in rank 1.
TEST_F(OverNccl, AnErrorOfAnotherRankInAWalkIsTold) {
  folder_.write("both.csv", "0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  const Outcome outcome = run_capo(
      {"run", "both.csv", "--unchecked", "--device", "cuda", "--transport", "nccl", "--timeout",
       "1"},
      {.directory = folder_.path(),
       .environment = {"CAPO_SOFT_CUDA_DEVICES=2", "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY,
                       "CAPO_FAKE_NCCL=later:1000,fail_of_one:2"},
       .program = CAPO_ON_SOFT_CUDA});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(holds(outcome.err,
                    "  over NCCL it was otherwise: rank 1: ncclGroupEnd gave `unhandled "
                    "system error` (asked for)\n"))
      << outcome.err;
}

TEST_F(OverNccl, WithoutALibraryTheTransportIsRefused) {
  publish("1f1b", 2);
  const Outcome outcome = run_capo({"run", "step.order", "--transport", "nccl"},
                                   {.directory = folder_.path(),
                                    .environment = {"CAPO_NCCL_LIBRARY=/nowhere/libnccl.so.2"},
                                    .program = CAPO_ON_SOFT_CUDA});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(outcome.err.starts_with("error: the library of NCCL cannot be loaded: /nowhere/"))
      << outcome.err;
}

TEST_F(OverNccl, TheHostAndBufferedSendsAreRefused) {
  publish("1f1b", 2);
  const Outcome buffered = run(2, {"--transport", "nccl", "--transfers", "buffered"});
  EXPECT_EQ(buffered.exit_code, 2);
  EXPECT_TRUE(holds(buffered.err, "a send of nccl may wait for its receive")) << buffered.err;
  const Outcome host = run_capo({"run", "step.order", "--transport", "nccl", "--device", "host"},
                                {.directory = folder_.path(),
                                 .environment = {"CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY},
                                 .program = CAPO_ON_SOFT_CUDA});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_TRUE(holds(host.err, "nccl moves the memory of CUDA devices")) << host.err;
}

// Graphs of actions alone: NCCL in software moves nothing within a graph.
TEST_F(OverNccl, GradientsAreReducedAsInOneProcess) {
  folder_.write("step.order",
                "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
                "rank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1\n"
                "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1 reduce1\n");
  std::vector<std::string> asked{"--replicas", "2", "--format", "json"};
  const Outcome one = run(1, asked);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  asked.insert(asked.end(), {"--transport", "nccl"});
  const Outcome four = run(4, asked);
  ASSERT_EQ(four.exit_code, 0) << four.err;
  EXPECT_EQ(without_times_of_devices(four.out), without_times_of_devices(one.out));
  asked.insert(asked.end(), {"--ranks-per-device", "2"});
  const Outcome two = run(2, asked);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(without_times_of_devices(two.out), without_times_of_devices(one.out));
}

TEST_F(OverNccl, RowsGoToExpertsAsInOneProcess) {
  folder_.write("m.json", R"({"groups": [{"name": "ep", "members": [0],
      "actions": ["dispatch-F", "combine-F", "dispatch-B", "combine-B"]}]})");
  folder_.write("step.order",
                "capo 1\nranks 1\nmicrobatches 2\nplacement loop\n"
                "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 F2.0 F2.1 "
                "B2.0 B2.1 combine-B1.0 dispatch-B1.0 B1.0 combine-B1.1 dispatch-B1.1 B1.1\n");
  std::vector<std::string> asked{"--replicas", "4", "--model", "m.json", "--format", "json"};
  const Outcome one = run(1, asked);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const json alone = without_times_of_devices(one.out);
  EXPECT_EQ(alone["exchanges"], json::parse(R"([{"ranks": [0, 1, 2, 3]}])"));
  EXPECT_EQ(alone["bit_equal"], true);
  asked.insert(asked.end(), {"--transport", "nccl"});
  const Outcome four = run(4, asked);
  ASSERT_EQ(four.exit_code, 0) << four.err;
  EXPECT_EQ(without_times_of_devices(four.out), alone);
  asked.insert(asked.end(), {"--ranks-per-device", "2"});
  const Outcome two = run(2, asked);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(without_times_of_devices(two.out), alone);
}

TEST_F(OverNccl, MessagesBetweenTwoDevicesAreMeasured) {
  folder_.write("m.json", R"({"modules": {"default": {"kind": "linear", "dtype": "bf16",
      "shape": {"tokens": 4, "hidden": 4, "ffn": 4}}}})");
  const Outcome measured = run_capo(
      {"measure", "--model", "m.json", "--transport", "nccl", "-o", "costs.json"},
      {.directory = folder_.path(),
       .environment = {"CAPO_SOFT_CUDA_DEVICES=2", "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY},
       .program = CAPO_ON_SOFT_CUDA});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_TRUE(holds(measured.out, "transfer of 32 bytes: latency ")) << measured.out;
  EXPECT_TRUE(holds(measured.out, " times as long while its sender computes, ")) << measured.out;
  EXPECT_TRUE(holds(measured.out, " bytes ahead of its receive\n")) << measured.out;
  publish("1f1b", 2);
  const Outcome run_two = run(2, {"--transport", "nccl", "--model", "costs.json", "--predict"});
  EXPECT_EQ(run_two.exit_code, 0) << run_two.err;
  EXPECT_TRUE(holds(run_two.out, "clocks: times of 2 processes agree within ")) << run_two.out;
  EXPECT_TRUE(holds(run_two.out, " us simulated, ")) << run_two.out;
}

TEST_F(OverNccl, WhatGroupsExchangeAndReduceIsMeasured) {
  folder_.write("m.json", R"({"topology": "independent", "layers": "experts",
      "modules": {"experts": {"kind": "grouped-mlp", "dtype": "bf16", "splits": "device",
        "flags": {"fuse_wgrad_accumulation": true},
        "shape": {"tokens": 8, "hidden": 16, "ffn": 16, "groups": 2}}},
      "groups": [{"name": "ep", "members": [0, 1],
                  "actions": ["dispatch-F", "combine-F", "dispatch-B", "combine-B"]},
                 {"name": "dp", "members": [0, 1], "actions": ["reduce"]}]})");
  const Outcome measured = run_capo(
      {"measure", "--model", "m.json", "--transport", "nccl", "-o", "costs.json"},
      {.directory = folder_.path(),
       .environment = {"CAPO_SOFT_CUDA_DEVICES=2", "CAPO_NCCL_LIBRARY=" CAPO_FAKE_NCCL_LIBRARY},
       .program = CAPO_ON_SOFT_CUDA});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const json cost = json::parse(folder_.read("costs.json"))["modules"]["experts"]["cost"];
  for (const char* of : {"dispatch", "combine", "reduce"}) {
    ASSERT_TRUE(cost.contains(of)) << of;
    EXPECT_GT(cost[of].get<double>(), 0) << of;
  }
}

TEST_F(OverNccl, TheTimelineHoldsAllRanks) {
  publish("1f1b", 2);
  const Outcome two = run(2, {"--transport", "nccl", "--float64", "none", "-o", "t.json"});
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const json trace = json::parse(folder_.read("t.json"));
  std::set<int> ranks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ranks.insert(event["pid"].get<int>());
  }
  EXPECT_EQ(ranks.size(), 2U);
}

}  // namespace
}  // namespace capo

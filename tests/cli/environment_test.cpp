// The flags that say what a verdict across ranks is relative to, as a user gives them.

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

class EnvironmentFlags : public ::testing::Test {
 protected:
  void SetUp() override {
    write("two.order",
          "capo 1\nranks 2\nchunks 2\nmicrobatches 2\n"
          "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
          "rank 1: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n");
    write("deadlock.csv",
          "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
          "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
    write("stages.json", R"({"schema": 1, "stages": [[0, 2], [1, 3]]})");
    write("model.json", R"({"schema": 1, "communicators": "per-edge", "topology": "loop"})");
  }

  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  [[nodiscard]] Outcome check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "check");
    return run_capo(arguments, {.directory = folder_.path()});
  }
  [[nodiscard]] json report(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--format", "json"});
    return json::parse(check(std::move(arguments)).out);
  }

  ScratchFolder folder_;
};

TEST_F(EnvironmentFlags, WhatIsNotDeclaredIsTheStrictest) {
  const json environment = report({"two.order", "--topology", "loop"}).at("environment");
  EXPECT_EQ(environment.at("communicators"), "per-rank");
  EXPECT_EQ(environment.at("transfers"), "rendezvous");
  EXPECT_EQ(environment.at("p2p"), nullptr);
  const std::vector<std::string> assumed = environment.at("assumed");
  EXPECT_NE(std::find(assumed.begin(), assumed.end(), "communicators"), assumed.end());
  EXPECT_NE(std::find(assumed.begin(), assumed.end(), "transfers"), assumed.end());
}

TEST_F(EnvironmentFlags, WithoutWiresNobodyCommunicates) {
  const json result = report({"two.order"});
  EXPECT_EQ(result.at("environment").at("communicators"), nullptr);
  EXPECT_EQ(result.at("finishes"), nullptr);
}

TEST_F(EnvironmentFlags, TheVerdictFollowsTheCommunicators) {
  EXPECT_EQ(check({"deadlock.csv"}).exit_code, 1);
  EXPECT_EQ(check({"deadlock.csv", "--comm", "per-rank"}).exit_code, 1);
  EXPECT_EQ(check({"deadlock.csv", "--comm", "per-pair"}).exit_code, 1);
  EXPECT_EQ(check({"deadlock.csv", "--comm", "per-edge"}).exit_code, 0);
  EXPECT_EQ(check({"deadlock.csv", "--transfers", "buffered"}).exit_code, 0);
  EXPECT_EQ(report({"deadlock.csv"}).at("finishes"), false);
  EXPECT_EQ(report({"deadlock.csv", "--comm", "per-edge"}).at("finishes"), true);
}

// Each rank sends before it receives: one message in the channel is room enough.
TEST_F(EnvironmentFlags, AChannelHoldsSoManyBytes) {
  const auto exit_code = [&](const std::string& transfers) {
    return check({"deadlock.csv", "--transfers", transfers, "--message-bytes", "100"}).exit_code;
  };
  EXPECT_EQ(exit_code("buffered:0"), 1);
  EXPECT_EQ(exit_code("buffered:99"), 1);
  EXPECT_EQ(exit_code("buffered:100"), 0);
  EXPECT_EQ(report({"deadlock.csv", "--transfers", "buffered:100", "--message-bytes", "100"})
                .at("environment")
                .at("transfers"),
            "buffered:100");
}

TEST_F(EnvironmentFlags, BytesOfAChannelNeedTheSizeOfAMessage) {
  const Outcome unsized = check({"deadlock.csv", "--transfers", "buffered:100"});
  EXPECT_EQ(unsized.exit_code, 2);
  EXPECT_NE(unsized.err.find("--message-bytes, or `transfer` with `bytes`"), std::string::npos)
      << unsized.err;
  write("sized.json", R"({"schema": 1, "transfers": "buffered:64", "transfer": {"bytes": 64}})");
  EXPECT_EQ(check({"deadlock.csv", "--model", "sized.json"}).exit_code, 0);
  write("nothing.json", R"({"schema": 1, "transfers": "buffered:64", "transfer": {"bytes": 0}})");
  EXPECT_EQ(check({"deadlock.csv", "--model", "nothing.json"}).exit_code, 2);
  EXPECT_EQ(check({"deadlock.csv", "--message-bytes", "64"}).exit_code, 2);
  EXPECT_EQ(check({"deadlock.csv", "--transfers", "buffered:x"}).exit_code, 2);
  EXPECT_EQ(check({"deadlock.csv", "--model", "sized.json", "--transfers", "buffered"}).exit_code,
            2);
}

TEST_F(EnvironmentFlags, AModelFileDeclaresTheSame) {
  EXPECT_EQ(check({"two.order", "--model", "model.json"}).exit_code, 0);
  const json environment = report({"two.order", "--model", "model.json"}).at("environment");
  EXPECT_EQ(environment.at("topology"), "loop");
  EXPECT_EQ(environment.at("communicators"), "per-edge");
}

TEST_F(EnvironmentFlags, AFlagMayRepeatTheModelFileAndNotContradictIt) {
  EXPECT_EQ(check({"two.order", "--model", "model.json", "--comm", "per-edge"}).exit_code, 0);
  const Outcome outcome = check({"two.order", "--model", "model.json", "--comm", "per-rank"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--comm"), std::string::npos) << outcome.err;
  EXPECT_EQ(check({"two.order", "--model", "model.json", "--topology", "v"}).exit_code, 2);
}

TEST_F(EnvironmentFlags, ATopologyCanBeAFile) {
  EXPECT_EQ(check({"two.order", "--topology", "stages.json"}).exit_code, 0);
  EXPECT_EQ(report({"two.order", "--topology", "stages.json"}).at("environment").at("topology"),
            "custom");
  write("stages.json", R"({"schema": 1, "stages": [[2, 0], [1, 3]]})");
  const json result = report({"two.order", "--topology", "stages.json"});
  EXPECT_EQ(result.at("verdict"), "rejected");
  EXPECT_EQ(result.at("diagnostics").at(0).at("family"), "dependencies");
}

TEST_F(EnvironmentFlags, AFileThatIsNoneIsUnreadableAndABrokenOneMalformed) {
  EXPECT_EQ(check({"two.order", "--topology", "absent.json"}).exit_code, 3);
  write("broken.json", "{\"stages\": [[0]");
  const Outcome outcome = check({"two.order", "--topology", "broken.json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("broken.json:1:"), std::string::npos) << outcome.out;
  EXPECT_EQ(check({"two.order", "--model", "broken.json"}).exit_code, 3);
}

TEST_F(EnvironmentFlags, ATopologyThatDoesNotFitIsAUsageError) {
  write("three.json", R"({"schema": 1, "stages": [[0], [1], [2]]})");
  const Outcome outcome = check({"two.order", "--topology", "three.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("it places 3 ranks, but the input has 2"), std::string::npos)
      << outcome.err;
}

TEST_F(EnvironmentFlags, WhatTheInputPlacesIsNotOverruled) {
  write("placed.order",
        "capo 1\nranks 2\nchunks 2\nmicrobatches 1\nplacement loop\n"
        "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(check({"placed.order", "--topology", "loop"}).exit_code, 0);
  const Outcome outcome = check({"placed.order", "--topology", "v"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("places the stages of rank 0 otherwise"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(check({"placed.order", "--topology", "independent"}).exit_code, 0);
}

TEST_F(EnvironmentFlags, StagesAreLimited) {
  // Five chunks, but in a loop the last of rank 0 is stage 6.
  write("uneven.order",
        "capo 1\nranks 2\nmicrobatches 1\n"
        "rank 0: F1.0 F2.0 F3.0 F4.0 B4.0 B3.0 B2.0 B1.0\nrank 1: F1.0 B1.0\n");
  EXPECT_EQ(check({"uneven.order", "--topology", "loop", "--max-count", "6"}).exit_code, 1);
  const Outcome outcome = check({"uneven.order", "--topology", "loop", "--max-count", "5"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("--max-count"), std::string::npos) << outcome.err;
}

TEST_F(EnvironmentFlags, AFlagWithoutAUseIsAUsageError) {
  for (const char* flag : {"--comm=per-pair", "--transfers=buffered", "--p2p=overlap"}) {
    EXPECT_EQ(check({"two.order", flag}).exit_code, 2) << flag;
    EXPECT_EQ(check({"two.order", flag, "--topology", "loop"}).exit_code, 0) << flag;
  }
  EXPECT_EQ(check({"deadlock.csv", "--p2p", "overlap"}).exit_code, 2);
  EXPECT_EQ(check({"two.order", "--topology", "loop", "--ep-overlap"}).exit_code, 2);
}

// Of every command: Megatron's calls are there to overlap, or exchanges of tokens, or links on
// which every layer is taken apart.
TEST_F(EnvironmentFlags, TheOverlapNeedsSomethingToOverlap) {
  write("loop.order",
        "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
        "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
  write("experts.json", R"({"schema": 1, "groups": [{"name": "experts", "members": [0, 1], )"
                        R"("actions": ["dispatch-F", "combine-F"]}]})");
  const std::vector<std::vector<std::string>> commands{
      {"check", "loop.order"},
      {"check", "--batch", "orders.jsonl"},
      {"run", "loop.order", "--device", "host"},
      {"graph", "loop.order"},
      {"minimise", "loop.order"},
      {"convert", "loop.order", "--to", "order", "--lower"}};
  write("orders.jsonl", "");
  for (const std::vector<std::string>& command : commands) {
    const auto run = [&](std::vector<std::string> flags) {
      flags.insert(flags.begin(), command.begin(), command.end());
      return run_capo(flags, {.directory = folder_.path()});
    };
    SCOPED_TRACE(command[0] + " " + command[1]);
    const Outcome alone = run({"--ep-overlap"});
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_NE(alone.err.find("--ep-overlap: needs --p2p, or a model file"), std::string::npos)
        << alone.err;
    EXPECT_NE(run({"--ep-overlap", "--p2p", "batch"}).exit_code, 2);
    EXPECT_NE(run({"--ep-overlap", "--model", "experts.json"}).exit_code, 2);
    EXPECT_NE(run({"--ep-overlap", "--ep-slots", "mtp", "--model", "experts.json"}).exit_code, 2);
    EXPECT_EQ(run({"--ep-overlap", "--model", "model.json"}).exit_code, 2);
    const Outcome slots = run({"--ep-overlap", "--ep-slots", "mtp", "--p2p", "batch"});
    EXPECT_EQ(slots.exit_code, 2);
    EXPECT_NE(slots.err.find("--ep-slots: needs a model file"), std::string::npos) << slots.err;
  }
  const auto simulate = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "loop.order"});
    return run_capo(flags, {.directory = folder_.path()}).exit_code;
  };
  EXPECT_EQ(simulate({"--ep-overlap"}), 0);
  EXPECT_EQ(simulate({"--ep-overlap", "--ep-slots", "mtp"}), 0);
  EXPECT_EQ(simulate({"--ep-overlap", "--comm", "per-pair"}), 0);
  EXPECT_EQ(simulate({"--ep-overlap", "--ep-slots", "mtp", "--links", "queued"}), 0);
}

// Nothing is sent: what one chunk makes, the next one finds in place.
TEST_F(EnvironmentFlags, MegatronsCallsOfOneRankAreNone) {
  write("one.order",
        "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n");
  for (const char* calls : {"batch", "overlap", "flush"}) {
    SCOPED_TRACE(calls);
    const std::string p2p = std::string("--p2p=") + calls;
    const auto run = [&](const std::vector<std::string>& words) {
      return run_capo(words, {.directory = folder_.path()});
    };
    EXPECT_EQ(check({"one.order", p2p}).exit_code, 0);
    EXPECT_EQ(run({"graph", "one.order", p2p}).exit_code, 0);
    EXPECT_NE(run({"simulate", "one.order", p2p}).out.find("makespan  3 "), std::string::npos);
    EXPECT_NE(run({"convert", "one.order", "--to", "order", "--lower", p2p})
                  .out.find("rank 0: F1.0 F2.0 B2.0 B1.0\n"),
              std::string::npos);
  }
}

TEST_F(EnvironmentFlags, AGroupOfRanksThatAreNotThereIsAUsageError) {
  write("group.json",
        R"({"schema": 1, "groups": [{"name": "dp", "members": [0, 2], "actions": ["reduce"]}]})");
  const Outcome outcome = check({"two.order", "--model", "group.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("group dp has rank 2 among its members"), std::string::npos)
      << outcome.err;
}

TEST_F(EnvironmentFlags, SkippedStagesAreNamed) {
  write("wrong.csv", "0F0,0F0,0B0\n1F0,1B0\n");
  const Outcome outcome = check({"wrong.csv", "--p2p", "batch"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("not checked before these are cured: stages, routing, transfers"),
            std::string::npos)
      << outcome.out;
}

TEST_F(EnvironmentFlags, TheModelIsExplained) {
  const Outcome outcome = check({"deadlock.csv", "--explain-model", "--comm", "per-edge"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("communicators per-edge (declared)"), std::string::npos);
  EXPECT_NE(outcome.out.find("transfers any (not declared)"), std::string::npos);
  EXPECT_EQ(check({"deadlock.csv", "--explain-model", "--format", "json"}).exit_code, 2);
}

TEST_F(EnvironmentFlags, ConvertTakesThemOnlyToLower) {
  const auto convert = [&](std::vector<std::string> flags) {
    std::vector<std::string> arguments{"convert", "two.order", "--to", "csv", "--topology", "loop"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run_capo(arguments, {.directory = folder_.path()});
  };
  EXPECT_EQ(convert({}).exit_code, 0);
  EXPECT_EQ(convert({"--p2p", "overlap"}).exit_code, 2);
  const Outcome lowered = convert({"--lower"});
  EXPECT_EQ(lowered.exit_code, 0) << lowered.err;
  EXPECT_NE(lowered.out.find("0SEND_F0"), std::string::npos);
}

}  // namespace
}  // namespace capo

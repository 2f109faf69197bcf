// Tokens on their way to experts and back: dispatch and combine on their own stream, layers taken
// apart as Megatron-LM's overlap takes them, equal to eager execution and to float64, which knows
// of no exchange: what comes back has to be what was sent.

#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace capo::run {
namespace {

CheckOptions overlapped(const Module& module, bool exchanges) {
  CheckOptions options = every_layer(module);
  options.environment.ep_overlap = true;
  options.environment.p2p = MegatronCalls::Batch;
  for (const std::int32_t rank : {0, 1}) {
    if (!exchanges) continue;
    options.groups.push_back({.name = fmt::format("experts of rank {}", rank),
                              .members = {rank},
                              .actions = {Kind::DispatchForward, Kind::CombineForward,
                                          Kind::DispatchBackward, Kind::CombineBackward}});
  }
  return options;
}

constexpr const char* kSteps =
    "capo 1\nranks 2\nmicrobatches 3\nplacement loop\n"
    "rank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n";

std::size_t exchanges_in(const RunReport& report) {
  return static_cast<std::size_t>(std::count_if(
      report.program.parts.begin(), report.program.parts.end(), [](const OpPart& part) {
        return part.kind == OpPart::Kind::Permute || part.kind == OpPart::Kind::Return;
      }));
}

TEST(Exchanges, BringBackWhatTheySent) {
  for (const ModuleKind kind : kRunKinds) {
    for (const Granularity graphs : kGranularities) {
      SCOPED_TRACE(capo::name_of(kind));
      const RunReport report = run_verified(typed(kSteps), overlapped(small(kind), true),
                                            {.graphs = graphs, .replays = 3});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      // Two ranks, three microbatches, forwards and backwards, out and back.
      EXPECT_EQ(exchanges_in(report), 24u);
    }
  }
}

// Written in the order of one rank, around chunks that hand on to each other: what a chunk hands to
// the next goes to experts and back before it is read.
TEST(Exchanges, OfOneRankMoveWhatItsOwnChunksHandOn) {
  constexpr const char* kOneRank =
      "capo 1\nranks 1\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 F2.0 F2.1 "
      "B2.0 B2.1 combine-B1.0 dispatch-B1.0 B1.0 combine-B1.1 dispatch-B1.1 B1.1\n";
  for (const Granularity graphs : kGranularities) {
    CheckOptions options = every_layer(small(ModuleKind::GroupedMlp));
    options.groups = {{.name = "experts",
                       .members = {0},
                       .actions = {Kind::DispatchForward, Kind::CombineForward,
                                   Kind::DispatchBackward, Kind::CombineBackward}}};
    const RunReport report = run_verified(typed(kOneRank), options, {.graphs = graphs});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    EXPECT_EQ(exchanges_in(report), 8u);
  }
}

// Neither stages nor a group of ranks are declared.
TEST(Exchanges, OfABareOrderRun) {
  constexpr const char* kBare =
      "capo 1\nmicrobatches 2\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 "
      "combine-B1.0 dispatch-B1.0 B1.0 combine-B1.1 dispatch-B1.1 B1.1\n";
  for (const Granularity graphs : kGranularities) {
    for (const Float64 float64 : {Float64::FirstReplay, Float64::Sampled}) {
      const RunReport report =
          run_verified(typed(kBare), every_layer(small(ModuleKind::GroupedMlp)),
                       {.graphs = graphs, .float64 = float64});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      EXPECT_EQ(exchanges_in(report), 8u);
    }
  }
}

TEST(Exchanges, OfARankAloneThatLeaveRowsPermutedAreRefused) {
  const auto why = [](const char* order) {
    const auto report = attempt(verified(typed(order), every_layer(small(ModuleKind::Linear))), {});
    return report ? std::string("it ran") : report.error().message;
  };
  EXPECT_EQ(why("capo 1\nmicrobatches 1\nrank 0: F1.0 combine-B1.0 B1.0\n"),
            "rank 0 permutes rows of the backward of chunk 1, microbatch 0, and never brings them "
            "back: B of chunk 1, microbatch 0 of rank 0 would read them as they are permuted");
  EXPECT_EQ(why("capo 1\nmicrobatches 1\nrank 0: F1.0 combine-B1.0 dispatch-B1.0 B1.0\n"),
            "it ran");
}

TEST(Exchanges, AreNoneWithoutAGroupThatPerformsThem) {
  const RunReport report =
      run_verified(typed(kSteps), overlapped(small(ModuleKind::Linear), false), {});
  EXPECT_TRUE(report.bit_equal);
  EXPECT_EQ(exchanges_in(report), 0u);
}

}  // namespace
}  // namespace capo::run

// Traces as torch.profiler exports them, cut down to what is read.

#include "core/frameworks/torch/trace.h"
#include "tests/support/file_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

std::string event(const std::string& category, const std::string& name, double begin, double length,
                  int process = 7) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": 7, "ts": {}, "dur": {}}})",
      category, name, process, begin, length);
}

std::string trace_of(const std::vector<std::string>& events, const std::string& more = "") {
  return fmt::format(R"({{"schemaVersion": 1, {}"traceEvents": [{}]}})", more,
                     fmt::join(events, ", "));
}

TorchTrace read(const std::string& text) {
  auto trace = read_torch_trace(text, {});
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().finding.message);
  return trace ? std::move(*trace) : TorchTrace{};
}

TEST(TorchTrace, NamesOfTheRuntimeAreActions) {
  const TorchTrace trace = read(trace_of(
      {event("user_annotation", "PP:2F1", 100, 5), event("user_annotation", "PP:5SEND_B0", 107, 1),
       event("user_annotation", "ProfilerStep#3", 0, 900)},
      R"("distributedInfo": {"rank": 2}, )"));
  EXPECT_FALSE(trace.on_device);
  ASSERT_EQ(trace.actions.size(), 2U);
  const TracedAction& forward = trace.actions[0];
  EXPECT_EQ(forward.rank, 2);
  EXPECT_EQ(forward.stage, 2);
  EXPECT_EQ(forward.chunk, 1);
  EXPECT_EQ(forward.microbatch, 1);
  EXPECT_EQ(forward.kind, Kind::Forward);
  EXPECT_EQ(forward.begin, 0) << "times are from the first action on";
  EXPECT_EQ(forward.end, 5);
  EXPECT_EQ(trace.actions[1].kind, Kind::SendBackward);
  EXPECT_EQ(trace.actions[1].chunk, 2) << "the second of the rank's stages";
  EXPECT_EQ(trace.actions[1].begin, 7);
}

TEST(TorchTrace, GPipesNamesAreThoseOfTheRanksStage) {
  const TorchTrace trace = read(trace_of({event("user_annotation", "Forward 0", 0, 5, 11),
                                          event("user_annotation", "Backward 0", 5, 9, 12),
                                          event("user_annotation", "Forward pass", 5, 9, 12)}));
  ASSERT_EQ(trace.actions.size(), 2U);
  EXPECT_EQ(trace.actions[0].rank, 0) << "processes are ranks, in the order of their ids";
  EXPECT_EQ(trace.actions[1].rank, 1);
  EXPECT_EQ(trace.actions[1].stage, 1);
  EXPECT_EQ(trace.actions[1].kind, Kind::Backward);
}

TEST(TorchTrace, ActionsThatRunTogetherAreMembersOfOne) {
  const TorchTrace trace =
      read(trace_of({event("user_annotation", "PP:(0F1;3B0)OVERLAP_F_B", 3, 5)}));
  ASSERT_EQ(trace.actions.size(), 2U);
  EXPECT_EQ(trace.actions[0].members, 2);
  EXPECT_EQ(trace.actions[1].member, 1);
  EXPECT_EQ(trace.actions[1].kind, Kind::Backward);
  EXPECT_EQ(trace.actions[1].end, 5);
}

std::string correlated(const std::string& category, int number, double begin, double length,
                       int thread) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "call", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
      R"("args": {{"correlation": {}}}}})",
      category, category == "kernel" ? 0 : 7, thread, begin, length, number);
}

// Autograd launches a backward's kernels from a thread of its own, which Kineto's span of the
// device leaves out.
TEST(TorchTrace, AnActionTakesAsLongAsTheKernelsThatAnyThreadLaunchedInIt) {
  const TorchTrace trace = read(trace_of({
      event("user_annotation", "PP:0F0", 0, 10),
      event("user_annotation", "PP:0I0", 10, 10),
      event("user_annotation", "PP:0RESHARD", 20, 5),
      event("gpu_user_annotation", "PP:0I0", 130, 1, 0),
      correlated("cuda_runtime", 1, 2, 1, 7),
      correlated("cuda_runtime", 2, 11, 1, 8),
      correlated("cuda_driver", 3, 19, 1, 8),
      correlated("kernel", 1, 100, 20, 7),
      correlated("kernel", 2, 130, 1, 7),
      correlated("kernel", 3, 135, 25, 7),
      correlated("kernel", 4, 900, 25, 7),
  }));
  EXPECT_TRUE(trace.on_device);
  ASSERT_EQ(trace.actions.size(), 3U);
  EXPECT_EQ(trace.actions[0].end, 20);
  EXPECT_EQ(trace.actions[1].begin, 30);
  EXPECT_EQ(trace.actions[1].end, 60);
  EXPECT_EQ(trace.actions[2].begin, 60) << "a reshard launches nothing here";
  EXPECT_EQ(trace.actions[2].end, 60);
}

TEST(TorchTrace, TimesOfTheDeviceWinOverThoseOfLaunches) {
  const TorchTrace trace = read(trace_of({event("user_annotation", "PP:0F0", 0, 1),
                                          event("gpu_user_annotation", "PP:0F0", 4, 20, 0)}));
  EXPECT_TRUE(trace.on_device);
  ASSERT_EQ(trace.actions.size(), 1U);
  EXPECT_EQ(trace.actions[0].end, 20);
}

TEST(TorchTrace, MarkedKernelsOfAGraphThatFollowEachOtherAreOneAction) {
  const auto kernel = [](const std::string& mark, double begin) {
    return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, )"
                       R"("ts": {}, "dur": 2, "args": {{"stream": 7, "str": "{}"}}}})",
                       begin, mark);
  };
  const TorchTrace trace =
      read(trace_of({kernel("PP:0F0", 10), kernel("PP:0F0", 13), kernel("PP:0B0", 16),
                     kernel("PP:0F0", 20), kernel("something", 30)}));
  EXPECT_TRUE(trace.on_device);
  ASSERT_EQ(trace.actions.size(), 3U);
  EXPECT_EQ(trace.actions[0].end, 5);
  EXPECT_EQ(trace.actions[1].kind, Kind::Backward);
  EXPECT_EQ(trace.actions[2].begin, 10) << "the next replay";
}

TEST(TorchTrace, AFileThatSaysNoRankHasTheOneOfItsPlaceInAList) {
  const auto at_place = [](const std::string& text, std::int32_t place) {
    return read_torch_trace(text, {}, place);
  };
  const auto silent = at_place(trace_of({event("user_annotation", "Forward 0", 0, 5)}), 3);
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->actions.at(0).rank, 3);
  EXPECT_EQ(silent->actions.at(0).stage, 3);
  EXPECT_FALSE(silent->says_rank);
  const auto telling = at_place(trace_of({event("user_annotation", "Forward 0", 0, 5)},
                                         R"("distributedInfo": {"rank": 1}, )"),
                                3);
  ASSERT_TRUE(telling);
  EXPECT_EQ(telling->actions.at(0).rank, 1);
  EXPECT_TRUE(telling->says_rank);
  const auto many = at_place(trace_of({event("user_annotation", "Forward 0", 0, 5, 11),
                                       event("user_annotation", "Forward 0", 0, 5, 12)}),
                             0);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().finding.message, "the trace has 2 processes and says no rank");
}

TEST(TorchTrace, TheLastStepIsTheLastTimeOfEachAction) {
  const TorchTrace step = last_step_of(read(trace_of(
      {event("user_annotation", "PP:0F0", 10, 5), event("user_annotation", "PP:0B0", 20, 5),
       event("user_annotation", "PP:0F0", 110, 5), event("user_annotation", "PP:0B0", 121, 6)})));
  ASSERT_EQ(step.actions.size(), 2U);
  EXPECT_EQ(step.first, 110);
  EXPECT_EQ(step.actions[0].begin, 0);
  EXPECT_EQ(step.actions[1].begin, 11);
  EXPECT_EQ(step.actions[1].end, 17);
}

// --- ranks on one axis ---------------------------------------------------------------------------

// A rank of one stage, whose forward and backward of one microbatch take 10 each.
TorchTrace rank_at(int rank, double forward, double backward, std::int64_t base = 1'000,
                   const std::string& category = "gpu_user_annotation") {
  return read(trace_of({event(category, fmt::format("PP:{}F0", rank), forward, 10),
                        event(category, fmt::format("PP:{}B0", rank), backward, 10)},
                       fmt::format(R"("distributedInfo": {{"rank": {}}}, "baseTimeNanoseconds": )"
                                   R"({}, )",
                                   rank, base)));
}

TEST(TorchTraces, ClocksThatFitAreTakenAsTheyAre) {
  const JoinedTraces joined = join_traces({rank_at(1, 12, 22), rank_at(0, 1, 36)});
  EXPECT_EQ(joined.clocks, "clocks of the files");
  ASSERT_EQ(joined.trace.actions.size(), 4U);
  EXPECT_EQ(joined.trace.actions[0].rank, 1);
  EXPECT_EQ(joined.trace.actions[0].begin, 11) << "from the first action of all files on";
  EXPECT_EQ(joined.trace.actions[2].begin, 0);
}

TEST(TorchTraces, EachFileCountsFromItsOwnBase) {
  constexpr std::int64_t kNow = 1'790'000'000'000'000'000;
  const JoinedTraces joined =
      join_traces({rank_at(0, 5, 45, kNow), rank_at(1, 8, 18, kNow + 10'240)});
  EXPECT_EQ(joined.clocks, "clocks of the files");
  EXPECT_NEAR(joined.trace.actions[2].begin, 13.24, 0.26);
}

TEST(TorchTraces, AClockIsMovedAsLittleAsLetsNothingRunBeforeWhatItWaitsFor) {
  const JoinedTraces joined = join_traces({rank_at(0, 0, 40), rank_at(1, 4, 14)});
  EXPECT_EQ(joined.clocks,
            "clocks of the files; moved later, so that nothing runs before what it waits for: "
            "rank 1 by 6.0 us");
  EXPECT_EQ(joined.trace.actions[2].begin, 10) << "when the forward of stage 0 ends";
  const JoinedTraces other = join_traces({rank_at(0, 0, 40), rank_at(1, 25, 35)});
  EXPECT_EQ(other.clocks,
            "clocks of the files; moved later, so that nothing runs before what it waits for: "
            "rank 0 by 5.0 us");
  EXPECT_EQ(other.trace.actions[1].begin, other.trace.actions[3].end);
}

TEST(TorchTraces, ClocksThatNoMoveSetsRightStayAsTheyAre) {
  const JoinedTraces joined = join_traces({rank_at(0, 0, 15), rank_at(1, 4, 14)});
  EXPECT_EQ(joined.clocks,
            "clocks of the files; not corrected, since no clocks let each action wait for what it "
            "needs");
  EXPECT_EQ(joined.trace.actions[2].begin, 4);
}

TEST(TorchTraces, FilesOfDifferentTimesBeginTogetherBeforeTheyAreMoved) {
  const std::string begins =
      "the files share no clock: each begins at 0; moved later, so that "
      "nothing runs before what it waits for: rank 1 by 10.0 us";
  EXPECT_EQ(join_traces({rank_at(0, 0, 40), rank_at(1, 5000, 5010)}).clocks, begins);
  EXPECT_EQ(join_traces({rank_at(0, 0, 40), rank_at(1, 4, 14, 0)}).clocks, begins)
      << "of which one does not say what it counts from";
}

TEST(TorchTraces, TimesOfTheProcessorCorrectNoClock) {
  const JoinedTraces joined =
      join_traces({rank_at(0, 0, 40), rank_at(1, 4, 14, 1'000, "user_annotation")});
  EXPECT_EQ(joined.clocks,
            "clocks of the files; not corrected, since times of the processor show no waiting");
}

TEST(TorchTrace, WhatNamesNoActionIsRefused) {
  const auto why = [](const std::string& text) {
    const auto trace = read_torch_trace(text, {});
    EXPECT_FALSE(trace);
    return trace ? "" : trace.error().finding.message;
  };
  EXPECT_EQ(why("[1]"), "trace is an array, not an object");
  EXPECT_EQ(why("{}"), "the trace has no list `traceEvents`");
  EXPECT_EQ(why(trace_of({})), "the trace names no action of a pipeline");
  EXPECT_EQ(why(trace_of({event("user_annotation", "PP:0F1x", 0, 1)})),
            "the trace names no action of a pipeline")
      << "torch itself would read the beginning";
  EXPECT_EQ(why(trace_of({"3"})), "event is a number, not an object");
  EXPECT_EQ(why(trace_of({R"({"ph": "X", "cat": "user_annotation", "name": "PP:0F1", "pid": 1})"})),
            "the event has no `ts`");
}

TEST(TorchTrace, NumbersHaveLimits) {
  Limits limits;
  limits.counts = 9;
  const auto read_limited = [&](const std::string& name) {
    return read_torch_trace(trace_of({event("user_annotation", name, 0, 1)}), limits);
  };
  EXPECT_TRUE(read_limited("PP:8F8"));
  for (const char* name : {"PP:9F0", "PP:0F9", "Forward 9"}) {
    const auto refused = read_limited(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().kind, Refusal::Kind::Limit);
    EXPECT_EQ(refused.error().finding.help.text, "raise the limit with --max-count");
  }
}

TEST(TorchTrace, IsToldFromOtherInputs) {
  EXPECT_TRUE(is_torch_trace(" {\"traceEvents\": []}"));
  EXPECT_FALSE(is_torch_trace("[1, -1]"));
  EXPECT_FALSE(is_torch_trace("{\"orders\": [[1, -1]]}"));
}

// bench/gpu/torch_trace.py: ScheduleZBVZeroBubble, two stages, four microbatches. A forward of the
// second stage takes 900 us, and so do both halves of its backward; the first stage's input half
// has nothing to do.
TEST(TorchTrace, AStepOfTorchsRuntimeOnAnH200) {
  const TorchTrace trace =
      read(testing_support::read_file(CAPO_SOURCE_DIR "/tests/data/torch_trace_h200.json"));
  EXPECT_TRUE(trace.on_device);
  std::size_t computations = 0;
  for (const TracedAction& action : trace.actions) {
    if (!is_compute(action.kind)) continue;
    SCOPED_TRACE(fmt::format("{} {}", action.stage, action.microbatch.index()));
    ++computations;
    const double length = action.end - action.begin;
    if (action.stage == 0 && action.kind == Kind::BackwardInput) {
      EXPECT_EQ(length, 0);
    } else if (action.stage == 0) {
      EXPECT_NEAR(length, action.kind == Kind::Forward ? 385 : 600, 25);
    } else if (action.microbatch != MicrobatchId(0)) {  // the first one warms up
      EXPECT_NEAR(length, 915, 25);
    }
  }
  EXPECT_EQ(computations, 24U);
}

}  // namespace
}  // namespace capo

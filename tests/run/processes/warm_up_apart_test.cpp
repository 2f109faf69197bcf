// Processes of a run warm up together: each replays the step as often as the first one asks for.

#include "run/host/host_engine.h"
#include "run/processes/own_rank.h"
#include "tests/run/processes/thread_library.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPipeline =
    "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 B1.1\n"
    "rank 1: F1.0 B1.0 F1.1 B1.1\n";

// How often each of two processes comes to the first forward of a rank.
std::vector<std::uint32_t> steps_with(double warm_up) {
  std::vector<std::uint32_t> counts(2);
  Post post(2);
  in_each(post, 60s, [&](Processes& processes) {
    host::HostEngine engine;
    std::uint32_t& count = counts[static_cast<std::size_t>(processes.rank())];
    RunOptions options{.replays = 2, .warm_up = warm_up};
    options.processes = &processes;
    options.hooks.before = [&](const OpPart& part, ParameterRegistry&) {
      const Work& work = part.work;
      const bool is_work = part.kind == OpPart::Kind::Work;
      if (is_work && work.kind == Kind::Forward && work.microbatch == 0) ++count;
    };
    const auto report =
        run(engine, verified(typed(kPipeline), every_layer(small(ModuleKind::Linear))), options);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_TRUE(report->bit_equal);
  });
  return counts;
}

TEST(WarmUpApart, ReplaysEquallyOftenInEachProcess) {
  const auto cold = steps_with(0);
  const auto warm = steps_with(0.02);
  EXPECT_EQ(cold[0], cold[1]);
  EXPECT_EQ(warm[0], warm[1]);
  EXPECT_GT(warm[0], 2 * cold[0]);
}

}  // namespace
}  // namespace capo::run

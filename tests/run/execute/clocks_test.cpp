#include "run/execute/program.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <random>

namespace capo::run {
namespace {

Program program_of(const std::vector<std::uint32_t>& streams,
                   std::vector<std::vector<std::uint32_t>> waits, std::uint32_t count) {
  Program program;
  for (const std::uint32_t stream : streams) program.ops.push_back({.stream = stream});
  program.waits = std::move(waits);
  program.rank_of_stream.assign(count, 0);
  return program;
}

TEST(ProgramClocks, AStreamIsInOrderAndTwoStreamsAreNot) {
  const Clocks clocks(program_of({0, 1, 0, 1}, {{}, {}, {}, {}}, 2));
  EXPECT_TRUE(clocks.before(0, 2));
  EXPECT_TRUE(clocks.before(1, 3));
  EXPECT_FALSE(clocks.before(0, 1));
  EXPECT_FALSE(clocks.before(0, 3));
  EXPECT_FALSE(clocks.before(2, 0));
  EXPECT_FALSE(clocks.before(0, 0));
}

TEST(ProgramClocks, AWaitCarriesAllThatCameBefore) {
  const Clocks clocks(program_of({0, 0, 1, 2}, {{}, {}, {1}, {2}}, 3));
  EXPECT_TRUE(clocks.before(0, 2));
  EXPECT_TRUE(clocks.before(0, 3));
  EXPECT_TRUE(clocks.before(2, 3));
}

TEST(ProgramClocks, AgreeWithReachabilityInRandomPrograms) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    constexpr std::uint32_t kOps = 24;
    std::vector<std::uint32_t> streams;
    std::vector<std::vector<std::uint32_t>> waits(kOps);
    std::vector<std::vector<bool>> reaches(kOps, std::vector<bool>(kOps, false));
    for (std::uint32_t op = 0; op < kOps; ++op) {
      streams.push_back(random() % 4);
      for (std::uint32_t before = 0; before < op; ++before) {
        const bool waits_for = streams[before] != streams[op] && random() % 8 == 0;
        if (waits_for) waits[op].push_back(before);
        if (!waits_for && streams[before] != streams[op]) continue;
        reaches[before][op] = true;
        for (std::uint32_t first = 0; first < before; ++first) {
          if (reaches[first][before]) reaches[first][op] = true;
        }
      }
    }
    const Clocks clocks(program_of(streams, waits, 4));
    for (std::uint32_t a = 0; a < kOps; ++a) {
      for (std::uint32_t b = 0; b < kOps; ++b) {
        EXPECT_EQ(clocks.before(a, b), reaches[a][b]) << a << " and " << b;
      }
    }
  }
}

// W0 runs on a stream of its own beside the whole B1, and both add to one gradient.
TEST(ProgramClocks, TwoThatAddToOneGradientAreOrderedAcrossStreams) {
  CheckOptions options = every_layer(small(ModuleKind::Linear));
  options.environment.weight_stream = true;
  const VerifiedPlan plan =
      verified(typed("capo 1\nplacement chain\nrank 0 chunks 1\nrank 0 mixed 1\n"
                     "rank 0: F1.0 F1.1 I1.0 W1.0 B1.1\n"),
               options);
  const Program program =
      capo::run::program_of(plan.step().view().table(), plan.step().replayed()).value();
  const auto op_of = [&](Kind kind) {
    for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
      for (std::uint32_t at = program.ops[op].first_part; at < program.ops[op].end_part; ++at) {
        if (program.parts[at].kind == OpPart::Kind::Work && program.parts[at].work.kind == kind)
          return op;
      }
    }
    return static_cast<std::uint32_t>(program.ops.size());
  };
  const std::uint32_t weight = op_of(Kind::BackwardWeight);
  const std::uint32_t whole = op_of(Kind::Backward);
  ASSERT_NE(program.ops[weight].stream, program.ops[whole].stream);
  EXPECT_TRUE(Clocks(program).before(weight, whole));
}

}  // namespace
}  // namespace capo::run

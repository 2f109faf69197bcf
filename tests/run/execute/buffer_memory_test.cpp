// Memory of planned and of eager buffers, on plans written by hand: addresses, who took over from
// whom, what is poisoned and when.
//
// All buffers are of one chunk of a layer with two microbatches: an input takes 8 bytes, an output
// 8, what is kept 34, and nothing else takes any.

#include "run/execute/buffer_memory.h"
#include "run/host/host_engine.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

using testing_support::all_of;

BufferTable table_of(const std::string& order) {
  const Module module{.name = "m",
                      .bytes = {.input = 8, .output = 8, .activations = 34, .operands = 0}};
  return {testing_support::read_schedule(order), 2, all_of(module), {.aliases = Aliases{}}};
}

const char* const kOneRank = "ranks 1\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n";
const char* const kTwoRanks =
    "ranks 2\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n";

class Bench {
 public:
  explicit Bench(const char* order = kOneRank) : table(table_of(order)) {
    plan.address.assign(table.size(), kNowhere);
  }

  [[nodiscard]] BufferId id(BufferKind kind, std::int32_t microbatch, std::int32_t rank = 0) const {
    return table.id(rank, 1, 0, microbatch, kind);
  }
  BufferId place(BufferKind kind, std::int32_t microbatch, std::int64_t offset,
                 Region region = Region::Pool, std::int32_t rank = 0) {
    const BufferId buffer = id(kind, microbatch, rank);
    plan.address[buffer] = address_in(region, offset);
    return buffer;
  }
  [[nodiscard]] PlannedMemory planned(Poison poison = Poison::On) {
    return {engine, table, plan, poison};
  }

  host::HostEngine engine;
  BufferTable table;
  Plan plan;
};

void fill(std::byte* memory, std::int64_t bytes, int value) {
  std::fill_n(memory, bytes, static_cast<std::byte>(value));
}

// "11.." : bytes that are 1, and those that are poison.
std::string bytes_at(const std::byte* memory, std::int64_t bytes) {
  std::string text;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const int value = static_cast<int>(memory[i]);
    text += value == 0xff ? "." : std::to_string(value);
  }
  return text;
}

constexpr auto kInput = BufferKind::StaticInput;
constexpr auto kOutput = BufferKind::Output;
constexpr auto kKept = BufferKind::Activations;

TEST(PlannedMemory, ARegionIsAsLongAsItsFurthestBufferReaches) {
  Bench bench;
  const BufferId input = bench.place(kInput, 0, 0, Region::StaticInputs);
  const BufferId kept = bench.place(kKept, 0, 16);
  const BufferId output = bench.place(kOutput, 1, 4);
  PlannedMemory memory = bench.planned();
  EXPECT_EQ(memory.extent(0, Region::StaticInputs).bytes, 8);
  EXPECT_EQ(memory.extent(0, Region::Pool).bytes, 16 + 34);
  EXPECT_EQ(memory.extent(0, Region::GradOutputs).bytes, 0);
  EXPECT_EQ(memory.extent(0, Region::GradOutputs).begin, nullptr);
  EXPECT_EQ(memory.allocated(), 8 + 50);
  EXPECT_EQ(memory.at(input), memory.extent(0, Region::StaticInputs).begin);
  EXPECT_EQ(memory.at(kept), memory.extent(0, Region::Pool).begin + 16);
  EXPECT_EQ(memory.at(output), memory.extent(0, Region::Pool).begin + 4);
}

TEST(PlannedMemory, ABufferOfNoPlaceIsNowhere) {
  Bench bench;
  const BufferId operands = bench.id(BufferKind::Operands, 0);
  bench.place(kInput, 0, 0);
  PlannedMemory memory = bench.planned();
  EXPECT_EQ(memory.at(operands), nullptr);
  memory.written(operands);
  memory.released(operands, 0);
  memory.op_done(0);
  EXPECT_EQ(bench.engine.error(), std::nullopt);
}

TEST(PlannedMemory, RanksHaveRegionsOfTheirOwn) {
  Bench bench(kTwoRanks);
  const BufferId first = bench.place(kOutput, 0, 0, Region::Pool, 0);
  const BufferId second = bench.place(kOutput, 0, 0, Region::Pool, 1);
  PlannedMemory memory = bench.planned();
  EXPECT_NE(memory.at(first), memory.at(second));
  EXPECT_EQ(memory.allocated(), 16);
  memory.written(first);
  memory.written(second);
  EXPECT_EQ(memory.taken_by(first), kNoBuffer);
}

TEST(PlannedMemory, BeginsAsPoisonEvenWherePoisonIsOff) {
  for (const Poison poison : {Poison::On, Poison::Off}) {
    Bench bench;
    const BufferId output = bench.place(kOutput, 0, 0);
    PlannedMemory memory = bench.planned(poison);
    EXPECT_EQ(bytes_at(memory.at(output), 8), "........");
  }
}

TEST(PlannedMemory, WhatIsReleasedIsPoisonedWhenTheOpIsOver) {
  Bench bench;
  const BufferId output = bench.place(kOutput, 0, 8);
  const BufferId other = bench.place(kOutput, 1, 0);
  PlannedMemory memory = bench.planned();
  memory.written(output);
  memory.written(other);
  fill(memory.at(other), 16, 1);
  memory.released(output, 0);
  EXPECT_EQ(bytes_at(memory.at(other), 16), "1111111111111111");
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(other), 16), "11111111........");
}

TEST(PlannedMemory, WhatIsReleasedIsPoisonedOnce) {
  Bench bench;
  const BufferId output = bench.place(kOutput, 0, 0);
  PlannedMemory memory = bench.planned();
  memory.written(output);
  memory.released(output, 0);
  memory.op_done(0);
  fill(memory.at(output), 8, 1);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(output), 8), "11111111");
}

TEST(PlannedMemory, WithPoisonOffWhatIsReleasedStays) {
  Bench bench;
  const BufferId output = bench.place(kOutput, 0, 0);
  PlannedMemory memory = bench.planned(Poison::Off);
  memory.written(output);
  fill(memory.at(output), 8, 1);
  memory.released(output, 0);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(output), 8), "11111111");
}

// Poison would make a victim of the buffer that lies there now.
TEST(PlannedMemory, WhatWasTakenOverIsNotPoisoned) {
  Bench bench;
  const BufferId first = bench.place(kOutput, 0, 0);
  const BufferId second = bench.place(kOutput, 1, 0);
  PlannedMemory memory = bench.planned();
  memory.written(first);
  memory.written(second);
  fill(memory.at(second), 8, 2);
  EXPECT_EQ(memory.taken_by(first), second);
  memory.released(first, 0);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(second), 8), "22222222");
  memory.released(second, 0);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(second), 8), "........");
}

// As where a slot passes from one layer to the next within one piece of work.
TEST(PlannedMemory, WhatIsTakenOverBehindItsReleaseInTheSameOpIsNotPoisonedEither) {
  Bench bench;
  const BufferId first = bench.place(kOutput, 0, 0);
  const BufferId second = bench.place(kOutput, 1, 0);
  PlannedMemory memory = bench.planned();
  memory.written(first);
  memory.released(first, 0);
  memory.written(second);
  fill(memory.at(second), 8, 2);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(second), 8), "22222222");
}

// 34 bytes from 4 on lie on an output that ends at 8 and on one that begins at 36.
TEST(PlannedMemory, WhoeverMeetsARangeInAByteTakesItOver) {
  Bench bench;
  const BufferId below = bench.place(kOutput, 0, 0);
  const BufferId above = bench.place(kOutput, 1, 36);
  const BufferId inside = bench.place(kInput, 0, 16);
  const BufferId beyond = bench.place(kInput, 1, 44);
  const BufferId taker = bench.place(kKept, 0, 4);
  PlannedMemory memory = bench.planned();
  for (const BufferId buffer : {below, above, inside, beyond}) memory.written(buffer);
  for (const BufferId buffer : {below, above, inside, beyond}) {
    EXPECT_EQ(memory.taken_by(buffer), kNoBuffer);
  }
  memory.written(taker);
  for (const BufferId buffer : {below, above, inside}) EXPECT_EQ(memory.taken_by(buffer), taker);
  EXPECT_EQ(memory.taken_by(beyond), kNoBuffer);
  EXPECT_EQ(memory.taken_by(taker), kNoBuffer);
}

TEST(PlannedMemory, NeighboursDoNotMeet) {
  Bench bench;
  const BufferId first = bench.place(kOutput, 0, 0);
  const BufferId second = bench.place(kOutput, 1, 8);
  const BufferId third = bench.place(kInput, 0, 16);
  PlannedMemory memory = bench.planned();
  memory.written(first);
  memory.written(third);
  memory.written(second);
  EXPECT_EQ(memory.taken_by(first), kNoBuffer);
  EXPECT_EQ(memory.taken_by(third), kNoBuffer);
}

TEST(PlannedMemory, RegionsDoNotMeet) {
  Bench bench;
  const BufferId first = bench.place(kOutput, 0, 0, Region::Pool);
  const BufferId second = bench.place(kOutput, 1, 0, Region::GradOutputs);
  PlannedMemory memory = bench.planned();
  memory.written(first);
  memory.written(second);
  EXPECT_EQ(memory.taken_by(first), kNoBuffer);
  EXPECT_NE(memory.at(first), memory.at(second));
}

// The next replay's.
TEST(PlannedMemory, WhatIsWrittenAgainHasItsPlaceBack) {
  Bench bench;
  const BufferId first = bench.place(kOutput, 0, 0);
  const BufferId second = bench.place(kOutput, 1, 0);
  PlannedMemory memory = bench.planned();
  memory.written(first);
  memory.written(second);
  memory.written(first);
  EXPECT_EQ(memory.taken_by(first), kNoBuffer);
  EXPECT_EQ(memory.taken_by(second), first);
  memory.written(first);
  EXPECT_EQ(memory.taken_by(first), kNoBuffer);
}

TEST(EagerMemory, ABufferIsThereFromItsWriteToItsRelease) {
  Bench bench;
  EagerMemory memory(bench.engine, bench.table, Poison::On);
  const BufferId output = bench.id(kOutput, 0);
  EXPECT_EQ(memory.at(output), nullptr);
  memory.written(output);
  ASSERT_NE(memory.at(output), nullptr);
  EXPECT_EQ(bytes_at(memory.at(output), 8), "........");
  memory.released(output, 0);
  EXPECT_EQ(memory.at(output), nullptr);
  EXPECT_EQ(bench.engine.error(), std::nullopt);
}

TEST(EagerMemory, WithPoisonOffNothingIsLaunched) {
  Bench bench;
  bench.engine.begin_capture(0);
  EagerMemory memory(bench.engine, bench.table, Poison::Off);
  memory.written(bench.id(kOutput, 0));
  EXPECT_TRUE(bench.engine.inspect(bench.engine.end_capture()).empty());
}

TEST(EagerMemory, BuffersShareNothing) {
  Bench bench;
  EagerMemory memory(bench.engine, bench.table, Poison::On);
  const BufferId first = bench.id(kOutput, 0);
  const BufferId second = bench.id(kOutput, 1);
  memory.written(first);
  memory.written(second);
  fill(memory.at(first), 8, 1);
  fill(memory.at(second), 8, 2);
  EXPECT_EQ(bytes_at(memory.at(first), 8), "11111111");
  memory.released(first, 0);
  memory.op_done(0);
  EXPECT_EQ(bytes_at(memory.at(second), 8), "22222222");
}

TEST(EagerMemory, ABufferWithoutBytesIsNeverThere) {
  Bench bench;
  EagerMemory memory(bench.engine, bench.table, Poison::On);
  const BufferId operands = bench.id(BufferKind::Operands, 0);
  memory.written(operands);
  EXPECT_EQ(memory.at(operands), nullptr);
  memory.released(operands, 0);
  EXPECT_EQ(bench.engine.error(), std::nullopt);
  EXPECT_EQ(memory.peak(), (std::vector<std::int64_t>{0}));
}

// 8, 42, 34, 42 again, 50: the most at once is 50, and 16 on the other rank.
TEST(EagerMemory, ThePeakIsTheMostThatWasThereAtOnceOnEachRank) {
  Bench bench(kTwoRanks);
  EagerMemory memory(bench.engine, bench.table, Poison::On);
  memory.written(bench.id(kInput, 0));
  memory.written(bench.id(kKept, 0));
  EXPECT_EQ(memory.peak(), (std::vector<std::int64_t>{42, 0}));
  memory.released(bench.id(kInput, 0), 0);
  memory.written(bench.id(kInput, 1));
  EXPECT_EQ(memory.peak(), (std::vector<std::int64_t>{42, 0}));
  memory.written(bench.id(kOutput, 1));
  memory.written(bench.id(kOutput, 0, 1));
  memory.written(bench.id(kInput, 0, 1));
  memory.released(bench.id(kKept, 0), 0);
  memory.released(bench.id(kInput, 0, 1), 0);
  memory.written(bench.id(kInput, 1, 1));
  EXPECT_EQ(memory.peak(), (std::vector<std::int64_t>{50, 16}));
}

TEST(EagerMemory, WhatIsReleasedGoesBackToTheEngine) {
  Bench bench;
  host::HostEngine small(8);
  EagerMemory memory(small, bench.table, Poison::Off);
  for (int round = 0; round < 3; ++round) {
    memory.written(bench.id(kOutput, 0));
    memory.released(bench.id(kOutput, 0), 0);
  }
  EXPECT_EQ(small.error(), std::nullopt);
}

}  // namespace
}  // namespace capo::run

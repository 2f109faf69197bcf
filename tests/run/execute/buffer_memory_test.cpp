// Memory of planned and of eager buffers, on plans written by hand: addresses, which buffer took
// over from which, when memory is poisoned, and which reads come too late.
//
// All buffers are of one chunk of a layer with two microbatches: an input takes 8 bytes, an output
// 8, kept activations 34, and nothing else takes any.

#include "run/execute/buffer_memory.h"
#include "run/host/host_engine.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
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

// Two bytes that are 1 and two that are poison are "11..".
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

// A graph that makes a buffer overwrites what lies there, and the buffer is then copied elsewhere.
TEST(PlannedMemory, WhatIsMadeElsewhereTakesOverWhatLiesThere) {
  Bench bench;
  bench.plan.made.assign(bench.table.size(), kNowhere);
  const BufferId hurt = bench.place(kInput, 0, 4);
  const BufferId copied = bench.place(kOutput, 0, 0, Region::Copies);
  bench.plan.made[copied] = address_in(Region::Pool, 0);
  const BufferId next = bench.place(kInput, 1, 0);
  PlannedMemory memory = bench.planned();
  memory.written(hurt);
  memory.written(copied);
  EXPECT_EQ(memory.taken_by(hurt), copied);
  memory.written(next);
  EXPECT_EQ(memory.taken_by(copied), kNoBuffer);
}

struct Placed {
  BufferKind kind;
  std::int32_t microbatch;
  std::int64_t offset;
  Region region = Region::Pool;
};

// Buffers a, b, c ... at their places, and what becomes of them: "+a" writes it and fills it with
// its number, "-a" releases it, "." ends the op. Then `owners` has a letter for each buffer, that
// of the one that took it over, or "-"; `bytes` is what the first 16 bytes of the pool hold.
struct Life {
  const char* what;
  std::vector<Placed> places;
  const char* calls;
  const char* owners;
  const char* bytes;
  Poison poison = Poison::On;
};

std::string owners_of(const PlannedMemory& memory, const std::vector<BufferId>& buffers) {
  std::string owners;
  for (const BufferId buffer : buffers) {
    const auto taker = std::find(buffers.begin(), buffers.end(), memory.taken_by(buffer));
    owners += taker == buffers.end() ? '-' : static_cast<char>('a' + (taker - buffers.begin()));
  }
  return owners;
}

class PlannedLives : public ::testing::TestWithParam<Life> {};

TEST_P(PlannedLives, AreAsCallsSay) {
  const Life& life = GetParam();
  SCOPED_TRACE(life.what);
  Bench bench;
  std::vector<BufferId> buffers;
  for (const Placed& at : life.places) {
    buffers.push_back(bench.place(at.kind, at.microbatch, at.offset, at.region));
  }
  PlannedMemory memory = bench.planned(life.poison);
  std::istringstream calls(life.calls);
  for (std::string call; calls >> call;) {
    if (call == ".") {
      memory.op_done(0);
      continue;
    }
    const auto number = static_cast<std::size_t>(call[1] - 'a');
    const BufferId buffer = buffers[number];
    if (call[0] == '-') {
      memory.released(buffer, 0);
    } else {
      memory.written(buffer);
      fill(memory.at(buffer), bench.table.bytes(bench.table.at(buffer)),
           static_cast<int>(number) + 1);
    }
  }
  EXPECT_EQ(owners_of(memory, buffers), life.owners);
  const auto& pool = memory.extent(0, Region::Pool);
  EXPECT_EQ(bytes_at(pool.begin, std::min(pool.bytes, std::int64_t{16})), life.bytes);
}

// Two outputs at one place, or one after another.
const std::vector<Placed> kOne{{kOutput, 0, 0}};
const std::vector<Placed> kShared{{kOutput, 0, 0}, {kOutput, 1, 0}};
const std::vector<Placed> kBeside{{kOutput, 0, 0}, {kOutput, 1, 8}};

INSTANTIATE_TEST_SUITE_P(
    Calls, PlannedLives,
    ::testing::Values(
        Life{"a released buffer stays until the op is over", kBeside, "+a +b -b", "--",
             "1111111122222222"},
        Life{"then it is poisoned", kBeside, "+a +b -b .", "--", "11111111........"},
        Life{"it is poisoned once", kOne, "+a -a . +a .", "-", "11111111"},
        Life{"with poison off it stays", kOne, "+a -a .", "-", "11111111", Poison::Off},
        // Poison would make a victim of the buffer that lies there now.
        Life{"a place that was taken over is not poisoned", kShared, "+a +b -a .", "b-",
             "22222222"},
        Life{"the one that took it over is", kShared, "+a +b -a . -b .", "b-", "........"},
        // A slot passes so from one layer to the next within one piece of work.
        Life{"nor is it if that comes after the release in the same op", kShared, "+a -a +b .",
             "b-", "22222222"},
        // 34 bytes from 4 on lie on an output that ends at 8 and on one that begins at 36.
        Life{"a buffer takes over whatever it shares a byte with",
             {{kOutput, 0, 0}, {kOutput, 1, 36}, {kInput, 0, 16}, {kInput, 1, 44}, {kKept, 0, 4}},
             "+a +b +c +d +e",
             "eee--",
             "1111555555555555"},
        Life{"before that none is taken over",
             {{kOutput, 0, 0}, {kOutput, 1, 36}, {kInput, 0, 16}, {kInput, 1, 44}, {kKept, 0, 4}},
             "+a +b +c +d",
             "-----",
             "11111111........"},
        Life{"neighbours do not meet",
             {{kOutput, 0, 0}, {kOutput, 1, 8}, {kInput, 0, 16}},
             "+a +c +b",
             "---",
             "1111111122222222"},
        Life{"regions do not meet",
             {{kOutput, 0, 0}, {kOutput, 1, 0, Region::GradOutputs}},
             "+a +b",
             "--",
             "11111111"},
        // The next replay writes it again.
        Life{"a buffer that is written again has its place back", kShared, "+a +b +a", "-a",
             "11111111"},
        Life{"and keeps it when it is written once more", kShared, "+a +b +a +a", "-a",
             "11111111"}));

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

// A buffer may be longer than the rows that eager execution read: what is behind them is nobody's.
TEST(LateReads, AreOfNoMoreBytesThanWereExpected) {
  Bench bench;
  LateReads late(bench.engine, bench.table);
  const BufferId first = bench.id(kInput, 0);
  const BufferId second = bench.id(kInput, 1);
  std::byte* const expected = bench.engine.allocate(16, "two inputs");
  std::byte* const place = bench.engine.allocate(8, "the place of one");
  fill(expected, 16, 1);
  fill(place, 8, 1);
  fill(place + 6, 2, 2);
  late.keep_expected(first, expected, 6);
  late.keep(second, place, 0);
  EXPECT_TRUE(late.same_bits(first, second));
  late.look(first, place, Reader::Work, 0);
  EXPECT_TRUE(late.seen().empty());
  fill(place + 5, 1, 2);
  late.look(first, place, Reader::Work, 0);
  ASSERT_EQ(late.seen().size(), 1U);
  EXPECT_EQ(late.seen().front().buffer, first);
}

}  // namespace
}  // namespace capo::run

// The engine by itself: memory, launches, and the first error, which is kept.
//
// Captures and graphs are host_capture_test.cpp's.

#include "run/host/host_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capo::run::host {
namespace {

constexpr std::int64_t kBytes = 4;

Fill fill(std::byte* to, std::uint8_t value) {
  return {.bytes = kBytes, .value = value, .to = to};
}

std::string message_of(const Engine& engine) {
  return engine.error() ? engine.error()->message : "no error";
}

// The value of the first byte.
int value_at(Engine& engine, const std::byte* memory) {
  std::byte value{};
  engine.read(&value, memory, 1);
  return static_cast<int>(value);
}

TEST(HostEngine, SaysWhatItIs) {
  const HostEngine engine;
  EXPECT_EQ(engine.name(), "host");
  EXPECT_EQ(engine.device(), "this machine's processor");
  EXPECT_EQ(engine.error(), std::nullopt);
}

TEST(HostEngine, ALaunchRunsAtOnceInTheOrderOfLaunches) {
  HostEngine engine;
  engine.have_streams(2);
  std::byte* memory = engine.allocate(kBytes, "bytes");
  engine.launch(1, fill(memory, 7));
  EXPECT_EQ(value_at(engine, memory), 7);
  engine.launch(0, fill(memory, 8));
  EXPECT_EQ(value_at(engine, memory), 8);
}

TEST(HostEngine, WhatIsWrittenIsRead) {
  HostEngine engine;
  std::byte* memory = engine.allocate(8, "bytes");
  const std::array<std::int32_t, 2> numbers{3, -4};
  engine.write(memory, numbers.data(), 8);
  std::array<std::int32_t, 2> back{};
  engine.read(back.data(), memory, 8);
  EXPECT_EQ(back, numbers);
}

// Under UBSan, which knows what memcpy takes.
TEST(HostEngine, OfNoBytesThereNeedBeNoAddress) {
  HostEngine engine;
  engine.write(nullptr, nullptr, 0);
  engine.read(nullptr, nullptr, 0);
  EXPECT_EQ(engine.error(), std::nullopt);
}

TEST(HostEngine, AddressesAreAlignedAndDiffer) {
  HostEngine engine;
  std::vector<std::byte*> all;
  for (const std::int64_t bytes : {1, 3, 256, 257, 0, 1000}) {
    std::byte* memory = engine.allocate(bytes, "bytes");
    ASSERT_NE(memory, nullptr);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): an address as a number
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kAlignment, 0U);
    for (const std::byte* other : all) EXPECT_NE(memory, other);
    all.push_back(memory);
  }
}

TEST(HostEngine, SizesAreRoundedUpToTheAlignment) {
  EXPECT_EQ(aligned(0), 0);
  EXPECT_EQ(aligned(1), 256);
  EXPECT_EQ(aligned(256), 256);
  EXPECT_EQ(aligned(257), 512);
}

TEST(HostEngine, BeyondItsLimitThereIsNoMemory) {
  HostEngine engine(1000);
  EXPECT_NE(engine.allocate(600, "weights"), nullptr);
  EXPECT_NE(engine.allocate(400, "weights"), nullptr);
  EXPECT_EQ(engine.allocate(1, "planned buffers"), nullptr);
  EXPECT_EQ(message_of(engine), "host engine: there is no memory for 1 bytes of planned buffers");
  EXPECT_EQ(engine.error()->kind, ErrorKind::Environment);
}

TEST(HostEngine, WhatIsReleasedMayBeHadAgain) {
  HostEngine engine(1000);
  std::byte* first = engine.allocate(1000, "buffers");
  engine.release(first);
  EXPECT_NE(engine.allocate(1000, "buffers"), nullptr);
  EXPECT_EQ(engine.error(), std::nullopt);
}

TEST(HostEngine, MemoryThatNobodyHadIsNotReleased) {
  HostEngine engine;
  std::byte* memory = engine.allocate(kBytes, "bytes");
  engine.release(memory);
  engine.release(memory);
  EXPECT_EQ(message_of(engine), "host engine: memory was given back that nobody had");
}

TEST(HostEngine, OnlyTheBeginningOfABlockIsReleased) {
  HostEngine engine;
  std::byte* memory = engine.allocate(kBytes, "bytes");
  engine.release(memory + 1);
  EXPECT_EQ(message_of(engine), "host engine: memory was given back that nobody had");
}

TEST(HostEngine, AStreamThatIsNotThereIsNamed) {
  for (int what = 0; what < 5; ++what) {
    HostEngine engine;
    engine.have_streams(2);
    std::byte* memory = engine.allocate(kBytes, "bytes");
    engine.launch(0, fill(memory, 1));
    if (what == 0) engine.launch(2, fill(memory, 2));
    if (what == 1) static_cast<void>(engine.record(2));
    if (what == 2) engine.wait(2, engine.record(0));
    if (what == 3) engine.begin_capture(2);
    if (what == 4) engine.replay(0, 2);
    EXPECT_EQ(message_of(engine), "host engine: there is no stream 2") << what;
  }
}

TEST(HostEngine, StreamsOnceThereStay) {
  HostEngine engine;
  engine.have_streams(3);
  engine.have_streams(1);
  std::byte* memory = engine.allocate(kBytes, "bytes");
  engine.launch(2, fill(memory, 5));
  EXPECT_EQ(value_at(engine, memory), 5);
}

TEST(HostEngine, AnErrorNamesWhatWasBeingLaunched) {
  HostEngine engine;
  engine.label("B of chunk 1, microbatch 0");
  engine.launch(9, Fill{});
  EXPECT_EQ(message_of(engine), "host engine: B of chunk 1, microbatch 0: there is no stream 9");
}

TEST(HostEngine, TheFirstErrorIsKept) {
  HostEngine engine;
  engine.label("first");
  engine.launch(9, Fill{});
  engine.label("second");
  engine.launch(10, Fill{});
  engine.wait(0, 77);
  static_cast<void>(engine.end_capture());
  EXPECT_EQ(message_of(engine), "host engine: first: there is no stream 9");
}

TEST(HostEngine, AfterAnErrorNothingIsLaunchedReplayedWrittenOrAllocated) {
  HostEngine engine;
  std::byte* memory = engine.allocate(kBytes, "bytes");
  engine.launch(0, fill(memory, 1));
  engine.begin_capture(0);
  engine.launch(0, fill(memory, 3));
  const GraphId graph = engine.end_capture();
  engine.launch(9, Fill{});
  engine.launch(0, fill(memory, 2));
  engine.replay(graph, 0);
  const std::byte four{4};
  engine.write(memory, &four, 1);
  EXPECT_EQ(static_cast<int>(*memory), 1);
  EXPECT_EQ(engine.allocate(kBytes, "bytes"), nullptr);
  std::byte unread{99};
  engine.read(&unread, memory, 1);
  EXPECT_EQ(static_cast<int>(unread), 99);
}

TEST(HostEngine, EventsAreInTheOrderOfTime) {
  HostEngine engine;
  std::byte* memory = engine.allocate(1 << 20, "bytes");
  const EventId before = engine.record(0);
  engine.launch(0, Fill{.bytes = 1 << 20, .value = 1, .to = memory});
  const EventId after = engine.record(0);
  EXPECT_GT(engine.between(before, after), 0.0);
  EXPECT_DOUBLE_EQ(engine.between(after, before), -engine.between(before, after));
}

TEST(HostEngine, AWaitForAnEventThatNobodyRecordedIsAnError) {
  HostEngine engine;
  const EventId event = engine.record(0);
  engine.wait(0, event);
  EXPECT_EQ(message_of(engine), "no error");
  engine.wait(0, event + 1);
  EXPECT_EQ(message_of(engine), "host engine: a stream waits for an event that nobody recorded");
}

TEST(HostEngine, ForgottenEventsAreThereNoMore) {
  HostEngine engine;
  const EventId event = engine.record(0);
  engine.forget_events();
  engine.wait(0, event);
  EXPECT_EQ(message_of(engine), "host engine: a stream waits for an event that nobody recorded");
}

}  // namespace
}  // namespace capo::run::host

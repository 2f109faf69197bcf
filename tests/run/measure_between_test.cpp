// Two processes measure together, on an engine and with messages whose clock a test can foresee:
// each launch takes one, a message as long as its bytes say, and twice as long where computation
// runs beside all of it, which takes half as long again where messages run beside it.

#include "run/host/host_engine.h"
#include "run/measure.h"
#include "tests/run/labelled_engine.h"
#include "tests/run/processes/thread_library.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

constexpr double kBytesInOne = 64;  // of a message, in the time of a launch

// The host engine with a device's clock: a launch begins when the one before it on its stream is
// over, streams go on beside each other, and a host that waits does so for all of them.
class ClockedEngine final : public LabelledEngine {
 public:
  ClockedEngine() : LabelledEngine(std::make_unique<host::HostEngine>()) {}

  void launch(StreamId stream, const Call& call) override {
    LabelledEngine::launch(stream, call);
    if (!capturing_) takes(stream, 1);
  }
  [[nodiscard]] EventId record(StreamId stream) override {
    static_cast<void>(LabelledEngine::record(stream));
    times_.push_back(begin_on(stream));
    return static_cast<EventId>(times_.size() - 1);
  }
  void wait(StreamId stream, EventId event) override {
    over_[stream] = std::max(begin_on(stream), times_[event]);
  }
  void begin_capture(StreamId origin) override {
    capturing_ = true;
    LabelledEngine::begin_capture(origin);
  }
  [[nodiscard]] GraphId end_capture() override {
    capturing_ = false;
    return LabelledEngine::end_capture();
  }
  void replay(GraphId graph, StreamId stream) override {
    computes(stream, static_cast<double>(inspect(graph).size()));
    LabelledEngine::replay(graph, stream);
  }
  void synchronise() override {
    LabelledEngine::synchronise();
    for (const auto& [stream, over] : over_) now_ = std::max(now_, over);
  }
  [[nodiscard]] double between(EventId from, EventId to) override {
    return times_[to] - times_[from];
  }
  void forget_events() override {
    LabelledEngine::forget_events();
    times_.clear();
  }

  void takes(StreamId stream, double time) { over_[stream] = begin_on(stream) + time; }
  /// Computation takes half as long again if stream 1 moves messages until it is over.
  void computes(StreamId stream, double time) {
    const bool slowed = over_[1] >= begin_on(stream) + 1.5 * time;
    takes(stream, slowed ? 1.5 * time : time);
  }
  /// Messages take twice as long if stream 0 computes until they are over.
  void moves(StreamId stream, double time) {
    const bool crowded = over_[0] >= begin_on(stream) + 2 * time;
    takes(stream, crowded ? 2 * time : time);
  }

 private:
  [[nodiscard]] double begin_on(StreamId stream) { return std::max(now_, over_[stream]); }

  bool capturing_ = false;
  double now_ = 0;                   // of the host
  std::map<StreamId, double> over_;  // by stream: when all that was launched there is over
  std::vector<double> times_;        // by event
};

// Messages of which the other end is always there. What has begun on a stream goes together, both
// ways at once.
class ClockedMessages final : public Transport {
 public:
  explicit ClockedMessages(ClockedEngine& engine) : engine_(engine) {}

  void expect(const Message& /*message*/, std::byte* /*place*/) override {}
  void begin_step() override { engine_.synchronise(); }
  void send(StreamId /*stream*/, const Message& message, const std::byte* /*from*/) override {
    sent_ += static_cast<double>(message.bytes);
  }
  void receive(StreamId /*stream*/, const Message& message) override {
    received_ += static_cast<double>(message.bytes);
  }
  void finish(StreamId stream, const Message& /*message*/, End /*end*/) override {
    const double bytes = std::max(std::exchange(sent_, 0), std::exchange(received_, 0));
    if (bytes > 0) engine_.moves(stream, bytes / kBytesInOne);
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return none_; }

 private:
  ClockedEngine& engine_;
  double sent_ = 0;  // bytes that have begun and not finished
  double received_ = 0;
  std::optional<Error> none_;
};

// The first of two processes, whose other one is played by its messages.
class MeasureBetween : public ::testing::Test {
 protected:
  [[nodiscard]] BetweenFactory messages() {
    return [this](Engine&, const Apart&) { return std::make_unique<ClockedMessages>(engine_); };
  }

  ClockedEngine engine_;
  Post post_{2};
  ThreadLibrary library_{post_, 0};
  Processes processes_{library_, 60s};
};

TEST_F(MeasureBetween, AMessageTakesWhatItsBytesTake) {
  const auto cost = measure_transfer_between(engine_, processes_, messages(), 6400);
  ASSERT_TRUE(cost.has_value()) << cost.error().message;
  EXPECT_EQ(cost->latency, 16 / kBytesInOne);
  EXPECT_EQ(cost->bandwidth, 6400 / (100 - 16 / kBytesInOne));
}

// Computation that is over before the messages begin slows none of them.
TEST_F(MeasureBetween, ComputationRunsBesideAllOfTheMessages) {
  const Module module = small(ModuleKind::Linear);
  for (const std::int64_t bytes : {640, 64000}) {
    TransferCost cost{.latency = 0, .bandwidth = kBytesInOne, .bytes = bytes};
    const auto failed =
        measure_beside_computation({engine_, module, {}}, processes_, messages(), cost);
    ASSERT_FALSE(failed.has_value()) << failed->message;
    EXPECT_EQ(cost.crowded, 2) << bytes;
    EXPECT_EQ(cost.slowdown, 1.5) << bytes;
    EXPECT_EQ(cost.ahead, 0) << "no message moves before its receive";
  }
}

TEST_F(MeasureBetween, AnExchangeSendsAllBlocksButOne) {
  const auto takes = [&](std::int32_t members) {
    const auto cost = measure_exchanges_between(engine_, processes_, messages(),
                                                {.count = 6, .row_bytes = 64, .members = members});
    EXPECT_TRUE(cost.has_value());
    EXPECT_EQ(cost->dispatch, cost->combine);
    return cost->dispatch;
  };
  EXPECT_EQ(takes(2), 1 + 1 + 3) << "a permutation, the own block, three rows";
  EXPECT_EQ(takes(3), 1 + 1 + 4);
  EXPECT_EQ(takes(4), 1 + 1 + 5) << "blocks are nearly equal";
  EXPECT_EQ(takes(8), 1 + 6) << "there is no own block";
}

TEST_F(MeasureBetween, AReductionMovesAllGradientsAndAddsThem) {
  const auto takes = [&](const Module& module, std::int32_t members) {
    const auto cost =
        measure_reduction_between({engine_, module, {}}, processes_, messages(), members);
    EXPECT_TRUE(cost.has_value());
    return *cost;
  };
  // A sum and a copy of each part; 16 numbers of four bytes, or 32 of two, move in one.
  EXPECT_EQ(takes(small(ModuleKind::Linear), 2), 16 + 2);
  EXPECT_EQ(takes(small(ModuleKind::Linear), 4), 3 * (16 + 2));
  EXPECT_EQ(takes(small(ModuleKind::LayerNormLinear), 2), 16 + 2 + 2 * (0.5 + 2));
  EXPECT_EQ(takes(small(ModuleKind::GroupedMlp), 2), 3 * (32 + 2 + 16 + 2));
  Module frozen = small(ModuleKind::GroupedMlp);
  frozen.flags.frozen_weight = true;
  EXPECT_EQ(takes(frozen, 2), 3 * (16 + 2)) << "its first weights have no gradient";
  Module plain = small(ModuleKind::Linear);
  plain.flags = {};
  EXPECT_EQ(takes(plain, 2), 8 + 2) << ".grad has the weight's type";
}

TEST_F(MeasureBetween, AModuleThatIsNotAcceptedIsNotReduced) {
  Module module = small(ModuleKind::GroupedLinear);
  module.splits = Splits::Host;
  const auto cost = measure_reduction_between({engine_, module, {}}, processes_, messages(), 2);
  ASSERT_FALSE(cost.has_value());
  EXPECT_EQ(cost.error().kind, RunFailure::Kind::Refused);
}

// Two processes as threads, and messages that really go between them.
TEST(MeasuredExchanges, AreThoseOfBothProcesses) {
  Post post(2);
  in_each(post, 60s, [](Processes& processes) {
    host::HostEngine engine;
    const auto exchange = measure_exchanges_between(engine, processes, between_processes,
                                                    {.count = 7, .row_bytes = 32});
    ASSERT_TRUE(exchange.has_value()) << exchange.error().message;
    EXPECT_GT(exchange->dispatch, 0);
    EXPECT_GT(exchange->combine, 0);
    const Module module = small(ModuleKind::GroupedMlp);
    const auto reduce =
        measure_reduction_between({engine, module, {}}, processes, between_processes, 2);
    ASSERT_TRUE(reduce.has_value()) << reduce.error().message;
    EXPECT_GT(*reduce, 0);
  });
}

TEST(MeasuredExchanges, EndWithTheMessageThatDoesNotCome) {
  Post post(2);
  post.tamper = [](const Sent& sent) {
    // Communicator 0 is that of texts.
    return sent.communicator > 0 && sent.from == 0 ? Fate::Lost : Fate::Arrives;
  };
  in_each(post, 100ms, [](Processes& processes) {
    host::HostEngine engine;
    const auto exchange = measure_exchanges_between(engine, processes, between_processes,
                                                    {.count = 7, .row_bytes = 32});
    ASSERT_FALSE(exchange.has_value());
    EXPECT_EQ(exchange.error().kind, RunFailure::Kind::Broken);
    if (processes.rank() != 0) return;
    EXPECT_NE(exchange.error().message.find("message 0 from rank 0 to rank 1, which is measured"),
              std::string::npos)
        << exchange.error().message;
  });
}

}  // namespace
}  // namespace capo::run

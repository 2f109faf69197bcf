// Measurements on an engine whose clock a test can foresee: every launch takes as long as its bytes
// say, so that the median of each kind of task is known.

#include "run/measure.h"
#include "run/host/host_engine.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

// The host engine, with a clock that goes on by one at each launch, and within a graph by one for
// each of its nodes. Every stream has the same clock, since nothing that is measured overlaps.
class CountingEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "counting"; }
  [[nodiscard]] std::string device() const override { return "a clock of launches"; }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override {
    return host_.allocate(bytes, what);
  }
  void release(std::byte* memory) override { host_.release(memory); }
  void write(void* to, const void* from, std::int64_t bytes) override {
    host_.write(to, from, bytes);
  }
  void read(void* to, const void* from, std::int64_t bytes) override {
    host_.read(to, from, bytes);
  }
  void have_streams(std::uint32_t count) override { host_.have_streams(count); }
  void launch(StreamId stream, const Call& call) override {
    host_.launch(stream, call);
    now_ += pace_ * beside_graphs;
  }
  [[nodiscard]] EventId record(StreamId stream) override {
    static_cast<void>(host_.record(stream));
    times_.push_back(now_);
    return static_cast<EventId>(times_.size() - 1);
  }
  void wait(StreamId /*stream*/, EventId /*event*/) override {}
  void begin_capture(StreamId origin) override { host_.begin_capture(origin); }
  [[nodiscard]] GraphId end_capture() override { return host_.end_capture(); }
  void replay(GraphId graph, StreamId stream) override {
    ++replays;
    now_ += pace_ * static_cast<double>(host_.inspect(graph).size());
    host_.replay(graph, stream);
  }
  [[nodiscard]] std::vector<GraphNode> inspect(GraphId graph) override {
    return host_.inspect(graph);
  }
  void synchronise() override {
    host_.synchronise();
    if (really) std::this_thread::sleep_for((now_ - slept_for_) * unit);
    slept_for_ = now_;
  }
  [[nodiscard]] double between(EventId from, EventId to) override {
    return (times_[to] - times_[from]) * unit.count();
  }
  void forget_events() override {  // at the end of each replay
    host_.forget_events();
    times_.clear();
    if (every_second != 1) pace_ = pace_ == 1 ? every_second : 1;
  }
  void label(std::string_view what) override {
    host_.label(what);
    if (what == "setting up") pace_ = 1;
    if (what.starts_with("a rest ")) pace_ = after_rest;
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return host_.error(); }

  std::size_t replays = 0;
  std::chrono::duration<double, std::micro> unit{1};  ///< what a launch takes
  bool really = false;                                ///< whoever waits for it waits so long
  double after_rest = 1;     ///< launches of a run take so much of it once there was a rest
  double every_second = 1;   ///< launches take so much of it in every second replay
  double beside_graphs = 1;  ///< launches that are no graph's take so much of it

 private:
  host::HostEngine host_;
  double now_ = 0;
  double slept_for_ = 0;
  double pace_ = 1;
  std::vector<double> times_;
};

TEST(Measure, GivesEveryKindOfTaskItsOwnTime) {
  CountingEngine engine;
  const auto cost = measure_module(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(cost.has_value());
  // Copy and product; likewise, and what leaves the step is copied out; a product alone.
  EXPECT_EQ(cost->forward, 2);
  EXPECT_EQ(cost->backward, 3);
  EXPECT_EQ(cost->weight, 1);
  EXPECT_FALSE(cost->rest.has_value()) << "nothing is warmed up";
  EXPECT_FALSE(cost->dispatch.has_value());
  EXPECT_FALSE(cost->combine.has_value());
}

TEST(Measure, TellsWhatQuantizationTakesOfForwardAndBackward) {
  Module module = small(ModuleKind::Linear);
  module.recipe = Recipe::Mxfp8;
  CountingEngine engine;
  const auto cost = measure_module(engine, module, {});
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->quantize_forward, 2) << "rows, and the weight of each microbatch";
  EXPECT_EQ(cost->quantize_backward, 1) << "rows of the gradient";
  module.weight_cache = WeightCache::Device;
  const auto kept = measure_module(engine, module, {});
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->quantize_forward, 1);
  EXPECT_EQ(*cost->forward - *kept->forward, 1);
  module.recipe = Recipe::Current;  // which runs in the module's own type
  const auto current = measure_module(engine, module, {});
  ASSERT_TRUE(current.has_value());
  EXPECT_FALSE(current->quantize_forward.has_value());
}

TEST(Measure, MeasuresExchangesWhereTheyAreAskedFor) {
  CountingEngine engine;
  const auto cost =
      measure_module(engine, small(ModuleKind::GroupedMlp), {.exchanges = Exchanges::Measured});
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->dispatch, 1);
  EXPECT_EQ(cost->combine, 1);
  // Copies of rows and of their sizes, fc1 with SwiGLU, fc2.
  EXPECT_EQ(cost->forward, 4);
}

TEST(Measure, UnderPlanTeABackwardAlsoAddsADummyGradient) {
  CountingEngine engine;
  const auto one = measure_module(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->autograd, 1);
  const auto six = measure_module(engine, small(ModuleKind::GroupedMlp), {});
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->autograd, 6) << "three groups have two weights each";
  const auto none =
      measure_module(engine, configured(ModuleKind::Linear, gradients::GradientMode::Delay), {});
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->autograd.has_value()) << "that plan is not accepted there";
}

TEST(Measure, AWholeBackwardIsRunAsOne) {
  CountingEngine engine;
  const auto cost = measure_module(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(cost.has_value());
  // Its halves take four launches, and the dummy gradient one.
  EXPECT_EQ(cost->whole, 5);
  Module delaying = small(ModuleKind::Linear);
  delaying.flags.delay_wgrad = true;
  const auto delayed = measure_module(engine, delaying, {});
  ASSERT_TRUE(delayed.has_value());
  EXPECT_FALSE(delayed->whole.has_value()) << "it has no whole backwards";
}

TEST(Measure, MediansAreOfEachTimeByItself) {
  const ModuleCost median = median_of({{.forward = 3, .backward = 1, .whole = 9},
                                       {.forward = 1, .backward = 2},
                                       {.forward = 2, .backward = 3, .fuse = 0.5}});
  EXPECT_EQ(median, (ModuleCost{.forward = 2, .backward = 2, .whole = 9, .fuse = 0.5}));
}

TEST(Measure, ACallOfSeveralWeightGradientsIsOneLaunch) {
  CountingEngine engine;
  const auto linear = measure_module(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(linear->fuse, 0) << "four microbatches take one launch, as one does";
  Module module = small(ModuleKind::Linear);
  module.flags.bias = true;
  const auto biased = measure_module(engine, module, {});
  ASSERT_TRUE(biased.has_value());
  EXPECT_EQ(biased->weight, 2);
  EXPECT_EQ(biased->fuse, 0.5) << "biases are added one by one";
}

TEST(Measure, NeedsNoMoreThanTwoMicrobatches) {
  CountingEngine engine;
  const auto cost = measure_module(engine, small(ModuleKind::Linear), {.microbatches = 2});
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->forward, 2);
  EXPECT_EQ(cost->weight, 1);
  EXPECT_FALSE(cost->fuse.has_value()) << "there are no two calls of several";
}

TEST(Measure, OfAModuleThatIsNotAcceptedSaysWhichItIs) {
  CountingEngine engine;
  Module module = small(ModuleKind::GroupedLinear);
  module.splits = Splits::Host;
  const auto cost = measure_module(engine, module, {});
  ASSERT_FALSE(cost.has_value());
  EXPECT_EQ(cost.error().kind, RunFailure::Kind::Refused);
  EXPECT_EQ(cost.error().message.find("module `grouped-linear` cannot be measured: "), 0u)
      << cost.error().message;
}

TEST(Measure, ATransferHasALatencyAndNoBandwidthWhereBytesTakeNoTime) {
  CountingEngine engine;
  const auto cost = measure_transfer(engine, 4096);
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->latency, 1);
  EXPECT_FALSE(cost->bandwidth.has_value());
  EXPECT_EQ(cost->bytes, 4096);
}

TEST(Measure, TwoRanksSideBySideTakeAsLongAsOneAfterTheOtherOnOneClock) {
  CountingEngine engine;
  const auto beside = measure_beside(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(beside.has_value());
  EXPECT_NEAR(*beside, 1, 0.05) << "all streams have one clock";
}

TEST(Measure, AHopIsWhatLiesBetweenTheTasksOfTwoRanks) {
  CountingEngine engine;
  const auto hop = measure_hop(engine, small(ModuleKind::Linear), {});
  ASSERT_TRUE(hop.has_value());
  EXPECT_EQ(*hop, 1) << "a copy";
  Module wider = small(ModuleKind::Linear);
  wider.shape.ffn = 32;
  const auto none = measure_hop(engine, wider, {});
  ASSERT_TRUE(none.has_value()) << none.error().message;
  EXPECT_FALSE(none->has_value()) << "the second rank does not take what the first one makes";
}

TEST(Measure, AHopTakesItsBytesAndALatency) {
  const TransferCost copy{.latency = 2, .bandwidth = 100, .bytes = 500};
  EXPECT_EQ(with_hop(copy, 9, 500).latency, 4);
  EXPECT_EQ(with_hop(copy, 9, 200).latency, 7);
  EXPECT_EQ(with_hop(copy, 6, 500).latency, 2) << "a copy has as much by itself";
  EXPECT_EQ(with_hop({.latency = 2, .bandwidth = {}, .bytes = 500}, 9, 500).latency, 9);
}

TEST(Measure, WarmsUpBeforeWhatCounts) {
  CountingEngine cold;
  ASSERT_TRUE(measure_module(cold, small(ModuleKind::Linear), {}).has_value());
  CountingEngine warm;
  const auto cost = measure_module(warm, small(ModuleKind::Linear), {.warm_up = 0.02});
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->forward, 2) << "nothing but time is lost";
  EXPECT_GT(warm.replays, 2 * cold.replays);
}

TEST(Measure, TakesTheMeanOfReplaysWhereAClockFallsAndRises) {
  CountingEngine engine;
  engine.every_second = 1.5;
  const auto cost = measure_module(engine, small(ModuleKind::Linear), {.warm_up = 0.2});
  ASSERT_TRUE(cost.has_value());
  EXPECT_GT(*cost->forward, 2);
  EXPECT_LT(*cost->forward, 3);
  EXPECT_GT(*cost->weight, 1);
  EXPECT_LT(*cost->weight, 1.5);
}

TEST(Measure, RestFollowsFromTasksThatTakeLessBehindRests) {
  // So slow that what the host takes besides is next to nothing, and so are launches beside graphs:
  // one in an input half, two in a whole backward, and what autograd adds.
  constexpr double kUnit = 4000;
  constexpr double kBeside = 0.01;
  CountingEngine engine;
  engine.unit = std::chrono::duration<double, std::micro>(kUnit);
  engine.really = true;
  engine.after_rest = 0.9;
  engine.beside_graphs = kBeside;
  const auto cost =
      measure_module(engine, small(ModuleKind::Linear), {.microbatches = 4, .warm_up = 0.1});
  ASSERT_TRUE(cost.has_value());
  ASSERT_TRUE(cost->rest.has_value());
  ASSERT_GT(*cost->rest, 0);
  // Times are those of a device that never rests, and all grow alike.
  const double grown = *cost->forward / (2 * kUnit);
  EXPECT_GE(grown, 1);
  EXPECT_NEAR(*cost->backward, (2 + kBeside) * kUnit * grown, 1e-6);
  EXPECT_NEAR(*cost->weight, kUnit * grown, 1e-6);
  EXPECT_NEAR(*cost->whole, (3 + 2 * kBeside) * kUnit * grown, 1e-6);
  EXPECT_NEAR(*cost->autograd, kBeside * kUnit * grown, 1e-6);
  EXPECT_EQ(cost->fuse, 0);
  EXPECT_LE(grown, 1 / std::cbrt(0.9)) << "tasks run for nearly all of the time without rests";
  EXPECT_NEAR(grown * (1 - *cost->rest), 0.9, 1e-9) << "what tasks take behind rests";
}

TEST(Measure, RestIsRelativeToTimesAtADutyOfOne) {
  ModuleCost cost{.forward = 10,
                  .backward = 20,
                  .weight = 30,
                  .dispatch = 4,
                  .reduce = 8,
                  .whole = 40,
                  .fuse = 0.5,
                  .quantize_forward = 2};
  state_rest({.duty = 0.941192, .takes = 100}, {.duty = 0.4, .takes = 95}, cost);
  EXPECT_DOUBLE_EQ(*cost.forward, 10 / 0.98);
  EXPECT_DOUBLE_EQ(*cost.whole, 40 / 0.98);
  EXPECT_DOUBLE_EQ(*cost.quantize_forward, 2 / 0.98);
  EXPECT_EQ(cost.dispatch, 4);
  EXPECT_EQ(cost.reduce, 8);
  EXPECT_EQ(cost.fuse, 0.5);
  EXPECT_DOUBLE_EQ(*cost.forward * std::cbrt(0.941192), 10) << "as it was measured";
  EXPECT_DOUBLE_EQ(*cost.forward * (1 - *cost.rest), 9.5) << "and with rests";
}

TEST(Measure, WhatModulesComputeInIsAddedUp) {
  EXPECT_EQ(computed_in({}), 0);
  EXPECT_EQ(computed_in({{"a", {.forward = 1, .backward = 2, .weight = 4, .whole = 100}},
                         {"b", {.forward = 8, .dispatch = 100}}}),
            15);
}

TEST(Measure, APaceThatNoModelFileHoldsIsRefused) {
  EXPECT_EQ(*pace_of_process(1, 100, 104), 1.04);
  EXPECT_EQ(*pace_of_process(1, 100, 1000), 10);
  EXPECT_EQ(*pace_of_process(1, 100, 10), 0.1);
  EXPECT_EQ(*pace_of_process(1, 0, 0), 1);
  const auto slow = pace_of_process(1, 100, 1250);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().message,
            "the device of process 1 takes 12.5 times as long to compute as the first one, and the "
            "paces of a model file are from 0.1 to 10");
  EXPECT_FALSE(pace_of_process(1, 100, 9));
  EXPECT_FALSE(pace_of_process(1, 100, std::nan("")));
}

TEST(Measure, RestIsZeroWhereNothingIsToBeSeenOfIt) {
  const auto rest = [](const Pace& working, const Pace& resting) {
    ModuleCost cost{.forward = 10};
    state_rest(working, resting, cost);
    EXPECT_EQ(*cost.forward == 10, *cost.rest == 0);
    return *cost.rest;
  };
  EXPECT_EQ(rest({0.9, 100}, {0.45, 99.6}), 0) << "within noise";
  EXPECT_GT(rest({0.9, 100}, {0.45, 99.4}), 0);
  EXPECT_EQ(rest({0.9, 100}, {0.45, 110}), 0) << "it is slower";
  EXPECT_EQ(rest({0.9, 100}, {0.9, 90}), 0) << "it did not rest";
  EXPECT_EQ(rest({0.89, 100}, {0.45, 90}), 0) << "it waited for launches";
  EXPECT_GT(rest({0.91, 100}, {0.45, 90}), 0);
  EXPECT_EQ(rest({0.9, 100}, {0.45, 40}), 0) << "no clock makes it so much faster";
  EXPECT_EQ(rest({0.9, 0}, {0.45, 0}), 0) << "of a module without work";
}

}  // namespace
}  // namespace capo::run

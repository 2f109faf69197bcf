// An engine that remembers what was launched into each of its captures, and under which label, so
// that a node of a whole step can be said to be of one piece of work. It takes products with an
// epilogue apart, as engines may do or not, so that each launch is one node everywhere.

#pragma once

#include "run/engine/engine.h"
#include "tests/run/test_engine.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {

/// A launch that was captured.
struct CapturedLaunch {
  std::string label;
  Call call;
};

class LabelledEngine : public Engine {
 public:
  explicit LabelledEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  /// In the order of capture.
  [[nodiscard]] const std::vector<CapturedLaunch>& launches(GraphId graph) const {
    return launches_[graph];
  }

  [[nodiscard]] std::string_view name() const override { return engine_->name(); }
  [[nodiscard]] std::string device() const override { return engine_->device(); }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override {
    return engine_->allocate(bytes, what);
  }
  void release(std::byte* memory) override { engine_->release(memory); }
  void write(void* to, const void* from, std::int64_t bytes) override {
    engine_->write(to, from, bytes);
  }
  void read(void* to, const void* from, std::int64_t bytes) override {
    engine_->read(to, from, bytes);
  }
  void have_streams(std::uint32_t count) override { engine_->have_streams(count); }
  void launch(StreamId stream, const Call& call) override {
    if (const auto* product = std::get_if<GroupedProduct>(&call)) {
      for_each_part(*product, [&](const Call& part) { launch_one(stream, part); });
    } else {
      launch_one(stream, call);
    }
  }
  [[nodiscard]] EventId record(StreamId stream) override { return engine_->record(stream); }
  void wait(StreamId stream, EventId event) override { engine_->wait(stream, event); }
  void begin_capture(StreamId origin) override {
    open_.emplace();
    engine_->begin_capture(origin);
  }
  [[nodiscard]] GraphId end_capture() override {
    const GraphId graph = engine_->end_capture();
    if (launches_.size() <= graph) launches_.resize(graph + 1);
    launches_[graph] = *std::exchange(open_, std::nullopt);
    return graph;
  }
  void replay(GraphId graph, StreamId stream) override { engine_->replay(graph, stream); }
  [[nodiscard]] std::vector<GraphNode> inspect(GraphId graph) override {
    return engine_->inspect(graph);
  }
  void synchronise() override { engine_->synchronise(); }
  [[nodiscard]] double between(EventId from, EventId to) override {
    return engine_->between(from, to);
  }
  void forget_events() override { engine_->forget_events(); }
  void label(std::string_view what) override {
    label_ = what;
    engine_->label(what);
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return engine_->error(); }

 private:
  void launch_one(StreamId stream, const Call& call) {
    if (open_) open_->push_back({.label = label_, .call = call});
    engine_->launch(stream, call);
  }

  std::unique_ptr<Engine> engine_;
  std::string label_;
  std::optional<std::vector<CapturedLaunch>> open_;
  std::vector<std::vector<CapturedLaunch>> launches_;
};

/// Changes calls on their way to the engine of the tests, as a wrong kernel would.
class FaultyEngine final : public LabelledEngine {
 public:
  using Fault = std::function<void(Call&)>;
  explicit FaultyEngine(Fault fault) : LabelledEngine(test_engine()), fault_(std::move(fault)) {}

  void launch(StreamId stream, const Call& call) override {
    Call changed = call;
    fault_(changed);
    LabelledEngine::launch(stream, changed);
  }

 private:
  Fault fault_;
};

}  // namespace capo::run

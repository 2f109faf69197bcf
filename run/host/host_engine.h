// The engine that every machine has: graphs of plain C++ kernels at fixed addresses.
//
// A launch runs at once, so what is launched first runs first: the order of launches is the
// interleaving of the streams, and whoever drives the engine chooses it. A captured graph is a list
// of nodes with what each waits for, as stream order and events made it; a replay runs them in the
// order in which they were recorded, which is one linear extension of that.
//
// It behaves as CUDA where programs depend on it: a capture records and does not run, an event of a
// captured stream draws another stream in, a stream that was drawn in and not joined is an error, a
// wait for an event that nobody recorded is one, memory may not be allocated, read or written from
// outside while a capture is open. Tested by tests/run/host/host_engine_test.cpp.

#pragma once

#include "core/base/error.h"
#include "run/engine/engine.h"
#include "run/kernels/call.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run::host {

/// Runs a call as plain C++ loops, which is what the engine launches and replays.
///
/// It is deterministic: the same call on the same bytes writes the same bytes, in whatever order
/// calls that do not depend on each other run. The products work in tiles, which the compiler
/// vectorises, and still add in ascending order. Results are right if the compiler does not fuse
/// multiplications with additions (-ffp-contract=off on machines that could). Throws InternalError
/// for sizes that cannot be. Tested by kernels_test.cpp
/// and products_test.cpp.
void execute(const Call& call);

class HostEngine final : public Engine {
 public:
  /// Refuses to hold more than `limit` bytes at once.
  explicit HostEngine(std::int64_t limit = std::int64_t{1} << 40);
  ~HostEngine() override;

  [[nodiscard]] std::string_view name() const override { return "host"; }
  [[nodiscard]] std::string device() const override { return "this machine's processor"; }

  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override;
  void release(std::byte* memory) override;
  void write(void* to, const void* from, std::int64_t bytes) override;
  void read(void* to, const void* from, std::int64_t bytes) override;

  void have_streams(std::uint32_t count) override;
  void launch(StreamId stream, const Call& call) override;
  [[nodiscard]] EventId record(StreamId stream) override;
  void wait(StreamId stream, EventId event) override;

  void begin_capture(StreamId origin) override;
  [[nodiscard]] GraphId end_capture() override;
  void replay(GraphId graph, StreamId stream) override;
  [[nodiscard]] std::vector<GraphNode> inspect(GraphId graph) override;

  void synchronise() override {}
  [[nodiscard]] double between(EventId from, EventId to) override;
  void forget_events() override;

  void label(std::string_view what) override { label_ = what; }
  [[nodiscard]] const std::optional<Error>& error() const override { return error_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A stream during a capture: the next node on it waits for the nodes `after`.
  struct CapturedStream {
    bool drawn_in = false;
    std::vector<std::uint32_t> after;
  };
  struct Event {
    Clock::time_point when;
    std::optional<std::vector<std::uint32_t>> after;  ///< nodes before it, if it was captured
    std::uint32_t capture = 0;                        ///< counts captures: in which it was recorded
  };

  void fail(std::string what);
  [[nodiscard]] std::vector<bool> joined_nodes(StreamId origin) const;
  [[nodiscard]] bool knows(StreamId stream);

  std::int64_t limit_;
  std::int64_t allocated_ = 0;
  std::map<std::byte*, std::int64_t> memory_;
  std::uint32_t streams_ = 1;
  std::vector<Event> events_;
  std::vector<std::vector<GraphNode>> graphs_;
  std::optional<StreamId> origin_;  ///< nullopt unless a capture is open
  std::uint32_t captures_ = 0;      ///< begun so far
  std::vector<GraphNode> nodes_;    ///< recorded by the open capture
  std::vector<CapturedStream> captured_;
  std::string label_;
  std::optional<Error> error_;
};

}  // namespace capo::run::host

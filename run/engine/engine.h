// What an engine offers: memory at fixed addresses, streams and events, launches that either run or
// are recorded, and graphs that can be replayed and read back.
//
// The same few words as CUDA's, since they are what plans are about; the host engine gives them the
// same meaning without a device. An engine knows calls and addresses; it knows nothing of ranks,
// chunks, parameters or gradients.
//
// The first error is kept, and from there on nothing more is launched; whoever drives an engine
// asks for it at the end of each phase. `label` says what is being launched, so that an error can
// name its task.

#pragma once

#include "core/base/error.h"
#include "run/kernels/call.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

using StreamId = std::uint32_t;
using EventId = std::uint32_t;
using GraphId = std::uint32_t;

/// A node of a captured graph, read back.
struct GraphNode {
  Call call;
  std::vector<std::uint32_t> after;  ///< nodes that are over before it begins, ascending
};

/// Microseconds that calls about graphs took the processor so far, all graphs together.
struct GraphTimes {
  double instantiate = 0;
  double upload = 0;
  double launch = 0;  ///< of replays
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// "host", "cuda".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// "NVIDIA H200"; what it runs on, in words.
  [[nodiscard]] virtual std::string device() const = 0;

  /// Null if there is not so much. The engine owns it and gives it back in the end, or at
  /// release(). Aligned to kAlignment.
  [[nodiscard]] virtual std::byte* allocate(std::int64_t bytes, std::string_view what) = 0;
  virtual void release(std::byte* memory) = 0;
  /// To and from the engine's memory; all that was launched before is over.
  virtual void write(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void read(void* to, const void* from, std::int64_t bytes) = 0;

  /// Streams are numbered from 0.
  virtual void have_streams(std::uint32_t count) = 0;
  /// From here on products leave a part of the device to exchanges that run beside them; without
  /// it, a kernel that fills the device holds them up, and they it.
  virtual void leave_room_for_exchanges() {}
  /// Launches on a stream that is being captured are recorded and do not run.
  virtual void launch(StreamId stream, const Call& call) = 0;
  [[nodiscard]] virtual EventId record(StreamId stream) = 0;
  /// What is launched on the stream from here on begins when the event has happened. During a
  /// capture, an event of a captured stream draws this stream into it.
  virtual void wait(StreamId stream, EventId event) = 0;

  virtual void begin_capture(StreamId origin) = 0;
  /// All streams that were drawn in have to be joined.
  [[nodiscard]] virtual GraphId end_capture() = 0;
  virtual void replay(GraphId graph, StreamId stream) = 0;
  /// Its nodes, read back; none after an error, which reading may be.
  [[nodiscard]] virtual std::vector<GraphNode> inspect(GraphId graph) = 0;
  /// Zeros of an engine that has no such calls: a graph of the host is ready when it is captured,
  /// and its replay is the work itself.
  [[nodiscard]] virtual GraphTimes graph_times() const { return {}; }

  virtual void synchronise() = 0;
  /// Microseconds between two events that have happened.
  [[nodiscard]] virtual double between(EventId from, EventId to) = 0;
  /// Forgets events; those still awaited by nobody.
  virtual void forget_events() = 0;

  /// Of what is asked for from here on: a task, "B of chunk 1, microbatch 0 of rank 2", or a phase.
  virtual void label(std::string_view what) = 0;
  [[nodiscard]] virtual const std::optional<Error>& error() const = 0;
};

inline constexpr std::int64_t kAlignment = 256;

[[nodiscard]] constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace capo::run

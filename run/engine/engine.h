// An engine offers memory at fixed addresses, streams and events, launches that either run or are
// recorded, and graphs that can be replayed and read back.
//
// Its few words are those of CUDA, since plans are about them; the host engine gives them the same
// meaning without a device. An engine knows calls and addresses; it knows nothing of ranks,
// chunks, parameters or gradients.
//
// The first error is kept, and from there on nothing more is launched; the driver asks for it at
// the end of each phase. `label` says what is being launched, so that an error can name its task.
// Tested by host_engine_test.cpp, host_capture_test.cpp and engine_test.cpp.

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
  std::vector<std::uint32_t> after;  ///< the nodes that are over before it begins, ascending
};

/// Microseconds of processor time that calls about graphs took so far, all graphs together.
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
  /// The device in words: "NVIDIA H200".
  [[nodiscard]] virtual std::string device() const = 0;

  /// Memory aligned to kAlignment, or null if there is not enough. The engine owns it and frees it
  /// at release() or in its destructor.
  [[nodiscard]] virtual std::byte* allocate(std::int64_t bytes, std::string_view what) = 0;
  virtual void release(std::byte* memory) = 0;
  /// Copies to and from the engine's memory, after all that was launched before is over.
  virtual void write(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void read(void* to, const void* from, std::int64_t bytes) = 0;

  /// Streams are numbered from 0.
  virtual void have_streams(std::uint32_t count) = 0;
  /// From here on products leave a part of the device to exchanges and messages that run beside
  /// them: a kernel that fills the device would hold those up, and they would hold it up. A message
  /// that waits for its other end does so for as long as it waits.
  virtual void leave_room_for_exchanges() {}
  /// Launches on a stream that is being captured are recorded and do not run.
  virtual void launch(StreamId stream, const Call& call) = 0;
  [[nodiscard]] virtual EventId record(StreamId stream) = 0;
  /// Calls launched on the stream from here on begin when the event has happened. During a capture,
  /// an event of a captured stream draws this stream into it.
  virtual void wait(StreamId stream, EventId event) = 0;

  virtual void begin_capture(StreamId origin) = 0;
  /// All streams that were drawn in must have been joined.
  [[nodiscard]] virtual GraphId end_capture() = 0;
  virtual void replay(GraphId graph, StreamId stream) = 0;
  /// Reads the nodes of a graph back; there are none after an error, and reading may fail as well.
  [[nodiscard]] virtual std::vector<GraphNode> inspect(GraphId graph) = 0;
  /// The times are zero if an engine has no such calls: a graph of the host is ready when it is
  /// captured, and its replay is the work itself.
  [[nodiscard]] virtual GraphTimes graph_times() const { return {}; }

  virtual void synchronise() = 0;
  /// Microseconds between two events that have happened.
  [[nodiscard]] virtual double between(EventId from, EventId to) = 0;
  /// Forgets all events; no stream may still wait for one.
  virtual void forget_events() = 0;

  /// Names the calls from here on, by a task ("B of chunk 1, microbatch 0 of rank 2") or a phase.
  virtual void label(std::string_view what) = 0;
  [[nodiscard]] virtual const std::optional<Error>& error() const = 0;
};

inline constexpr std::int64_t kAlignment = 256;

[[nodiscard]] constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace capo::run

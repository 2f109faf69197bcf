// When each task of a step ran: predicted by the simulator, or measured in a run. Traces, grids
// and every later picture are drawn from this one type.
//
//   rank 0   compute   |F1.0 |F1.1 |            a lane is a stream of a rank, whose tasks run one
//            p2p             |send-F1.0|        after another
//
// The simulator itself computes on arrays by vertex (sim/task_times.h) and fills a Timeline only
// for who draws it. A label is made when it is drawn, since a step of ten million tasks has more
// text than times. Tested by tests/core/timeline/trace_test.cpp and grid_test.cpp.

#pragma once

#include "core/base/colour.h"
#include "core/order/schedule.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// A stream of a rank.
struct Lane {
  std::int32_t rank = 0;
  std::string name;  ///< "compute", "p2p"; empty if nothing is drawn on it
};

constexpr std::uint32_t kNoPosition = 0xffffffff;

/// A task. The tasks of a composite run as one: each has its times, and the first also its label.
struct TimedTask {
  double begin = 0;
  double end = 0;
  std::uint32_t lane = 0;  ///< an index of Timeline::lanes
  std::uint32_t id = 0;    ///< an argument of Timeline::label
  std::optional<std::int32_t> stage;
  std::int32_t microbatch = kNoMicrobatch;
  Kind kind = Kind::Forward;
  std::uint8_t member = 0;   ///< its place in its composite, from 0
  std::uint8_t members = 1;  ///< tasks of its composite, or of itself
  std::int32_t chunk = 0;    ///< 0 if it belongs to none
  /// The position in its rank's order of the entry that it is, or was made for; kNoPosition if that
  /// is not known.
  std::uint32_t entry = kNoPosition;
  /// Quantization takes so much of its time, wherever in it that stands; 0 if that is not known.
  double quantizing = 0;
};

/// A stretch of time in which a rank computes nothing.
struct Bubble {
  std::int32_t rank = 0;
  double begin = 0;
  double end = 0;
  std::string why;                   ///< "waits for B1.0 of rank 1"
  std::string_view cause;            ///< what bubbles are summed by: "warm-up", "communication"
  std::uint32_t next = kNoPosition;  ///< the task that ends it, and
  std::uint32_t on = kNoPosition;    ///< the computation that it waits for; kNoPosition: none
  double exposed = 0;                ///< the part of it that is waiting for bytes alone
};

/// The memory that a rank holds from a moment on, in the unit of the memory model.
struct HeldMemory {
  double time = 0;
  double held = 0;
};

/// A task, as a position in Timeline::tasks, that waits for one of another lane.
struct Waiting {
  std::uint32_t task = 0;
  std::uint32_t on = 0;

  friend auto operator<=>(const Waiting&, const Waiting&) = default;
};

struct Timeline {
  enum class Origin : std::uint8_t {
    Predicted,
    Measured,
    Listed,  ///< there are no times: the index of an entry in its rank's order stands for one
  };
  enum class Unit : std::uint8_t { Costs, Microseconds };

  Origin origin = Origin::Predicted;
  Unit unit = Unit::Costs;
  std::size_t ranks = 0;
  double makespan = 0;
  bool one_chunk = false;  ///< no rank holds more than one chunk, so labels can do without chunks
  std::vector<Lane> lanes;
  std::vector<TimedTask> tasks;
  std::vector<std::vector<HeldMemory>> memory;  ///< by rank; empty if it is not known
  std::vector<Bubble> bubbles;                  ///< by rank; empty if they are not known
  /// The critical path as positions in `tasks`, from the beginning on; empty if it is not known.
  std::vector<std::uint32_t> path;
  /// For each task the one that fixed when it began; kNoPosition if it waited for none. Empty if
  /// that is not known.
  std::vector<std::uint32_t> bound_by;
  std::vector<Waiting> waits;  ///< by task; empty if they are not known
  /// The label of a task: "F1.0", and "F1.1&B1.0" of a composite. It reads what the timeline was
  /// made from, which outlives the timeline.
  std::function<std::string(std::uint32_t id)> label;
};

/// The time that quantization takes of a task of `tasks`, with that of the members of its composite
/// that follow it there.
[[nodiscard]] double quantizing_together(const Timeline& timeline, std::size_t at);

/// Whether it takes any time of any task.
[[nodiscard]] bool tells_quantization(const Timeline& timeline);

/// The category of that time in traces.
inline constexpr std::string_view kQuantization = "quantization";

/// The timeline as a Chrome trace, which Perfetto and chrome://tracing open: a process is a rank, a
/// thread is a lane, and what a rank holds is a counter. Traces count in microseconds; a unit of
/// costs is shown as if it were one.
[[nodiscard]] std::string chrome_trace(const Timeline& timeline);

struct GridOptions {
  std::size_t width = 100;           ///< characters in a line, at most
  Colour colour = Colour::Off;       ///< On: kinds differ in colour as well
  std::optional<std::int32_t> rank;  ///< nullopt: all
};

/// The timeline as text: time goes to the right, a rank is a line, `.` is idle, and only
/// computations are shown.
///
///   rank 0 |F1.0F1.1....B1.0B1.1|
///   one character is 0.5
///
/// A task of one character shows its kind (f, b, w; a composite &), a longer one its label as far
/// as it fits. If no rank holds several chunks, labels leave the chunk out: F3 is the forward of
/// microbatch 3.
[[nodiscard]] std::string text_grid(const Timeline& timeline, const GridOptions& options = {});

}  // namespace capo

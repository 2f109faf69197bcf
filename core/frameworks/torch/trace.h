// A trace of torch.profiler, read for the actions of torch.distributed.pipelining.
//
//   {"traceEvents": [{"ph": "X", "cat": "gpu_user_annotation", "name": "PP:0F1", "ts": 5, "dur":
//   2}]}
//
// An action is what one of these names says:
//
//   PP:0F1, PP:3SEND_B2          record_function of the runtime of multi-stage schedules, whose
//   PP:(0F1;3B0)OVERLAP_F_B      _get_profiler_function_name() makes it of str(action)
//   Forward 1, Backward 1        record_function of ScheduleGPipe, one stage a rank
//   "args": {"str": "PP:0F1"}    of a kernel, by torch.cuda.graph_annotations.mark_kernels
//
// An action's time is that of its kernels, from the first one's begin to the last one's end, where
// the trace has any: those that are marked, as in a replayed graph, or else those that were
// launched, by any thread, while the processor was in the action (`user_annotation`; a launch and
// its kernel have one `correlation`). Kineto's own span of an action on the device
// (`gpu_user_annotation`) is taken where no launch is known: it leaves out what autograd's thread
// launches, and so nearly all of a backward. A trace without times of a device has the processor's.
// A file is a rank, which
// `distributedInfo` names; without that each process is one, in the order of their ids, or, of
// several files, each file in the order of the list.
//
// Ranks are put on one axis by the clocks of their files, `baseTimeNanoseconds` with the `ts` of
// events. Clocks of machines differ, and no trace says by how much. Where kernels show that they do
// (a forward that begins before the stage before it has ended), clocks are moved as little as puts
// that right; an error that lets nothing begin too early stays unseen. Tested by
// trace_test.cpp with texts in that form, tests/cli/measure_test.cpp and draw_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// An action that ran.
struct TracedAction {
  std::int32_t rank = 0;
  std::int32_t stage = 0;
  std::int32_t chunk = 0;  ///< from 1: the stages of a rank that the trace shows, ascending
  MicrobatchId microbatch = kNoMicrobatch;
  Kind kind = Kind::Forward;
  double begin = 0;  ///< microseconds, from the first action on
  double end = 0;
  std::uint8_t member = 0;   ///< its place in its composite, from 0
  std::uint8_t members = 1;  ///< actions of its composite, or of itself
};

struct TorchTrace {
  bool on_device = false;             ///< the times are those of kernels
  std::vector<TracedAction> actions;  ///< by rank, then by begin
  bool says_rank = false;             ///< and the rank is not that of its place in a list
  std::int64_t base = 0;              ///< the file's zero in nanoseconds since 1970; 0: not said
  double first = 0;                   ///< the begin of the first action by the file's clock
};

/// Traces of ranks on one axis of time.
struct JoinedTraces {
  TorchTrace trace;
  std::string clocks;  ///< how their clocks were made one, as a sentence; empty for one trace
};

/// Whether a text is a trace, be it torch's or another's; capo's own say so by their schema.
[[nodiscard]] bool is_torch_trace(std::string_view text);

/// Malformed if the trace names no action. `rank`: that of a file that says none; nullopt: each of
/// its processes is one.
[[nodiscard]] Read<TorchTrace> read_torch_trace(std::string_view text, const Limits& limits,
                                                std::optional<std::int32_t> rank = std::nullopt);

/// The last time that each rank did each of its actions: a trace holds several steps.
[[nodiscard]] TorchTrace last_step_of(const TorchTrace& trace);

/// Traces of one step, of different ranks.
[[nodiscard]] JoinedTraces join_traces(std::vector<TorchTrace> traces);

}  // namespace capo

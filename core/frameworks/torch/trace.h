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
// `distributedInfo` names; without that each process is one, in the order of their ids. Tested by
// trace_test.cpp with texts in that form, tests/cli/measure_test.cpp and draw_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
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
};

/// Whether a text is a trace, be it torch's or another's; capo's own say so by their schema.
[[nodiscard]] bool is_torch_trace(std::string_view text);

/// Malformed if the trace names no action.
[[nodiscard]] Read<TorchTrace> read_torch_trace(std::string_view text, const Limits& limits);

}  // namespace capo

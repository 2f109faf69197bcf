// The functions of CUDA's runtime about streams, events and captures.

#include "tests/gpu/soft/device.h"
#include "tests/gpu/soft/soft_cuda.h"

#include <algorithm>
#include <set>
#include <utility>

namespace capo::soft_cuda {

namespace {

void close(std::uint64_t capture) {
  device().streams.each([&](CUstream_st& stream) {
    if (stream.capture == capture) stream = {};
  });
  device().captures.erase(capture);
}

void add_missing(std::vector<CUgraphNode_st*>& to, const std::vector<CUgraphNode_st*>& from) {
  for (CUgraphNode_st* node : from) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

// Whether all that was captured is over before whatever the origin would do next.
bool is_joined(const Capture& capture) {
  std::set<const CUgraphNode_st*> joined(capture.origin->after.begin(),
                                         capture.origin->after.end());
  const auto& nodes = capture.graph->nodes;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (joined.contains(node->get())) {
      joined.insert((*node)->after.begin(), (*node)->after.end());
    }
  }
  return joined.size() == nodes.size();
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.valid = false;
  return note(error);
}

}  // namespace

void Device::go_on() {
  std::set<const CUstream_st*> wait;
  std::erase_if(later, [&](const Later& one) {
    const bool over = !wait.contains(one.stream) && one.over();
    if (!over) wait.insert(one.stream);
    return over;
  });
}

extern "C" {

void capo_soft_later(cudaStream_t stream, bool (*over)(void*), void* what) {
  stream->behind = ++device().later_begun;
  device().later.push_back(
      {.stream = stream, .number = stream->behind, .over = [=] { return over(what); }});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  CAPO_ENTER(enter(__func__));
  *stream = device().streams.make();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CAPO_ENTER(enter(__func__));
  if (!device().streams.contains(stream)) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture != 0) close(stream->capture);
  return note(device().streams.drop(stream));
}

// --- events --------------------------------------------------------------------------------------

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  CAPO_ENTER(enter(__func__));
  *event = device().events.make();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CAPO_ENTER(enter(__func__));
  return note(device().events.drop(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CAPO_ENTER(enter(__func__));
  if (!device().events.contains(event) || !device().streams.contains(stream)) {
    return note(cudaErrorInvalidResourceHandle);
  }
  const Capture* capture = device().capture_of(*stream);
  if (capture != nullptr && !capture->valid) return note(cudaErrorStreamCaptureInvalidated);
  *event = {.recorded = true,
            .when = std::chrono::steady_clock::now(),
            .capture = stream->capture,
            .after = stream->after,
            .behind = stream->behind};
  return cudaSuccess;
}

// Launches run at once, so what was recorded has happened, unless it is behind work that goes on
// later.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!event->recorded) return cudaErrorNotReady;
  if (event->behind == 0) return cudaSuccess;
  device().go_on();
  const auto& later = device().later;
  const bool waits = std::any_of(later.begin(), later.end(),
                                 [&](const Later& one) { return one.number == event->behind; });
  return waits ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  CAPO_ENTER(enter(__func__));
  if (!from->recorded || !to->recorded) return note(cudaErrorInvalidResourceHandle);
  if (from->capture != 0 || to->capture != 0) return note(cudaErrorCapturedEvent);
  const std::chrono::duration<float, std::milli> time = to->when - from->when;
  *milliseconds = time.count();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  CAPO_ENTER(enter(__func__));
  if (!device().events.contains(event) || !device().streams.contains(stream)) {
    return note(cudaErrorInvalidResourceHandle);
  }
  if (!event->recorded) return cudaSuccess;
  Capture* own = device().capture_of(*stream);
  if (event->capture == 0) {
    if (own == nullptr) return cudaSuccess;  // launches run at once: it has happened
    return invalidate(*own, cudaErrorStreamCaptureIsolation);
  }
  const auto found = device().captures.find(event->capture);
  if (found == device().captures.end()) return note(cudaErrorCapturedEvent);
  Capture& capture = found->second;
  if (!capture.valid) return note(cudaErrorStreamCaptureInvalidated);
  if (own != nullptr && own != &capture) return invalidate(capture, cudaErrorStreamCaptureMerge);
  stream->capture = event->capture;
  add_missing(stream->after, event->after);
  return cudaSuccess;
}

// --- captures ------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CAPO_ENTER(enter(__func__));
  if (!device().streams.contains(stream)) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture != 0) return note(cudaErrorIllegalState);
  stream->capture = ++device().captures_begun;
  device().captures.emplace(stream->capture,
                            Capture{.graph = std::make_unique<CUgraph_st>(), .origin = stream});
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  CAPO_ENTER(enter(__func__));
  *status = stream->capture == 0 ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const cudaError_t told = enter(__func__);
  if (!device().streams.contains(stream)) return note(cudaErrorInvalidResourceHandle);
  Capture* capture = device().capture_of(*stream);
  if (capture == nullptr) return told == cudaSuccess ? note(cudaErrorIllegalState) : told;
  if (capture->origin != stream) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  const bool valid = capture->valid;
  const bool joined = is_joined(*capture);
  auto captured = std::move(capture->graph);
  close(stream->capture);
  if (told != cudaSuccess) return told;
  if (!valid) return note(cudaErrorStreamCaptureInvalidated);
  if (!joined) return note(cudaErrorStreamCaptureUnjoined);
  *graph = device().graphs.make(std::move(captured));
  return cudaSuccess;
}

}  // extern "C"

}  // namespace capo::soft_cuda

// The functions of CUDA's runtime about kernels and graphs.
//
// A kernel is known by the address of its host function, from which gpu/kernels tells the call that
// it was launched with; of a kernel that is none of capo's there is nothing to run.

#include "gpu/kernels/kernels.h"
#include "tests/gpu/soft/device.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace capo::soft_cuda {

namespace {

bool can_be_launched(dim3 blocks, dim3 threads, std::size_t shared_bytes) {
  constexpr unsigned kMostThreads = 1024;
  return blocks.x > 0 && blocks.y > 0 && blocks.z > 0 && threads.x > 0 &&
         threads.x * threads.y * threads.z <= kMostThreads && shared_bytes <= kSharedBytes;
}

// The one behind all that the stream has captured.
void add_node(Capture& capture, CUstream_st& stream, std::unique_ptr<CUgraphNode_st> node) {
  node->parameters[0] = std::visit([](auto& one) -> void* { return &one; }, node->call);
  node->after = std::exchange(stream.after, {node.get()});
  capture.graph->nodes.push_back(std::move(node));
}

// As CUDA does: without a place it tells how many there are.
template <typename Nodes>
cudaError_t hand_out(const Nodes& nodes, cudaGraphNode_t* to, std::size_t* count) {
  if (to == nullptr) {
    *count = nodes.size();
    return cudaSuccess;
  }
  *count = std::min(*count, nodes.size());
  for (std::size_t i = 0; i < *count; ++i) to[i] = &*nodes[i];
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  CAPO_ENTER(enter(__func__));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** parameters,
                             std::size_t shared_bytes, cudaStream_t stream) {
  CAPO_ENTER(enter(__func__));
  if (!device().streams.contains(stream)) return note(cudaErrorInvalidResourceHandle);
  if (!can_be_launched(blocks, threads, shared_bytes)) return note(cudaErrorInvalidConfiguration);
  const auto call = gpu::call_of(function, parameters);
  if (!call) return note(cudaErrorInvalidDeviceFunction);
  Capture* capture = device().capture_of(*stream);
  if (capture == nullptr) {
    device().execute(*call);
    return cudaSuccess;
  }
  if (!capture->valid) return note(cudaErrorStreamCaptureInvalidated);
  add_node(*capture, *stream,
           std::make_unique<CUgraphNode_st>(CUgraphNode_st{.function = const_cast<void*>(function),
                                                           .blocks = blocks,
                                                           .threads = threads,
                                                           .shared_bytes = shared_bytes,
                                                           .call = *call}));
  return cudaSuccess;
}

// --- graphs --------------------------------------------------------------------------------------

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CAPO_ENTER(enter(__func__));
  return note(device().graphs.drop(graph));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  CAPO_ENTER(enter(__func__));
  if (!device().graphs.contains(graph)) return note(cudaErrorInvalidValue);
  return hand_out(graph->nodes, nodes, count);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* before,
                                         cudaGraphEdgeData*, std::size_t* count) {
#else
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* before,
                                         std::size_t* count) {
#endif
  CAPO_ENTER(enter(__func__));
  return hand_out(node->after, before, count);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  CAPO_ENTER(enter(__func__));
  *params = {.func = node->function,
             .gridDim = node->blocks,
             .blockDim = node->threads,
             .sharedMemBytes = static_cast<unsigned>(node->shared_bytes),
             .kernelParams = node->parameters,
             .extra = nullptr};
  return cudaSuccess;
}

// --- graphs that can be launched -----------------------------------------------------------------

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  CAPO_ENTER(enter(__func__));
  if (!device().graphs.contains(graph)) return note(cudaErrorInvalidValue);
  auto made = std::make_unique<CUgraphExec_st>();
  for (const auto& node : graph->nodes) made->calls.push_back(node->call);
  *exec = device().execs.make(std::move(made));
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  CAPO_ENTER(enter(__func__));
  return note(device().execs.drop(exec));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  CAPO_ENTER(enter(__func__));
  return note(device().execs.contains(exec) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  CAPO_ENTER(enter(__func__));
  if (!device().execs.contains(exec)) return note(cudaErrorInvalidValue);
  if (stream->capture != 0) return note(cudaErrorNotSupported);  // a graph within a graph
  for (const run::Call& call : exec->calls) device().execute(call);
  return cudaSuccess;
}

}  // extern "C"

}  // namespace capo::soft_cuda

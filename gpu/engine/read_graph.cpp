#include "gpu/engine/cuda_engine.h"

#include "gpu/kernels/kernels.h"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace capo::gpu {

namespace {

#if CUDART_VERSION >= 13000
// The call as CUDA 12 has it: without the data of edges, which CUDA 13 adds.
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* before,
                                         std::size_t* count) {
  return ::cudaGraphNodeGetDependencies(node, before, nullptr, count);
}
#endif

Result<std::vector<cudaGraphNode_t>> nodes_of(cudaGraph_t graph, const std::string& tried) {
  std::size_t count = 0;
  CAPO_CUDA_TRY(tried, cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) CAPO_CUDA_TRY(tried, cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

Result<std::vector<cudaGraphNode_t>> nodes_before(cudaGraphNode_t node, const std::string& tried) {
  std::size_t count = 0;
  CAPO_CUDA_TRY(tried, cudaGraphNodeGetDependencies(node, nullptr, &count));
  std::vector<cudaGraphNode_t> before(count);
  if (count > 0) {
    CAPO_CUDA_TRY(tried, cudaGraphNodeGetDependencies(node, before.data(), &count));
  }
  return before;
}

Result<run::Call> call_in(cudaGraphNode_t node, const std::string& tried) {
  cudaKernelNodeParams params{};
  CAPO_CUDA_TRY(tried, cudaGraphKernelNodeGetParams(node, &params));
  if (auto call = call_of(params.func, params.kernelParams)) return *call;
  return Error{.kind = ErrorKind::Environment,
               .message = "cannot " + tried + ": it holds a kernel that is none of capo's",
               .help = ""};
}

}  // namespace

Result<std::vector<run::GraphNode>> read_graph(CUgraph_st* graph, const std::string& name) {
  const std::string tried = "read " + name + " back";
  const auto nodes = nodes_of(graph, tried);
  if (!nodes) return nodes.error();
  std::map<cudaGraphNode_t, std::uint32_t> number;
  for (const cudaGraphNode_t node : *nodes) {
    number.emplace(node, static_cast<std::uint32_t>(number.size()));
  }
  std::vector<run::GraphNode> read;
  for (const cudaGraphNode_t node : *nodes) {
    const auto call = call_in(node, tried);
    if (!call) return call.error();
    const auto before = nodes_before(node, tried);
    if (!before) return before.error();
    run::GraphNode& found = read.emplace_back(run::GraphNode{.call = *call, .after = {}});
    for (const cudaGraphNode_t other : *before) found.after.push_back(number.at(other));
    std::sort(found.after.begin(), found.after.end());
  }
  return read;
}

}  // namespace capo::gpu

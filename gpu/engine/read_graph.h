// A captured graph as CUDA holds it: its nodes, the calls that their kernels take, and its edges.
//
// The engine remembers nothing of the capture, since CUDA will replay what CUDA says. A node that
// is no kernel of capo's is an error, as is every call of CUDA that fails. Tested by
// engine_test.cpp and soft_cuda_test.cpp.

#pragma once

#include "core/base/result.h"
#include "run/engine/engine.h"

#include <string>
#include <vector>

struct CUgraph_st;

namespace capo::gpu {

/// `name` is what an error calls it: "graph 3 (W of chunk 1, microbatch 2 of rank 0)".
[[nodiscard]] Result<std::vector<run::GraphNode>> read_graph(CUgraph_st* graph,
                                                             const std::string& name);

}  // namespace capo::gpu

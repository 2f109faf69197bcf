// A CUDA runtime in software, for tests: what capo::gpu calls of CUDA, done by this machine's
// processor, and told which call is to fail.
//
//   soft_cuda::begin({{.function = "cudaMalloc", .call = 3, .error = cudaErrorMemoryAllocation}});
//   auto engine = gpu::CudaEngine::make();          // the real engine, the real kernels' wrappers
//   ... run(...)                                    // its third cudaMalloc is refused
//   EXPECT_EQ(soft_cuda::live().captures, 0u);
//
// Memory is the process's own. Launches run at once, by the host's kernels, so that what a step
// computes is right; launches on a stream that is being captured become nodes of a graph. Captures
// keep CUDA's rules: streams drawn in by events, unjoined work, calls that invalidate. It is one
// device of capability 9.0 and knows one thread. What capo::gpu does not call is not here: the
// linker names it.
//
// An error that CUDA calls sticky (a device assertion and its like) comes back from every call from
// then on. A fault of the function "kernel" happens on the device: the kernel and all behind it do
// nothing, and the next call that waits for the device is the first to say so. "any" counts every
// call that can fail. A call that is told to fail does nothing else, but the end of a capture ends
// it, and an error of a capture invalidates those that are open.
//
// NCCL in software (fake_nccl.cpp) may put work on a stream that goes on later, by
// capo_soft_later(); an event that is recorded behind it is over when the work is.
//
// A program takes its faults from the environment, CAPO_SOFT_CUDA, separated by commas:
//
//   CAPO_SOFT_CUDA=cudaMalloc:3:cudaErrorMemoryAllocation capo_on_soft_cuda run ...
//
// Tested by soft_cuda_test.cpp.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The work is over when `over(what)` first returns true; it is asked again and again.
extern "C" void capo_soft_later(cudaStream_t stream, bool (*over)(void*), void* what);

namespace capo::soft_cuda {

struct Fault {
  std::string function = "any";  ///< "cudaMalloc", "any" or "kernel"
  std::uint64_t call = 1;        ///< the first is 1
  cudaError_t error = cudaErrorUnknown;
};

/// A device as after a start of the process, with these faults to come. Handles and memory from
/// before are gone.
void begin(std::vector<Fault> faults = {});

/// "cudaMalloc:3:cudaErrorMemoryAllocation,kernel:1:cudaErrorAssert"; throws std::invalid_argument.
[[nodiscard]] std::vector<Fault> parse_faults(std::string_view text);

/// Calls since begin() that can be told to fail, by function.
[[nodiscard]] std::map<std::string, std::uint64_t> calls();

/// The function whose call was the first to fail as it was told to; empty: none yet. Of a fault on
/// the device it is the call that said so.
[[nodiscard]] std::string first_failed();

/// What was made and not given back.
struct Live {
  std::size_t memory = 0;  ///< allocations
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t graphs = 0;
  std::size_t execs = 0;
  std::size_t captures = 0;  ///< open ones

  friend bool operator==(const Live&, const Live&) = default;
};
[[nodiscard]] Live live();

}  // namespace capo::soft_cuda

// The device in software: what its handles are, and all that there is of it.
//
// CUDA declares its handles as pointers to structs that it never shows; these are they.

#pragma once

#include "run/kernels/call.h"
#include "tests/gpu/soft/faults.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <vector>

/// A kernel of a graph.
struct CUgraphNode_st {
  void* function;
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  capo::run::Call call;
  void* parameters[1];  ///< to the call
  std::vector<CUgraphNode_st*> after;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  ///< each behind those that it waits for
};

struct CUgraphExec_st {
  std::vector<capo::run::Call> calls;
};

struct CUstream_st {
  std::uint64_t capture = 0;           ///< the one that it is part of; 0: what is launched runs
  std::vector<CUgraphNode_st*> after;  ///< that a captured launch waits for
  std::uint64_t behind = 0;            ///< the last work on it that goes on later; 0: none
};

struct CUevent_st {
  bool recorded = false;
  std::chrono::steady_clock::time_point when;
  std::uint64_t capture = 0;           ///< that its stream was part of; 0: none
  std::vector<CUgraphNode_st*> after;  ///< to look at only while that capture is open
  std::uint64_t behind = 0;            ///< the work that it waits for; 0: none
};

namespace capo::soft_cuda {

/// Those that were made and not given back.
template <typename T>
class Handles {
 public:
  T* make(std::unique_ptr<T> one = std::make_unique<T>()) {
    T* handle = one.get();
    all_.emplace(handle, std::move(one));
    return handle;
  }
  [[nodiscard]] bool contains(T* handle) const { return all_.contains(handle); }
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  cudaError_t drop(T* handle) {
    return all_.erase(handle) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
  }
  template <typename F>
  void each(F visit) const {
    for (const auto& [handle, one] : all_) visit(*handle);
  }

 private:
  std::map<T*, std::unique_ptr<T>> all_;
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// Null if there is not so much.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  [[nodiscard]] bool release(std::byte* memory);
  [[nodiscard]] bool holds(const void* begin, std::size_t bytes) const;
  [[nodiscard]] std::size_t count() const { return allocated_.size(); }

 private:
  std::map<const std::byte*, std::size_t> allocated_;
  std::size_t bytes_ = 0;
};

/// An open one.
struct Capture {
  std::unique_ptr<CUgraph_st> graph;
  CUstream_st* origin = nullptr;
  bool valid = true;
};

/// Work of another library, which goes on whenever the device is asked how far it is.
struct Later {
  CUstream_st* stream = nullptr;
  std::uint64_t number = 0;
  std::function<bool()> over;
};

struct Device {
  explicit Device(std::vector<Fault> to_come) : faults(std::move(to_come)) {}

  Faults faults;
  Memory memory;
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> execs;
  std::map<std::uint64_t, Capture> captures;  ///< those that are open
  std::uint64_t captures_begun = 0;
  std::deque<Later> later;
  std::uint64_t later_begun = 0;

  /// The first work of each stream goes on.
  void go_on();
  /// Runs a call on the device, unless something has gone wrong there.
  void execute(const run::Call& call);
  /// Null if it is part of none.
  [[nodiscard]] Capture* capture_of(const CUstream_st& stream);
  void invalidate_captures();
};

/// The one of this process: functions of C have nothing else to find it by.
[[nodiscard]] Device& device();

/// What every function that can be told to fail begins with: counts the call, and if it is to fail
/// returns its error.
[[nodiscard]] cudaError_t enter(const char* function);
/// The same of a function that waits for the device, which a capture does not permit.
[[nodiscard]] cudaError_t enter_and_wait(const char* function);
/// Of a function that asks nothing of the device and that a capture does not permit.
[[nodiscard]] cudaError_t enter_outside_captures(const char* function);
/// Of an error that the call itself makes.
cudaError_t note(cudaError_t error);

inline constexpr std::size_t kBytes = std::size_t{64} << 30;
inline constexpr int kMultiprocessors = 4;
inline constexpr int kSharedBytes = 227 * 1024;  ///< of a block
inline constexpr int kCapabilityMajor = 9;       ///< of 9.0

}  // namespace capo::soft_cuda

/// `CAPO_ENTER(enter(__func__));`: leaves the function with the error, if there is one.
#define CAPO_ENTER(...)                                                                         \
  if (const cudaError_t capo_error = ::capo::soft_cuda::__VA_ARGS__; capo_error != cudaSuccess) \
  return capo_error

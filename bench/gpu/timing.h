// Benchmarks of kernels on the device share these: memory, layers of mixture-of-experts models and
// sizes of their groups, and a stream whose captured work is timed with nothing in the cache.
//
// The layers are Mixtral's, DeepSeek-V3's and Qwen3's, by their experts on one rank. Only
// benchmarks include it.

#pragma once

#include <cuda_runtime_api.h>
#include "core/base/median.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo::bench {

using Sizes = std::vector<std::int64_t>;

inline void require(bool is_right, const std::string& what) {
  if (is_right) return;
  std::fprintf(stderr, "cannot %s\n", what.c_str());
  std::exit(1);
}
inline void require(cudaError_t code, const char* what) {
  require(code == cudaSuccess, std::string(what) + ": " + cudaGetErrorString(code));
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    require(cudaMalloc(&memory, bytes), "allocate");
    memory_.reset(memory);
  }
  [[nodiscard]] std::byte* at(std::int64_t byte = 0) const {
    return static_cast<std::byte*>(memory_.get()) + byte;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { static_cast<void>(cudaFree(memory)); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_;
};

// Near normal, of a length that is a multiple of no dimension.
inline std::vector<std::byte> random_bytes(std::size_t element_bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(((std::size_t{1} << 22) + 8 * 1009) * element_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += element_bytes) {
    double value = -2;
    for (int i = 0; i < 4; ++i) value += static_cast<double>(random()) / 4294967296.0;
    const auto number = static_cast<float>(value * 1.7);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    if (element_bytes == 2) bits >>= 16;
    std::memcpy(bytes.data() + at, &bits, element_bytes);
  }
  return bytes;
}

struct Layer {
  const char* name;
  std::int64_t groups;
  std::int64_t out;
  std::int64_t in;
};
inline constexpr std::array kLayers{
    Layer{.name = "Mixtral fc1", .groups = 8, .out = 28672, .in = 4096},
    Layer{.name = "Mixtral fc2", .groups = 8, .out = 4096, .in = 14336},
    Layer{.name = "DSv3 fc1", .groups = 32, .out = 4096, .in = 7168},
    Layer{.name = "DSv3 fc2", .groups = 32, .out = 7168, .in = 2048},
    Layer{.name = "DSv3 fc1", .groups = 8, .out = 4096, .in = 7168},
    Layer{.name = "DSv3 fc2", .groups = 8, .out = 7168, .in = 2048},
    Layer{.name = "Qwen3 fc1", .groups = 16, .out = 1536, .in = 2048},
    Layer{.name = "Qwen3 fc2", .groups = 16, .out = 2048, .in = 768},
};

inline bool is_gated(const Layer& layer) {
  return std::strstr(layer.name, "fc1") != nullptr;
}

inline Sizes balanced(std::int64_t rows, std::int64_t groups) {
  return Sizes(static_cast<std::size_t>(groups), rows / groups);
}

inline Sizes skewed(std::int64_t rows, std::int64_t groups) {
  const std::int64_t used = groups - groups / 8;
  std::vector<double> weights;
  for (std::int64_t i = 1; i <= used; ++i) weights.push_back(1 / static_cast<double>(i));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  Sizes sizes(static_cast<std::size_t>(groups), 0);
  std::int64_t left = rows;
  for (std::size_t i = 1; i < weights.size(); ++i) {
    sizes[i] = static_cast<std::int64_t>(static_cast<double>(rows) * weights[i] / all);
    left -= sizes[i];
  }
  sizes[0] = left;
  std::mt19937 random(7);
  for (std::size_t i = sizes.size() - 1; i > 0; --i) std::swap(sizes[i], sizes[random() % (i + 1)]);
  return sizes;
}

class Stream {
 public:
  Stream() {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
    require(cudaEventCreate(&before_), "create an event");
    require(cudaEventCreate(&after_), "create an event");
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

  /// Copies between host and device or on the device, after all that the stream was given before,
  /// and waits for it. cudaMemcpy would return before it is done, on a stream that this one does
  /// not wait for.
  void copy(void* to, const void* from, std::size_t bytes, const char* what) const {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), what);
    require(cudaStreamSynchronize(stream_), what);
  }
  /// Writes the bytes again and again, as far as the buffer goes.
  void fill(const Buffer& buffer, const std::vector<std::byte>& bytes) const {
    const std::size_t once = std::min(bytes.size(), buffer.bytes());
    copy(buffer.at(), bytes.data(), once, "fill");
    for (std::size_t done = once; done < buffer.bytes(); done += once) {
      copy(buffer.at(static_cast<std::int64_t>(done)), buffer.at(),
           std::min(once, buffer.bytes() - done), "fill");
    }
  }
  [[nodiscard]] cudaGraphExec_t captured(const std::function<void()>& work) const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    work();
    require(cudaStreamEndCapture(stream_, &graph), "capture");
    require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    require(cudaGraphDestroy(graph), "destroy a graph");
    return exec;
  }
  /// Milliseconds, with nothing in the cache.
  [[nodiscard]] double time(cudaGraphExec_t exec) const {
    require(cudaMemsetAsync(flushed_.at(), 1, kFlushed, stream_), "flush");
    require(cudaEventRecord(before_, stream_), "record");
    require(cudaGraphLaunch(exec, stream_), "replay");
    require(cudaEventRecord(after_, stream_), "record");
    require(cudaEventSynchronize(after_), "replay");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, before_, after_), "read a time");
    return double{milliseconds};
  }

 private:
  static constexpr std::size_t kFlushed = std::size_t{256} << 20;

  Buffer flushed_{kFlushed};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t before_ = nullptr;
  cudaEvent_t after_ = nullptr;
};

using Works = std::vector<std::function<void()>>;

/// Medians in milliseconds, of graphs that take turns; the first round does not count.
inline std::vector<double> medians_of(const Stream& stream, int rounds, const Works& works) {
  std::vector<cudaGraphExec_t> graphs;
  for (const auto& work : works) graphs.push_back(stream.captured(work));
  std::vector<std::vector<double>> times(works.size());
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const double time = stream.time(graphs[i]);
      if (round > 0) times[i].push_back(time);
    }
  }
  for (const cudaGraphExec_t graph : graphs) {
    require(cudaGraphExecDestroy(graph), "destroy a graph");
  }
  std::vector<double> medians;
  for (std::vector<double>& of_one : times) medians.push_back(median(std::move(of_one)));
  return medians;
}

inline double used_rows(const Sizes& sizes) {
  return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
}

inline Sizes sizes_of(const char* spread, std::int64_t rows, const Layer& layer) {
  return std::strcmp(spread, "bal") == 0 ? balanced(rows, layer.groups)
                                         : skewed(rows, layer.groups);
}

}  // namespace capo::bench

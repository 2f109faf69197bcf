// The same bytes on the host and on the device, and one call executed on both: what tests of
// kernels compare with is what the host's kernels wrote, which tests/run/host/ hold to account.
//
//   Twins twins;
//   const Slot x = twins.add(at_random(type, 12, 1));
//   twins.expect_same([&](const Memory& m) { return run::Copy{.bytes = 24, .from = m.at(x) ...}; },
//                     {all_of(y)});
//
// expect_same captures the call and replays it twice, reads it back from the graph and launches
// what it read, and launches the call itself: each from the same bytes, and each has to write the
// same. What was named as written is then as near to the host's as its type is, and every other
// byte, of poison, of rows behind those in use and between tensors, is as the host left it.

#pragma once

#include "gpu/kernels/kernels.h"
#include "gpu/runtime/device.h"
#include "run/host/host_engine.h"
#include "tests/run/host/tensors.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace capo::gpu {

using run::Write;
using run::host::at_random;
using run::host::distance;
using run::host::kTypes;
using run::host::Tensor;
using run::host::tolerance;
using run::host::Values;
using Sizes = std::vector<std::int64_t>;
using Bytes = std::vector<std::byte>;

[[nodiscard]] inline std::int64_t sum_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// Ends the test that asked for what failed.
inline void require(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}
inline void require(const CudaStatus& status) {
  if (!status.ok()) throw std::runtime_error(to_error("launch", status).message);
}

/// For tests that need a device.
class Kernels : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = list_devices();
    if (!devices) GTEST_SKIP() << "no CUDA device here: " << devices.error().message;
    if (devices->front().capability < ComputeCapability{.major = 8, .minor = 0}) {
      GTEST_SKIP() << "the kernels need a device of sm_80 or newer";
    }
  }
};

struct Free {
  void operator()(void* memory) const { static_cast<void>(cudaFree(memory)); }
};
struct DestroyStream {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
};
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
};
struct DestroyExec {
  void operator()(cudaGraphExec_t exec) const { static_cast<void>(cudaGraphExecDestroy(exec)); }
};
template <typename Handle, typename Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

/// Where a tensor lies in the memory of either side.
struct Slot {
  std::size_t offset = 0;
  DataType type = DataType::Fp32;
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t element_bytes() const { return type == DataType::Fp32 ? 4 : 2; }
};

/// Some elements of a tensor that a call writes.
struct Part {
  Slot slot;
  std::int64_t first = 0;
  std::int64_t count = 0;
  /// Units that multiply codes add in fewer digits than fp32 has: their sums are coarse.
  enum class Value : std::uint8_t { Near, Coarse, Any } value = Value::Near;
};
[[nodiscard]] inline Part first_of(const Slot& slot, std::int64_t count) {
  return {.slot = slot, .count = count};
}
[[nodiscard]] inline Part all_of(const Slot& slot) {
  return first_of(slot, slot.count);
}

/// The memory of one side.
class Memory {
 public:
  explicit Memory(std::byte* base) : base_(base) {}
  [[nodiscard]] void* at(const Slot& slot) const { return base_ + slot.offset; }
  template <typename T>
  [[nodiscard]] T* as(const Slot& slot) const {
    return reinterpret_cast<T*>(base_ + slot.offset);
  }

 private:
  std::byte* base_;
};

using MakeCall = std::function<run::Call(const Memory&)>;

struct Capture {
  Owned<cudaGraph_t, DestroyGraph> graph;
  Owned<cudaGraphExec_t, DestroyExec> exec;
};

class Twins {
 public:
  Twins() {
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
  }

  /// So many bytes past a multiple of 256. Only before the first call.
  Slot add(const Tensor& tensor, std::size_t past = 0) {
    return {.offset = place(tensor.bytes().data(), tensor.bytes().size(), past),
            .type = tensor.type(),
            .count = tensor.count()};
  }
  template <typename T>
  Slot add_numbers(const std::vector<T>& numbers) {
    return {.offset = place(numbers.data(), numbers.size() * sizeof(T), 0)};
  }
  /// A pointer to each, into the side's own memory.
  Slot add_table(const std::vector<Slot>& slots) {
    const Slot table = add_numbers(std::vector<void*>(slots.size()));
    tables_.emplace_back(table, slots);
    return table;
  }
  /// Other numbers from the next call on.
  template <typename T>
  void change(const Slot& slot, const std::vector<T>& numbers) {
    std::memcpy(image_.data() + slot.offset, numbers.data(), numbers.size() * sizeof(T));
  }

  void expect_same(const MakeCall& make, const std::vector<Part>& written) {
    const Capture capture = captured(make);
    expect_same_replayed(capture, make, written);
    const Bytes replayed = replay(capture);
    const std::optional<run::Call> call = read_back(capture);
    ASSERT_TRUE(call) << "the graph's node is no kernel of ours";
    EXPECT_EQ(call->index(), make(device()).index());
    EXPECT_EQ(replay(captured([&](const Memory&) { return *call; })), replayed)
        << "what was read back is another call";
    EXPECT_EQ(launched(make), replayed) << "a launch and a replay differ";
  }

  /// A product with an epilogue: it may be more than one node, and leaves what its parts leave,
  /// but for a tensor that nobody reads afterwards.
  void expect_same_in_parts(const MakeCall& make, const std::vector<Part>& written,
                            const Slot& unread = {}) {
    const Capture capture = captured(make);
    expect_same_replayed(capture, make, written);
    const Bytes replayed = replay(capture);
    EXPECT_EQ(launched(make), replayed) << "a launch and a replay differ";
    Bytes in_parts = after([&] {
      run::for_each_part(std::get<run::GroupedProduct>(make(device())),
                         [&](const auto& part) { require(launch(part, stream_.get())); });
    });
    std::memcpy(in_parts.data() + unread.offset, replayed.data() + unread.offset,
                static_cast<std::size_t>(unread.count * unread.element_bytes()));
    std::size_t at = 0;
    while (at < replayed.size() && replayed[at] == in_parts[at]) ++at;
    EXPECT_EQ(at, replayed.size()) << "the first byte that differs from what its parts leave";
  }

  /// A call leaves what others leave, one behind the other, but for a tensor that only they write.
  void expect_same_as_parts(const MakeCall& make,
                            const std::function<std::vector<run::Call>(const Memory&)>& parts,
                            const Slot& theirs) {
    const Bytes got = launched(make);
    Bytes expected = after([&] {
      for (const run::Call& part : parts(device())) require(launch(part, stream_.get()));
    });
    std::memcpy(expected.data() + theirs.offset, image_.data() + theirs.offset,
                static_cast<std::size_t>(theirs.count * theirs.element_bytes()));
    std::size_t at = 0;
    while (at < got.size() && got[at] == expected[at]) ++at;
    EXPECT_EQ(at, got.size()) << "the first byte that differs from what parts leave";
  }

  /// Only replays what was captured, and compares with a call that is made now.
  void expect_same_replayed(const Capture& capture, const MakeCall& make,
                            const std::vector<Part>& written) {
    const Bytes got = replay(capture);
    EXPECT_EQ(replay(capture), got) << "two replays differ";
    Bytes expected = image_;
    const Memory host(expected.data());
    write_tables(host, expected);
    run::host::execute(make(host));
    compare(got, expected, written);
  }

  [[nodiscard]] Capture captured(const MakeCall& make) {
    const run::Call call = make(device());
    require(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal));
    const CudaStatus status = launch(call, stream_.get());
    cudaGraph_t graph = nullptr;
    require(cudaStreamEndCapture(stream_.get(), &graph));
    Capture capture{.graph = Owned<cudaGraph_t, DestroyGraph>(graph), .exec = nullptr};
    require(status);
    cudaGraphExec_t exec = nullptr;
    require(cudaGraphInstantiate(&exec, graph, 0));
    capture.exec.reset(exec);
    return capture;
  }

  [[nodiscard]] static std::size_t nodes_of(const Capture& capture) {
    std::size_t count = 0;
    require(cudaGraphGetNodes(capture.graph.get(), nullptr, &count));
    return count;
  }

  /// The call of the one node of a graph.
  [[nodiscard]] static std::optional<run::Call> read_back(const Capture& capture) {
    EXPECT_EQ(nodes_of(capture), 1U) << "nodes";
    cudaGraphNode_t node = nullptr;
    std::size_t count = 1;
    require(cudaGraphGetNodes(capture.graph.get(), &node, &count));
    cudaKernelNodeParams params{};
    require(cudaGraphKernelNodeGetParams(node, &params));
    return call_of(params.func, params.kernelParams);
  }

 private:
  static constexpr std::size_t kGap = 512;  // of poison behind each tensor

  std::size_t place(const void* bytes, std::size_t size, std::size_t past) {
    const std::size_t offset = (image_.size() + 255) / 256 * 256 + past;
    image_.resize(offset + size + kGap, std::byte{0xcd});
    if (size > 0) std::memcpy(image_.data() + offset, bytes, size);
    return offset;
  }

  [[nodiscard]] Memory device() {
    if (!device_) {
      void* memory = nullptr;
      require(cudaMalloc(&memory, image_.size()));
      device_.reset(memory);
    }
    return Memory(static_cast<std::byte*>(device_.get()));
  }

  void write_tables(const Memory& side, Bytes& image) const {
    for (const auto& [table, slots] : tables_) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const void* const entry = side.at(slots[i]);
        std::memcpy(image.data() + table.offset + i * sizeof entry, &entry, sizeof entry);
      }
    }
  }

  [[nodiscard]] Bytes after(const std::function<void()>& run) {
    Bytes image = image_;
    write_tables(device(), image);
    require(cudaMemcpy(device_.get(), image.data(), image.size(), cudaMemcpyHostToDevice));
    require(cudaDeviceSynchronize());
    run();
    require(cudaStreamSynchronize(stream_.get()));
    require(cudaMemcpy(image.data(), device_.get(), image.size(), cudaMemcpyDeviceToHost));
    return image;
  }
  [[nodiscard]] Bytes replay(const Capture& capture) {
    return after([&] { require(cudaGraphLaunch(capture.exec.get(), stream_.get())); });
  }
  [[nodiscard]] Bytes launched(const MakeCall& make) {
    return after([&] { require(launch(make(device()), stream_.get())); });
  }

  [[nodiscard]] static Values values_of(const Bytes& image, const Part& part) {
    Values values;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      const std::byte* const at = image.data() + part.slot.offset + i * part.slot.element_bytes();
      float value = 0;
      std::uint16_t bits = 0;
      if (part.slot.type == DataType::Fp32) {
        std::memcpy(&value, at, sizeof value);
      } else {
        std::memcpy(&bits, at, sizeof bits);
        value = part.slot.type == DataType::Bf16 ? run::to_float(run::Bf16{bits})
                                                 : run::to_float(run::Fp16{bits});
      }
      values.push_back(double{value});
    }
    return values;
  }

  // A coarse sum may be off by so much.
  static constexpr double kCoarse = 1e-3;

  static void compare_coarse_parts(const Bytes& got, const Bytes& expected,
                                   const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      if (part.value != Part::Value::Coarse) continue;
      EXPECT_LE(distance(values_of(got, part), values_of(expected, part)),
                kCoarse + tolerance(part.slot.type));
    }
  }

  // All parts of a type together: a sum that happens to be nearly zero has few digits by itself.
  static void compare_parts(const Bytes& got, const Bytes& expected, const std::vector<Part>& parts,
                            DataType type) {
    Values values;
    Values wanted;
    for (const Part& part : parts) {
      if (part.slot.type != type || part.value != Part::Value::Near) continue;
      std::ranges::copy(values_of(got, part), std::back_inserter(values));
      std::ranges::copy(values_of(expected, part), std::back_inserter(wanted));
    }
    EXPECT_LE(distance(values, wanted), tolerance(type)) << name_of(type);
    if (type == DataType::Fp32) return;
    std::size_t same = 0;
    for (std::size_t i = 0; i < values.size(); ++i) same += values[i] == wanted[i] ? 1U : 0U;
    EXPECT_GE(same * 100 + 200, values.size() * 95) << "equal elements, of " << values.size();
  }

  void compare(const Bytes& got, Bytes expected, const std::vector<Part>& written) const {
    const auto copy = [&](std::size_t first, std::size_t count) {
      std::memcpy(expected.data() + first, got.data() + first, count);
    };
    for (const DataType type : kTypes) compare_parts(got, expected, written, type);
    compare_coarse_parts(got, expected, written);
    for (const Part& part : written) {
      const auto bytes = static_cast<std::size_t>(part.slot.element_bytes());
      copy(part.slot.offset + static_cast<std::size_t>(part.first) * bytes,
           static_cast<std::size_t>(part.count) * bytes);
    }
    for (const auto& [table, slots] : tables_) copy(table.offset, slots.size() * sizeof(void*));
    std::size_t at = 0;
    while (at < got.size() && got[at] == expected[at]) ++at;
    EXPECT_EQ(at, got.size()) << "the first byte that differs where nothing was to be written";
  }

  Bytes image_;  ///< before any call, with tables yet to be filled
  std::vector<std::pair<Slot, std::vector<Slot>>> tables_;
  Owned<cudaStream_t, DestroyStream> stream_;
  std::unique_ptr<void, Free> device_;
};

}  // namespace capo::gpu

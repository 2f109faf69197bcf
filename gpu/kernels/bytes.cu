// Calls that know nothing of numbers: Copy, Fill, Gather, Differ. Kernels of our own instead of
// CUDA's copies, so that all nodes of a graph are kernels whose calls can be read back.
//
// Bytes go 16 at a time between the first and the last address that is a multiple of 16, one at a
// time at the ends and where two addresses lie differently to that. Tested by
// tests/gpu/bytes_test.cpp at every offset.

#include "gpu/kernels/families.h"
#include "gpu/kernels/row_groups.cuh"

#include <algorithm>
#include <cstdint>

namespace capo::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kExchangeThreads = 512;
constexpr std::int64_t kPerBlock = kThreads * 16 * 4;

// This thread among all that share some bytes.
struct Share {
  std::int64_t index;
  std::int64_t size;
};

__device__ Share share_of_grid() {
  return {std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
          std::int64_t{gridDim.x} * blockDim.x};
}
__device__ Share share_of_warp() {
  return {threadIdx.x % kWarp, kWarp};
}

template <typename Visit>
__device__ void share(Share mine, std::int64_t first, std::int64_t end, Visit visit) {
  for (std::int64_t at = first + mine.index; at < end; at += mine.size) visit(at);
}

// Which of some bytes lie in whole words of 16.
struct Words {
  std::int64_t first;  // bytes before the first word
  std::int64_t count;  // of words
  [[nodiscard]] __device__ std::int64_t end() const { return first + count * 16; }
};

__device__ Words words_of(const void* address, std::int64_t bytes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % 16);
  const std::int64_t first = min((16 - past) % 16, bytes);
  return {first, (bytes - first) / 16};
}

// No words where the two lie differently.
__device__ Words words_of(const void* a, const void* b, std::int64_t bytes) {
  const auto apart = reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b);
  return apart % 16 == 0 ? words_of(a, bytes) : Words{bytes, 0};
}

__device__ void copy_bytes(Share mine, const void* from, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* target = static_cast<std::uint8_t*>(to);
  const Words words = words_of(from, to, bytes);
  const auto* source_words = reinterpret_cast<const uint4*>(source + words.first);
  auto* target_words = reinterpret_cast<uint4*>(target + words.first);
  const auto copy_byte = [&](std::int64_t at) { target[at] = source[at]; };
  share(mine, 0, words.first, copy_byte);
  share(mine, 0, words.count, [&](std::int64_t at) { target_words[at] = source_words[at]; });
  share(mine, words.end(), bytes, copy_byte);
}

// A warp takes a row.
__global__ void gather(run::Gather call) {
  constexpr int kRows = kExchangeThreads / kWarp;
  const std::int64_t first = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kWarp;
  for (std::int64_t row = first; row < call.rows; row += std::int64_t{gridDim.x} * kRows) {
    copy_bytes(share_of_warp(),
               static_cast<const std::uint8_t*>(call.from) + call.index[row] * call.row_bytes,
               static_cast<std::uint8_t*>(call.to) + row * call.row_bytes, call.row_bytes);
  }
}

__global__ void copy(run::Copy call) {
  copy_bytes(share_of_grid(), call.from, call.to, call.bytes);
}

__global__ void fill(run::Fill call) {
  const Share mine = share_of_grid();
  auto* target = static_cast<std::uint8_t*>(call.to);
  const Words words = words_of(call.to, call.bytes);
  auto* target_words = reinterpret_cast<uint4*>(target + words.first);
  const unsigned four = call.value * 0x01010101U;
  const auto fill_byte = [&](std::int64_t at) { target[at] = call.value; };
  share(mine, 0, words.first, fill_byte);
  share(mine, 0, words.count,
        [&](std::int64_t at) { target_words[at] = make_uint4(four, four, four, four); });
  share(mine, words.end(), call.bytes, fill_byte);
}

// Whoever finds a difference writes the same 1, so nobody has to take turns.
__global__ void differ(run::Differ call) {
  const Share mine = share_of_grid();
  const std::int64_t bytes = rows_in_use(call.rows) * call.row_bytes;
  const auto* a = static_cast<const std::uint8_t*>(call.a);
  const auto* b = static_cast<const std::uint8_t*>(call.b);
  const Words words = words_of(a, b, bytes);
  const auto* a_words = reinterpret_cast<const uint4*>(a + words.first);
  const auto* b_words = reinterpret_cast<const uint4*>(b + words.first);
  bool differs = false;
  const auto compare_byte = [&](std::int64_t at) { differs = differs || a[at] != b[at]; };
  share(mine, 0, words.first, compare_byte);
  share(mine, 0, words.count, [&](std::int64_t at) {
    const uint4 x = a_words[at];
    const uint4 y = b_words[at];
    differs = differs || ((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0;
  });
  share(mine, words.end(), bytes, compare_byte);
  if (differs) *call.differs = 1;
}

const Kernel<run::Gather> kGathers[] = {gather};
const Kernel<run::Copy> kCopies[] = {copy};
const Kernel<run::Fill> kFills[] = {fill};
const Kernel<run::Differ> kDiffers[] = {differ};

std::int64_t blocks_for_bytes(std::int64_t bytes) {
  return blocks_for((bytes + kPerBlock - 1) / kPerBlock);
}

}  // namespace

Launch<run::Gather> launch_of(const run::Gather& call) {
  return {.kernel = gather,
          .blocks = std::clamp<std::int64_t>(call.rows, 1, kExchangeBlocks),
          .threads = kExchangeThreads};
}

Launch<run::Copy> launch_of(const run::Copy& call) {
  return {.kernel = copy, .blocks = blocks_for_bytes(call.bytes), .threads = kThreads};
}

Launch<run::Fill> launch_of(const run::Fill& call) {
  return {.kernel = fill, .blocks = blocks_for_bytes(call.bytes), .threads = kThreads};
}

Launch<run::Differ> launch_of(const run::Differ& call) {
  return {.kernel = differ,
          .blocks = blocks_for_bytes(call.rows.count * call.row_bytes),
          .threads = kThreads};
}

Kernels<run::Gather> kernels_of(std::type_identity<run::Gather>) {
  return kGathers;
}
Kernels<run::Copy> kernels_of(std::type_identity<run::Copy>) {
  return kCopies;
}
Kernels<run::Fill> kernels_of(std::type_identity<run::Fill>) {
  return kFills;
}
Kernels<run::Differ> kernels_of(std::type_identity<run::Differ>) {
  return kDiffers;
}

}  // namespace capo::gpu

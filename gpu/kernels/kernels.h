// The CUDA kernels: one kernel launch for each call of run/kernels/call.h.
//
// A launch allocates nothing and waits for nothing, so it may be captured. How many blocks it has
// depends on the numbers in the call and on the device, never on what lies in the device's memory;
// what is written depends on neither, nor on which block came first. Every kernel takes its call by
// value as its one parameter, so that the nodes of a captured graph can be read back.
//
// One call of a kind is one kernel, copies and fills included, but for products that go on with
// their result: graphs have kernel nodes only. Code is for sm_80 and up. At most kMostGroups
// groups, 2^31 - 1 rows of groups or choices, and 256 columns of a head: else the status is an
// error and nothing was launched. Tested against the host's kernels by tests/gpu/.

#pragma once

#include "gpu/runtime/check.h"
#include "run/kernels/call.h"

#include <cstdint>
#include <optional>
#include <string_view>

struct CUstream_st;

namespace capo::gpu {

inline constexpr std::int64_t kMostGroups = 1024;

/// Blocks of an exchange, channels of NCCL, and multiprocessors that are left to them: a network is
/// no faster for more.
inline constexpr std::int64_t kExchangeBlocks = 8;

/// How much of the device a kernel takes that would fill it.
enum class Room : std::uint8_t {
  All,
  LeaveToExchanges,  ///< leaves the multiprocessors that exchanges and messages need meanwhile
};
/// "a grouped product", "a copy": what a message calls it.
[[nodiscard]] std::string_view name_of(const run::Call& call);

/// Launches the call on a stream of the current device.
CudaStatus launch(const run::Call& call, CUstream_st* stream, Room room = Room::All);

/// The call that a kernel node was captured with; `function` and `kernel_params` are those of
/// cudaGraphKernelNodeGetParams. nullopt if the kernel is none of ours.
[[nodiscard]] std::optional<run::Call> call_of(const void* function, void** kernel_params);

}  // namespace capo::gpu

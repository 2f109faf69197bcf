// The functions of NCCL that capo calls, found in the library when they are asked for: the program
// is linked with none, and starts where there is none.
//
// The library is that of CAPO_NCCL_LIBRARY, a path, or else the libnccl.so.2 that the dynamic
// linker finds, in LD_LIBRARY_PATH for one. What it is called with are NCCL's own types, from the
// header that was there when capo was built; without one this folder is not built. Tested by
// nccl_test.cpp with a library in software.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"

#include <nccl.h>

#include <string_view>

namespace capo::gpu {

struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) comm_init_rank = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
};

/// Loads the library once in a process.
[[nodiscard]] Result<const NcclFunctions*> nccl_functions();

/// "ncclGroupEnd gave `unhandled system error` (...)": a call that failed, in NCCL's words.
[[nodiscard]] Error nccl_error(const NcclFunctions& nccl, std::string_view call,
                               ncclResult_t result);

}  // namespace capo::gpu

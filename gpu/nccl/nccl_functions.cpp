#include "gpu/nccl/communicators.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace capo::gpu {

namespace {

Error missing(const std::string& why) {
  return {.kind = ErrorKind::Environment,
          .message = "the library of NCCL cannot be loaded: " + why,
          .help =
              "set CAPO_NCCL_LIBRARY to the path of libnccl.so.2, which the toolkit, the "
              "distribution or PyPI's wheel nvidia-nccl-cu13 has, or put its folder into "
              "LD_LIBRARY_PATH"};
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym knows no types
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// CUDA has so many queues for the streams of a process, 8 unless it is told otherwise; streams that
// share one wait for each other, and a message for what should free it. It reads this once, when it
// is first used.
constexpr const char* kQueues = "32";

Result<const NcclFunctions*> load() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", kQueues, 0);
  const char* const named = std::getenv("CAPO_NCCL_LIBRARY");
  void* const library = dlopen(named != nullptr ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing(dlerror());
  static NcclFunctions nccl;
  const bool all = find(library, "ncclGetVersion", nccl.get_version) &&
                   find(library, "ncclGetUniqueId", nccl.get_unique_id) &&
                   find(library, "ncclCommInitRankConfig", nccl.comm_init_rank) &&
                   find(library, "ncclCommDestroy", nccl.comm_destroy) &&
                   find(library, "ncclCommAbort", nccl.comm_abort) &&
                   find(library, "ncclSend", nccl.send) &&
                   find(library, "ncclRecv", nccl.receive) &&
                   find(library, "ncclGroupStart", nccl.group_start) &&
                   find(library, "ncclGroupEnd", nccl.group_end) &&
                   find(library, "ncclGetErrorString", nccl.error_string) &&
                   find(library, "ncclGetLastError", nccl.last_error);
  if (!all) return missing(dlerror());
  return &nccl;
}

}  // namespace

Result<const NcclFunctions*> nccl_functions() {
  static const Result<const NcclFunctions*> loaded = load();
  return loaded;
}

Error nccl_error(const NcclFunctions& nccl, std::string_view call, ncclResult_t result) {
  std::string message = std::string(call) + " gave `" + nccl.error_string(result) + "`";
  const char* const more = nccl.last_error(nullptr);
  if (more != nullptr && *more != '\0') message += std::string(" (") + more + ")";
  return {.kind = ErrorKind::Environment,
          .message = std::move(message),
          .help = "NCCL_DEBUG=WARN tells what NCCL itself says"};
}

}  // namespace capo::gpu

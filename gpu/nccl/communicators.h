// Communicators of NCCL among processes, each made by its members and by nobody else.
//
//   Communicators all(nccl, processes);
//   all.make({{0, 1}, {0, 2}})         by all processes alike: two communicators, of two processes
//   each all.at(1)                          null where this process is no member all.abort() ends
//   what hangs in them, from any thread
//
// Every communicator is warmed up: each two members exchange a byte both ways, because NCCL makes
// connections when they are first used, and waits on the host while it does so. Later calls only
// launch.

#pragma once

#include "core/base/error.h"
#include "gpu/nccl/nccl_functions.h"
#include "run/processes/processes.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

struct CUstream_st;

namespace capo::gpu {

class Communicators {
 public:
  Communicators(const NcclFunctions& nccl, run::Processes& processes)
      : nccl_(nccl), processes_(processes) {}
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Makes one for each list of members, which are processes, ascending, and warms it up with
  /// `scratch`, two bytes of the device for each process. All processes call with the same lists.
  [[nodiscard]] std::optional<Error> make(const std::vector<std::vector<std::int32_t>>& members,
                                          std::byte* scratch, CUstream_st* stream);

  [[nodiscard]] ncclComm_t at(std::size_t communicator) const { return made_[communicator].comm; }
  /// The number of a process in a communicator that it is a member of.
  [[nodiscard]] int number_of(std::int32_t process, std::size_t communicator) const;

  void abort();
  /// They are left to the end of the process, since NCCL would wait before it destroys them: for
  /// the end of graphs that hold messages of them, or for a process that does not answer.
  void leave() { left_ = true; }

 private:
  struct Made {
    ncclComm_t comm = nullptr;
    std::vector<std::int32_t> members;
  };

  [[nodiscard]] std::optional<Error> join(Made& made, const ncclUniqueId& id);
  [[nodiscard]] std::optional<Error> warm_up(const Made& made, std::byte* scratch,
                                             CUstream_st* stream);

  const NcclFunctions& nccl_;
  run::Processes& processes_;
  std::vector<Made> made_;
  std::mutex mutex_;
  bool left_ = false;
};

}  // namespace capo::gpu

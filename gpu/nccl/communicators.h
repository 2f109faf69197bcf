// Communicators of NCCL among processes, each made by its members and by nobody else.
//
//   Communicators all(nccl, processes);
//   all.make({{0, 1}, {0, 2}}, scratch, engine)   makes two, of two processes each; all call it
//   all.at(1)                    is null where this process is no member
//   all.abort()                  ends what hangs in them, from any thread
//
// NCCL waits for ever for a process that does not come, on the host too, and nothing can end that
// while a communicator is being made. So a thread of its own makes them; if it does not come back
// within the timeout of the processes it is left alone, and the error says so. All are aborted at
// once, because NCCL waits for the device before it lets one go, and what hangs in another would
// keep the device busy.
//
// A communicator has as many channels as products leave multiprocessors to it (kernels.h): each is
// a block that stays on its multiprocessor for as long as a message waits for its other end. Blocks
// come one by one and not in clusters of four, as NCCL has them on Hopper: what a product leaves
// free may lie anywhere, and a cluster would wait until the product is over. Every
// communicator is warmed up: each two members exchange a byte both ways, because NCCL makes
// connections when they are first used, and waits on the host while it does so. Later calls only
// launch.
//
// The functions of NCCL that capo calls, found in the library when they are asked for: the program
// is linked with none, and starts where there is none.
//
// The library is that of CAPO_NCCL_LIBRARY, a path, or else the libnccl.so.2 that the dynamic
// linker finds, in LD_LIBRARY_PATH for one. What it is called with are NCCL's own types, from the
// header that was there when capo was built; without one this folder is not built. Tested by
// nccl_test.cpp with a library in software.
//
// A thread that acts when something takes too long: NCCL waits for ever, in kernels and on the
// host, and only another thread can end that.
//
//   Watchdog dog(timeout, [&] { return nothing_moves(); }, [all] { all->abort(); });
//   dog.watch();   from here on, and from each progress() on, it must not take longer
//   dog.rest();    nothing is watched
//
// The first function may say that something did go on, by false; then it is watched anew. It acts
// once: the first function is over before the watchdog is gone, the second may go on after that,
// since NCCL may wait in it too. A clock decides when to give up and nothing else.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "run/processes/processes.h"

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct CUstream_st;

namespace capo::gpu {

class CudaEngine;

struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank = nullptr;
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

/// Calls something in a thread of its own and waits for so long. False if it has not come back: it
/// goes on then with what it holds, and nobody is to wait for it.
[[nodiscard]] bool comes_back(std::chrono::duration<double> timeout, std::function<void()> call);

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
                                          std::byte* scratch, const CudaEngine& engine);

  [[nodiscard]] ncclComm_t at(std::size_t communicator) const { return made_[communicator].comm; }
  /// The number of a process in a communicator that it is a member of.
  [[nodiscard]] int number_of(std::int32_t process, std::size_t communicator) const;

  /// Returns when NCCL has let all of them go.
  void abort();
  /// They are left to the end of the process, since NCCL would wait before it destroys them: for
  /// the end of graphs that hold messages of them, or for a process that does not answer.
  void leave() { left_ = true; }

 private:
  struct Made {
    ncclComm_t comm = nullptr;
    std::vector<std::int32_t> members;
  };

  struct Making;

  [[nodiscard]] std::optional<std::string> identities(std::size_t count, Error& why);

  const NcclFunctions& nccl_;
  run::Processes& processes_;
  std::vector<Made> made_;
  std::mutex mutex_;
  bool left_ = false;
};

class Watchdog {
 public:
  using Duration = std::chrono::duration<double>;

  Watchdog(Duration timeout, std::function<bool()> first, std::function<void()> then);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch();
  /// Puts the end off, if something is watched.
  void progress();
  void rest();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace capo::gpu

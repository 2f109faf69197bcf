// The processes of one run, each with a rank or several, and what they do together besides messages
// of a step: meet, and bring what each has to rank 0.
//
//   auto all = Processes::start(std::chrono::seconds(60));
//   all->meet({})                    false: somebody did not come
//   all->gather("mine", {})          at rank 0: each rank's text, nullopt of a silent one
//
// Every wait has an end: after so long in which what is waited for does not happen, the waiting
// process says so, and nothing is waited for again. A clock decides only when to stop waiting, and
// never what a verdict or a comparison says.
//
// The library of messages (run/mpi) is loaded from the folder of the program, or where an
// installation puts it; the program itself depends on none. Tested by processes_test.cpp with a
// library whose processes are threads, and by tests/cli/mpi_test.cpp with MPI.
//
// The state in which the ranks of a run wait for each other, told by the processes that have them.
//
//   no message came for 5 s, and ranks are stuck:
//     rank 0 waits for rank 1 to receive message 1 from rank 0 to rank 1, ...
//     rank 1 waits for rank 0 to receive message 0 from rank 1 to rank 0, ...
//     in a circle: rank 0 for rank 1, which waits for rank 0
//
// Tested by processes_test.cpp.
//
// Processes of one machine that this one makes of itself, where nobody launched several: copies
// that talk through sockets, and one that waits for them.
//
//   MessageLibrary* mine = spawn(2, 60s);   returns twice, in two new processes; this one only
//   waits
//
// One that leaves while another takes nothing of what it sent for the timeout ends all of them. The
// process that was there before ends when all of them have, with the exit code of rank 0. When
// one ends by itself without having left, or is killed, it ends the others at once: with the code
// of that one, or, for a signal, with code 5 and a line that names it. When it is killed itself,
// they are as well.
//
// The messages are those of a control plane, short and few: what tensors need goes through NCCL.
// Tested by spawned_test.cpp.

#pragma once

#include "core/base/result.h"
#include "run/mpi/message_library.h"
#include "run/processes/processes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

class Processes {
 public:
  using Duration = std::chrono::duration<double>;

  /// Loads MPI and joins the processes that were launched with this one.
  [[nodiscard]] static Result<std::unique_ptr<Processes>> start(Duration timeout);

  /// `library` has been started.
  Processes(MessageLibrary& library, Duration timeout)
      : library_(library), timeout_(timeout), gathering_(library.add_communicators(1)) {}

  [[nodiscard]] std::int32_t rank() const { return library_.rank(); }
  [[nodiscard]] std::int32_t size() const { return library_.size(); }
  [[nodiscard]] Duration timeout() const { return timeout_; }
  [[nodiscard]] MessageLibrary& library() const { return library_; }

  /// Returns when the request is over; false if it was not within the timeout and `more`, or
  /// failed.
  [[nodiscard]] bool wait(int request, Duration more = {});
  /// Returns when all processes are here; false if they were not within the timeout and `more`.
  [[nodiscard]] bool meet(Duration more = {});
  /// Brings a text of each process to rank 0, which gets them by rank, nullopt of each that did not
  /// send its own in time. Elsewhere the result is one text, empty if rank 0 took this one's, or
  /// nullopt if it did not.
  [[nodiscard]] std::vector<std::optional<std::string>> gather(std::string text,
                                                               Duration more = {});
  /// Brings a text of rank 0 to all; nullopt if it did not come in time.
  [[nodiscard]] std::optional<std::string> spread(std::string text);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool wait_until(int request, Clock::time_point end);
  [[nodiscard]] std::optional<std::string> text_of(int rank, Clock::time_point end);
  [[nodiscard]] bool tell(int rank, std::string& text, Clock::time_point end);

  MessageLibrary& library_;
  Duration timeout_;
  int gathering_;  // the communicator of texts
};

struct StuckRank {
  std::int32_t rank = 0;
  std::int32_t awaited = -1;  ///< the rank that it waits for; -1: all of them, or nobody
  std::string words;          ///< "waits for rank 1 to send message 0 ..."
};

/// All processes call when they have waited too long. At rank 0 the state of all ranks; elsewhere
/// empty, or, if rank 0 does not answer, what this process waits for.
[[nodiscard]] std::string stuck_state_of(Processes& processes, const std::vector<StuckRank>& own,
                                         std::int32_t ranks);

/// Precondition: this process has one thread, and has asked nothing of CUDA.
[[nodiscard]] Result<MessageLibrary*> spawn(int count, std::chrono::duration<double> timeout);

}  // namespace capo::run

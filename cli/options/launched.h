// The option --transport of `run` and `measure`, and the processes that were launched together for
// it.
//
//   mpirun -n 2 capo run two_ranks.order --transport mpi
//
// All of them do the same but for the replay of their own rank, so all but rank 0 are made quiet
// first: what is refused, and the report, are printed once. A process that breaks off alone is
// heard all the same, and ends the others, as nobody could go on without it. Tested by
// tests/cli/mpi_test.cpp.

#pragma once

#include "core/base/result.h"
#include "run/processes/between_processes.h"
#include "run/processes/processes.h"
#include "run/processes/walk_all.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace capo::cli {

enum class TransportKind : std::uint8_t { InProcess, Mpi, Nccl };

struct TransportRequest {
  TransportKind kind = TransportKind::InProcess;
  double timeout = 60;  ///< seconds
  std::int32_t ranks_per_device = 1;

  /// `example` is how mpirun launches the command.
  void add_to(CLI::App& app, const std::string& example);
  void add_ranks_to(CLI::App& app);
};

/// Whether mpirun, or what does its work, has launched this process.
[[nodiscard]] bool launched_by_mpi();
/// The messages of NCCL, or why there are none.
[[nodiscard]] Result<run::BetweenFactory> messages_of_nccl();

/// Messages of NCCL with which an order is walked that nobody has verified; the engine outlives
/// them. Precondition: messages_of_nccl() has found NCCL.
[[nodiscard]] run::WalkMessages walk_over_nccl(run::Engine& engine, run::Processes& processes);

/// This process among those that were launched with it.
class Launched {
 public:
  [[nodiscard]] static Result<Launched> join(const TransportRequest& request);
  /// Makes so many processes of this one, and returns in each of them.
  [[nodiscard]] static Result<Launched> spawn(const TransportRequest& request, int count);

  [[nodiscard]] run::Processes& processes() const { return *processes_; }
  [[nodiscard]] bool reports() const { return processes_->rank() == 0; }
  /// The number of the CUDA device of this process: its number on this machine. If there are fewer
  /// devices than processes, or none, all of this machine are told so.
  [[nodiscard]] Result<int> device() const;
  /// Whether no process is on another machine, so that all find the same devices.
  [[nodiscard]] bool on_one_machine() const { return of_this_machine() == processes_->size(); }

  /// device(), where a process that alone has none ends all.
  [[nodiscard]] Result<int> device_or_end();

  /// Runs a command that ends in every process alike, with its exit code; what is thrown in one of
  /// them alone ends all.
  [[nodiscard]] int run(const std::function<int()>& command);
  /// Ends all processes after `tell` has been printed by this one. An empty text says that rank 0
  /// prints, and ends this one too.
  [[noreturn]] void end_all(std::string_view tell, int code);
  /// Ends them for an error that this process alone has.
  [[noreturn]] void end_all_for(const Error& error);

 private:
  explicit Launched(std::unique_ptr<run::Processes> processes);

  [[nodiscard]] int of_this_machine() const;

  std::unique_ptr<run::Processes> processes_;
  int heard_ = 2;  // a file descriptor: standard error as it was
};

}  // namespace capo::cli

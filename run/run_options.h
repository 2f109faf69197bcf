// A run is asked for this: graphs, replays and their numbers, the comparison with float64, how
// messages travel, and who looks at it.
//
// Requests that are refused are refusal.h's concern. Tested by the tests of whole runs.

#pragma once

#include "core/model/plan_options.h"
#include "run/engine/engine.h"
#include "run/execute/buffer_memory.h"
#include "run/execute/loaded_step.h"
#include "run/execute/transport.h"
#include "run/processes/between_processes.h"
#include "run/setup/group_sizes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capo::run {

struct Inspection;  // of run.h

/// Which replays' numbers eager execution is compared with float64 for. At the sizes of real models
/// the comparison takes a processor hours.
enum class Float64 : std::uint8_t {
  EveryReplay,
  FirstReplay,
  Sampled,  ///< a sample of the first replay's, which takes seconds
  LeftOut,
};

/// Multiply-adds of float64, some minutes of a processor.
inline constexpr double kFloat64Limit = 1e12;
/// Rows of each microbatch, and columns of each weight (run/reference/sampled_reference.h).
inline constexpr std::int64_t kFloat64Samples = 8;

struct RunOptions {
  Granularity graphs = Granularity::PerAction;
  std::uint32_t replays = 3;  ///< 0: the step runs eagerly once and is compared with float64
  /// Seconds in which the step is replayed before each replay that counts: a device's clock goes
  /// down under load. The times of a replay are the mean over it and the second half of these. Of
  /// several processes the first one's seconds count.
  double warm_up = 0;
  /// A pause follows each replay of the warm-up, as long as that took.
  bool rests = false;
  std::uint64_t seed = 1;
  SizeKind sizes = SizeKind::Random;
  Poison poison = Poison::On;
  Float64 float64 = Float64::EveryReplay;
  std::int64_t float64_samples = kFloat64Samples;  ///< at least 1
  /// A run whose comparisons with float64 take more multiply-adds is refused.
  double float64_limit = kFloat64Limit;
  Hooks hooks;
  /// The contract that replays keep. Default: TE's under plan te, otherwise the sound one.
  std::optional<gradients::Contract> whose;
  /// How messages travel. Default: all ranks are in this process.
  TransportFactory transport = in_process;
  /// One process for each rank or few ranks, this one among them, and how they send; null: all
  /// ranks are in this process. Each runs the whole step eagerly and replays its own ranks, and
  /// rank 0 has the report of all. Precondition: there are as many processes as the division says.
  Processes* processes = nullptr;
  std::int32_t ranks_per_process = 1;
  MessageLibrary::Mode sends = MessageLibrary::Mode::Rendezvous;
  /// Messages between processes, by name. That of MPI needs an engine whose memory is the
  /// processor's.
  struct Between {
    std::string name = "mpi";
    BetweenFactory make = between_processes;
    bool can_be_captured = false;  ///< a graph of a whole step can hold them
    /// Kernels of the device move them, beside which products leave some of it free.
    bool on_device = false;
  } between;
  /// Called after the captures and after the last replay.
  std::function<void(const Inspection&)> inspect;
  /// Called with the number of each replay that was run and compared.
  std::function<void(std::uint32_t)> replayed;
};

}  // namespace capo::run

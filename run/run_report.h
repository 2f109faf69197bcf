// What came of a run, as plain values: what was equal, what was not, who was hurt, and what it
// took.
//
// Filled by run() and its judge, put into words by report.h.

#pragma once

#include "run/execute/program.h"
#include "run/execute/stepper.h"
#include "run/reference/compare.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace capo::run {

/// One gradient over all replays.
struct TensorReport {
  std::string name;
  std::int64_t elements = 0;
  std::optional<Difference> difference;   ///< from eager execution, in the first replay with one
  std::uint32_t replay = 0;               ///< which that was, from 1
  double float64_error = 0;               ///< of eager execution, the largest
  double bound = 0;                       ///< that it must keep
  std::optional<double> ascending_error;  ///< from the sum in the order of microbatches; parameters
};

/// A chunk's microbatch.
struct Victim {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;

  friend auto operator<=>(const Victim&, const Victim&) = default;
};

/// Whose memory was read too late, by what it held.
struct Victims {
  std::set<Victim> static_input;
  std::set<Victim> grad_output;
  std::set<Victim> grad_input;  ///< sent on
  std::set<Victim> other;       ///< other memory of the pool

  friend bool operator==(const Victims&, const Victims&) = default;
};

struct RunBytes {
  std::int64_t planned = 0;
  std::int64_t allocated = 0;
  std::int64_t eager_peak = 0;
};

/// Microseconds, on the clock of whoever drives.
struct RunTimes {
  double capture = 0;      ///< until all graphs can be replayed
  double instantiate = 0;  ///< of that
  double upload = 0;       ///< likewise, handing over to the device without its copies
  double eager = 0;        ///< of one step, the median
  double replay = 0;       ///< likewise
  double launch = 0;       ///< of a replay, what launching its graphs takes the processor
  double makespan = 0;     ///< of replayed actions, from the first that began to the last, likewise
  double busy = 0;         ///< the sum of what its parts took, likewise
};

struct RunReport {
  std::string engine;
  std::string device;
  bool unchecked = false;
  bool bit_equal = true;  ///< every gradient in every replay
  bool float64_compared = true;
  bool within_bounds = true;  ///< of float64; where it was not compared nothing is beyond them
  std::vector<TensorReport> parameters;
  std::vector<TensorReport> input_gradients;
  Victims victims;                   ///< observed
  Victims predicted;                 ///< by the verifier
  std::set<Victim> wrong_gradients;  ///< microbatches whose weight gradient was not eager's
  std::vector<std::string> stories;  ///< what each victim read, and what had taken its place
  double worst_relative_error = 0;   ///< of float64
  std::size_t graphs = 0;
  std::size_t nodes = 0;
  std::uint32_t replays = 0;
  RunBytes bytes;
  RunTimes times;
  /// Microseconds that a simulation gives the step; nothing: nobody asked for one.
  std::optional<double> predicted_makespan;
  std::vector<Measured> timeline;  ///< of the last replay of actions
  Program program;                 ///< whose ops the timeline speaks of
};

}  // namespace capo::run

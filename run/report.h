// The outcome of a run as plain values, and its words, its JSON and its timeline.
//
// run() and its judge fill the values: what was equal, what was not, who was hurt, and what it
// took. JSON follows docs/schema/run.schema.json; same run, same bytes but for times. A victim is
// [chunk, microbatch], with its rank in front if the schedule has several. Tested by
// tests/cli/run_test.cpp and tests/schema/.

#pragma once

#include "core/order/schedule.h"
#include "core/rules/verify.h"
#include "core/timeline/timeline.h"
#include "run/execute/program.h"
#include "run/execute/rank_range.h"
#include "run/execute/stepper.h"
#include "run/reference/compare.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

/// One gradient over all replays.
struct TensorReport {
  std::string name;
  std::int64_t elements = 0;
  std::optional<Difference> difference;  ///< from eager execution, in the first replay with one
  std::uint32_t replay = 0;              ///< which that was, from 1
  double float64_error = 0;              ///< the largest relative error of eager execution
  std::optional<std::int64_t> float64_elements;  ///< so many of a sample; nullopt: all
  double bound = 0;                              ///< what that error must stay within
  std::optional<bool> zero;               ///< whether eager execution gave zeros alone, wherever it
                                          ///< was compared with float64; nullopt: it was not
  std::optional<double> ascending_error;  ///< from the sum in the order of microbatches; nullopt of
                                          ///< an input gradient
};

/// A tensor of eager execution that is not float64's: a gradient, or one that a layer read.
struct BeyondBound {
  std::string name;
  double error = 0;  ///< relative, the largest of all replays
  double bound = 0;
};

/// The elements that eager execution was held against float64 in, and single ones at that.
struct SampledElements {
  std::int64_t samples = 0;  ///< rows of each microbatch, and columns of each weight
  std::uint64_t seed = 0;    ///< that they were drawn by
  std::size_t tensors = 0;
  std::int64_t elements = 0;  ///< of these tensors
  double worst_element = 0;   ///< the largest relative error of a single one
};

/// A chunk's microbatch.
struct Victim {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;

  friend auto operator<=>(const Victim&, const Victim&) = default;
};

/// The microbatches whose memory was read too late, by what it held.
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
  double instantiate = 0;  ///< the part of capture that makes graphs executable
  double upload = 0;       ///< the part of capture that hands them to the device, without copies
  double eager = 0;        ///< one step, the median
  double replay = 0;       ///< one replay, the median
  double launch = 0;    ///< what launching the graphs of a replay takes the processor, the median
  double makespan = 0;  ///< from the first replayed action that began to the last, the median
  double busy = 0;      ///< the sum of what the parts of the makespan took, the median
  double round = 0;     ///< from one replay of the warm-up to the next, the mean; 0: there is none
};

struct RunReport {
  std::string engine;
  std::string device;
  std::int32_t processes = 0;  ///< that messages went between; 0: all ranks are in this one
  std::string between;         ///< "mpi" or "nccl", if there are several processes
  Division division;           ///< of ranks among them
  bool unchecked = false;
  bool bit_equal = true;  ///< every gradient in every replay
  bool float64_compared = true;
  std::uint32_t float64_replays = 0;       ///< whose numbers eager execution was compared for
  bool within_bounds = true;               ///< of float64; true if that was not compared
  std::optional<SampledElements> sampled;  ///< nullopt: all elements were compared, or none
  std::vector<TensorReport> parameters;
  std::vector<TensorReport> input_gradients;
  Victims victims;                   ///< observed
  Victims predicted;                 ///< by the verifier
  std::set<Victim> wrong_gradients;  ///< microbatches whose weight gradient was not eager's
  std::vector<std::string> stories;  ///< what each victim read, and what had taken its place
  double worst_relative_error = 0;   ///< of eager execution, against float64
  std::vector<BeyondBound> beyond;   ///< empty if within_bounds
  std::size_t other_ways = 0;        ///< roundings of eager execution on an edge, which float64's
                                     ///< followed
  std::size_t graphs = 0;
  std::size_t nodes = 0;
  std::uint32_t replays = 0;
  RunBytes bytes;
  RunTimes times;
  /// Microseconds that a simulation gives the step; nullopt: nobody asked for one.
  std::optional<double> predicted_makespan;
  std::vector<Measured> timeline;  ///< the ops of the last replay of actions
  /// Microseconds that times of two processes may be off against each other; nullopt: there is one.
  std::optional<double> clock_doubt;
  bool other_clocks = false;  ///< some ranks ran on another machine, and their times are left out
  Program program;            ///< holds these ops
};

/// `assumed` lists what was not declared, and what was taken for it.
[[nodiscard]] std::string text_report(const RunReport& report, const PlannedStep& step,
                                      const std::vector<std::string>& assumed);
[[nodiscard]] std::string json_report(const RunReport& report, const PlannedStep& step);

/// Why there was no run.
struct Reason {
  std::string_view reason;
  std::string_view help = {};  ///< may be empty
};

/// The report of a run that was refused, or that broke off. `result` has findings that tell more,
/// or is null.
[[nodiscard]] std::string json_refusal(std::string_view verdict, std::string_view engine,
                                       const Reason& reason, const CheckResult* result);
/// "rejected for B01, E01".
[[nodiscard]] std::string reason_of(const CheckResult& result);
/// The last replay of actions, to be drawn. It refers to the report, which outlives it.
[[nodiscard]] Timeline timeline_of(const RunReport& report, const Schedule& schedule);

}  // namespace capo::run

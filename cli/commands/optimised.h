// Prints what `capo optimise` found: a report as text or JSON, and the order in any form that can
// say it; and knows what those can run whom it is for.

#pragma once

#include "cli/options/choice.h"
#include "core/base/result.h"
#include "core/order/fuse_weights.h"
#include "core/order/schedule.h"
#include "core/profiles/consult.h"
#include "core/text/limits.h"
#include "optimise/bounds.h"
#include "optimise/search.h"
#include "optimise/variants.h"
#include "sim/simulation.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo::cli {

enum class OptimiseFormat { Text, Json, Order, Csv, Tokens, Te };

[[nodiscard]] const Words<OptimiseFormat>& optimise_formats();

/// A published schedule under the same costs and memory.
struct PublishedSchedule {
  std::string name;
  double makespan = 0;
  double span = 0;
  double peak = 0;
  bool fits = false;
  std::optional<optimise::Orders> orders;    ///< if it is of the problem's placement
  std::optional<optimise::Figures> figures;  ///< what these come to in the problem, if it was told
};

/// Every published schedule of a problem's counts, in the order of the catalogue.
[[nodiscard]] std::vector<PublishedSchedule> published_schedules(const optimise::Problem& problem,
                                                                 const SimulationOptions& options,
                                                                 const Limits& limits,
                                                                 unsigned threads);

/// Those that have orders of the problem as starts of a search for the recipient.
void add_starts(const std::vector<PublishedSchedule>& published, Recipient recipient,
                std::vector<optimise::Start>& starts);

struct Optimised {
  Schedule schedule;
  optimise::Frame frame;
  optimise::Found found;
  optimise::LowerBounds bounds;
  std::vector<PublishedSchedule> published;
  optimise::Objective objective = optimise::Objective::Makespan;
  std::optional<double> memory_limit;
  Recomputed recomputed;
  double keep = 0;           ///< of what a forward takes, by chunks that recompute
  std::int32_t fuse_w = 1;   ///< most weight gradients of one call, which `schedule` has one by one
  std::size_t variants = 0;  ///< so many were tried, if any were
  bool places = false;       ///< these have other placements
  bool recomputes = false;   ///< and other chunks that recompute
  bool in_microseconds = false;  ///< all times are; else in the user's own unit
  std::uint64_t seed = 1;
  double seconds = 0;
  double gap = 0;  ///< the share of the bound by which the objective exceeds it
  bool proved = false;
};

/// Says why the recipient runs no order of this frame; nullopt if it runs some.
[[nodiscard]] std::optional<std::string> why_not_for(Recipient recipient,
                                                     const optimise::Frame& frame);

/// Says why the recipient has no calls of several weight gradients; nullopt if it has.
[[nodiscard]] std::optional<std::string> why_no_calls_for(Recipient recipient);

/// An order that a recipient runs.
struct ForRecipient {
  Schedule schedule;
  optimise::Found found;  ///< without orders of the problem, if the recipient makes them by itself
  /// If variants were searched: the one that was found, without its orders.
  std::optional<optimise::FoundVariant> variant = std::nullopt;
};
/// nullopt if no order was found in time; the error is the reason why there is none.
using Made = Result<std::optional<ForRecipient>, std::string>;

/// The best of Megatron-LM's own orders.
[[nodiscard]] Made made_by_megatron(const optimise::Problem& problem,
                                    const SimulationOptions& options,
                                    const optimise::SearchOptions& how, const Limits& limits);

/// The best order of the problem that the recipient runs right.
[[nodiscard]] Made searched_for(Recipient recipient, const optimise::Problem& problem,
                                const std::function<std::vector<optimise::Start>()>& starts,
                                const optimise::SearchOptions& how,
                                const std::function<void(const optimise::Found&)>& tell,
                                const SimulationOptions& options);

/// The best order of any placement that the recipient runs right.
[[nodiscard]] Made searched_for(Recipient recipient, optimise::Variants variants,
                                const optimise::SearchOptions& how,
                                const std::function<void(const optimise::Found&)>& tell);

/// The placement of a file's schedule for these counts; the error is the reason why it has none
/// that is searched.
[[nodiscard]] Result<optimise::Frame, std::string> placed_as(const Schedule& schedule,
                                                             const optimise::Problem& problem,
                                                             const SimulationOptions& options);

[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point began);

/// Tells of finds on standard error: of the first at once, of others once a second.
class Telling {
 public:
  using Clock = std::chrono::steady_clock;

  /// The bounds outlive it, and may become better.
  Telling(optimise::Objective objective, const optimise::LowerBounds& bounds,
          Clock::time_point began)
      : objective_(objective), bounds_(bounds), began_(began) {}

  void operator()(const optimise::Found& found);

 private:
  optimise::Objective objective_;
  const optimise::LowerBounds& bounds_;
  Clock::time_point began_;
  double next_ = 0;
};

/// Writes what shows a bound, for a program that trusts no line of capo's: what `bounds` rest on,
/// and the search of all orders, if there was one. `costs`: what the problem was made of.
[[nodiscard]] std::optional<Error> write_bound(const optimise::Problem& problem, const Costs& costs,
                                               const Optimised& of,
                                               const optimise::LowerBounds& bounds,
                                               const std::string& file);

/// Writes the order to `output` and the report to standard output; without an output, what the
/// format says to standard output. Returns the exit code.
[[nodiscard]] int print(const Optimised& optimised, OptimiseFormat format,
                        const std::string& output);

}  // namespace capo::cli

// Prints what `capo optimise` found: a report as text or JSON, and the order in any form that can
// say it.

#pragma once

#include "cli/options/choice.h"
#include "core/order/schedule.h"
#include "optimise/bounds.h"
#include "optimise/search.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::cli {

enum class OptimiseFormat { Text, Json, Order, Csv, Tokens, Te };

[[nodiscard]] const Words<OptimiseFormat>& optimise_formats();

/// A published schedule under the same costs and memory.
struct PublishedFigures {
  std::string name;
  double makespan = 0;
  double span = 0;
  double peak = 0;
  bool fits = false;
};

struct Optimised {
  Schedule schedule;
  optimise::Found found;
  optimise::LowerBounds bounds;
  std::vector<PublishedFigures> published;
  optimise::Objective objective = optimise::Objective::Makespan;
  std::optional<double> memory_limit;
  std::uint64_t seed = 1;
  double seconds = 0;
  double gap = 0;  ///< the share of the bound by which the objective exceeds it
  bool proved = false;
};

[[nodiscard]] double gap_of(double value, double bound);
[[nodiscard]] const Bound& bound_of(const optimise::LowerBounds& bounds,
                                    optimise::Objective objective);

/// Writes the order to `output` and the report to standard output; without an output, what the
/// format says to standard output. Returns the exit code.
[[nodiscard]] int print(const Optimised& optimised, OptimiseFormat format,
                        const std::string& output);

}  // namespace capo::cli

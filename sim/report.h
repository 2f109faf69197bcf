// A simulation in words (report.cpp), several side by side (comparison.cpp), both as JSON
// (report_json.cpp).
//
// Lists that can be as long as the order (idle intervals, the critical path) are cut at
// ReportOptions::most, and say how many there were. Same simulation, same bytes. Tested by
// report_test.cpp and tests/cli/simulate_test.cpp.

#pragma once

#include "sim/choice.h"
#include "sim/simulation.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo {

struct ReportOptions {
  std::size_t most = 1000;  ///< items of a list
};

/// The text ends with a newline, as that of each function here.
[[nodiscard]] std::string text_report(const Simulation& simulation);
[[nodiscard]] std::string json_report(const Simulation& simulation, const ReportOptions& options);

/// "r0c1,r1, keeping 0.1 of f".
[[nodiscard]] std::string recomputed_in_words(const Recomputed& recomputed, double keep);

/// The times of a step as a picture states them, in a line without an end.
[[nodiscard]] std::string times_in_words(const Simulation& simulation);

/// Why a picture has no times: its order cannot run, or takes no time, so that bars without a
/// length would lie upon each other. Empty if it has some.
[[nodiscard]] std::string why_untimed(
    const Result<std::unique_ptr<Simulation>, CannotSimulate>& simulation);

/// One of several simulations that are compared.
struct Named {
  std::string name;
  const Simulation* simulation = nullptr;
};

[[nodiscard]] std::vector<Choosable> choosable(const std::vector<Named>& simulations,
                                               std::optional<double> memory_limit);

struct CompareOptions {
  SortBy sort = SortBy::Given;
  std::optional<double> memory_limit;  ///< what exceeds it on a rank is not chosen
  std::size_t width = 100;             ///< characters in a line
};

/// The simulations in the order in which they are listed.
[[nodiscard]] std::vector<Named> listed(const std::vector<Named>& simulations,
                                        const CompareOptions& options);

/// A row for each figure, a column for each simulation, or the other way round where a line would
/// be longer than the width; figures that differ from the first simulation's say by how much. The
/// last row says which is best. Where the orders differ in chunks a rank, what costs are of.
[[nodiscard]] std::string text_comparison(const std::vector<Named>& simulations,
                                          const CompareOptions& options = {});
[[nodiscard]] std::string json_comparison(const std::vector<Named>& simulations,
                                          const CompareOptions& options = {});

}  // namespace capo

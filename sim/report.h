// A simulation in words and as JSON, and several side by side.
//
// Lists that can be as long as the order (idle intervals, the critical path) are cut at
// ReportOptions::most, and say how many there were. Same simulation, same bytes. Tested by
// report_test.cpp and tests/cli/simulate_test.cpp.

#pragma once

#include "sim/simulation.h"

#include <cstddef>
#include <string>
#include <vector>

namespace capo {

struct ReportOptions {
  std::size_t most = 1000;  ///< items of a list
};

/// The text ends with a newline, as that of each function here.
[[nodiscard]] std::string text_report(const Simulation& simulation);
[[nodiscard]] std::string json_report(const Simulation& simulation, const ReportOptions& options);

/// One of several simulations that are compared.
struct Named {
  std::string name;
  const Simulation* simulation = nullptr;
};

/// One row for each figure, one column for each simulation; figures that differ from the first
/// simulation's say by how much.
[[nodiscard]] std::string text_comparison(const std::vector<Named>& simulations);
[[nodiscard]] std::string json_comparison(const std::vector<Named>& simulations);

}  // namespace capo

// Choosing among simulated orders: those that keep to a memory limit before the others, the better
// ones first, the best marked.
//
// An order is better if its figure is smaller; figures that differ by rounding alone are equal, and
// several orders may be best. What does not keep to the limit stays in the list, behind the others,
// and is never the best. Tested by choice_test.cpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace capo {

/// The figure by which orders are sorted. Given: as the caller has them, best by makespan.
enum class SortBy : std::uint8_t { Given, Makespan, Span, Bubble, Peak };

/// "given", "makespan", "span", "bubble", "peak".
[[nodiscard]] std::string_view name_of(SortBy by);

/// The figures that an order is chosen by.
struct Choosable {
  double makespan = 0;
  double span = 0;
  double bubble = 0;  ///< of the makespan
  double peak = 0;
  bool fits = true;  ///< it keeps to the limit, or there is none
};

/// The positions of the orders as they are to be listed.
[[nodiscard]] std::vector<std::size_t> sorted(std::span<const Choosable> orders, SortBy by);

/// For each order whether none is better. False of all if there are fewer than two to choose from,
/// or if none fits.
[[nodiscard]] std::vector<bool> best(std::span<const Choosable> orders, SortBy by);

}  // namespace capo

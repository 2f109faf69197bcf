// Whether a sample bears out the chance that a generator's header states.
//
//   EXPECT_TRUE(is_share(reduced, of, 1.0 / 2));
//   EXPECT_TRUE(are_even(topologies, {Topology::Chain, Topology::Loop, Topology::V}));
//
// Independent draws with a chance are counted with the deviation of a binomial, and five of them
// are allowed: a generator that does as it says stays inside for all but one seed in a million,
// so that no seed has to be chosen. What a sample must tell apart is the stated chance and half of
// it, or of its opposite where that is the smaller; one that is too small for this is refused, as
// it would pass whatever it is a sample of. Tested by share_test.cpp.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace capo::testing {

[[nodiscard]] inline ::testing::AssertionResult is_share(std::size_t count, std::size_t of,
                                                         double odds) {
  const auto draws = static_cast<double>(of);
  const auto deviation = [&](double chance) { return std::sqrt(draws * chance * (1 - chance)); };
  const double allowed = 5 * deviation(odds);
  const double half = std::min(odds, 1 - odds) / 2;
  // Half the chance is to be seen even where it comes more often than on average.
  if (draws * half <= allowed + 3 * deviation(half)) {
    return ::testing::AssertionFailure()
           << of << " draws do not tell a chance of " << odds << " from half of it";
  }
  const double expected = draws * odds;
  if (std::abs(static_cast<double>(count) - expected) > allowed) {
    return ::testing::AssertionFailure()
           << count << " of " << of << ", where " << expected << " +- " << allowed << " are stated";
  }
  return ::testing::AssertionSuccess();
}

/// Whether each of `among` is drawn equally often, and nothing else.
template <typename Value>
[[nodiscard]] ::testing::AssertionResult are_even(const std::vector<Value>& drawn,
                                                  const std::vector<Value>& among) {
  std::size_t known = 0;
  for (const Value& value : among) {
    const auto count =
        static_cast<std::size_t>(std::count(drawn.begin(), drawn.end(), Value(value)));
    known += count;
    if (auto share = is_share(count, drawn.size(), 1.0 / static_cast<double>(among.size())); !share)
      return share << " of " << ::testing::PrintToString(value);
  }
  if (known == drawn.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << drawn.size() - known << " that are not stated";
}

/// The whole numbers from `low` to `high`, both included.
template <typename Number>
[[nodiscard]] std::vector<Number> numbers(Number low, Number high) {
  std::vector<Number> all;
  for (Number number = low; number <= high; ++number) all.push_back(number);
  return all;
}

/// Collects what `part` takes of each value.
template <typename Value, typename Part>
[[nodiscard]] auto parts(const std::vector<Value>& values, Part part) {
  std::vector<decltype(part(values.front()))> out;
  for (const Value& value : values) out.push_back(part(value));
  return out;
}

/// Counts the values for which `fits` is true.
template <typename Value, typename Fits>
[[nodiscard]] std::size_t count_of(const std::vector<Value>& values, Fits fits) {
  return static_cast<std::size_t>(std::count_if(values.begin(), values.end(), fits));
}

}  // namespace capo::testing

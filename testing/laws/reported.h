// Whether a fault was reported: by its rule, as an error, and at its place.
//
// A witness begins with the place, but for three kinds: a circle begins nowhere, and names the
// place anywhere; of the peak of a rank and of the first of many races only the rank is known.
// Tested by every property of faults, and by tests/testing/laws/reported_test.cpp.

#pragma once

#include "testing/edits/fault.h"
#include "testing/laws/checked.h"

#include <optional>
#include <string_view>

namespace capo::testing {

[[nodiscard]] bool reports(const Checked& verdict, std::string_view rule,
                           const std::optional<Place>& place);

template <typename Subject>
[[nodiscard]] bool reports(const Checked& verdict, const Broken<Subject>& broken) {
  return reports(verdict, broken.rule, broken.place);
}

}  // namespace capo::testing

// A fault: one way to break what was sound, and the finding that must follow.
//
//   [1, 1, -1, -1.5, -1, -1.5]   --drop-entry-->   [1, 1, -1, -1.5, -1]      S16 at index 4
//
// The subject is sound before and declares everything, so that there is one right diagnosis. The
// rules may report more than the expected finding, since one slip can break several rules; they may
// not leave it out. `choice`, any number, says which entry is broken; the result is nullopt if the
// subject has nothing to break. Tested by tests/testing/faults/fault_test.cpp; that each fault is
// reported is a property in tests/properties.

#pragma once

#include "core/diag/span.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::testing {

template <typename Subject>
struct Broken {
  Subject subject;
  std::string_view rule;       ///< the id of the rule that must report it
  std::optional<Place> place;  ///< any entry of a cycle; nullopt if there is no entry
};

template <typename Subject>
struct Fault {
  std::string_view name;                  ///< "drop-entry"
  std::array<std::string_view, 4> rules;  ///< one of these ids must report it; "" fills the end
  std::optional<Broken<Subject>> (*apply)(const Subject& sound, std::size_t choice);
};

/// Picks one of the candidates by choice; nullopt if there are none.
template <typename T>
[[nodiscard]] std::optional<T> chosen(const std::vector<T>& candidates, std::size_t choice) {
  if (candidates.empty()) return std::nullopt;
  return candidates[choice % candidates.size()];
}

}  // namespace capo::testing

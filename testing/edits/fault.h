// A fault: one way to break what was sound, and the finding that must follow.
//
//   [1, 1, -1, -1.5, -1, -1.5]   --drop-entry-->   [1, 1, -1, -1.5, -1]      S16 at index 4
//
// Its subject is sound before and declares everything, so that there is one right diagnosis. The
// rules may report more than the expected finding, where one slip breaks several; they may not
// leave it out. What a fault breaks is a matter of `choice`, any number; nothing where the subject
// has nothing to break. Tested by fault_test.cpp; that each is reported is a property in
// tests/properties.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::testing {

/// Where the finding is: the first entry of its witness; of a cycle, one of its entries.
struct FaultPlace {
  std::int32_t rank = 0;
  std::size_t index = 0;  ///< as messages count: entries of a list or order, cells of a table

  friend bool operator==(const FaultPlace&, const FaultPlace&) = default;
};

template <typename Subject>
struct Broken {
  Subject subject;
  std::string_view rule;            ///< the id of the rule that must report it
  std::optional<FaultPlace> place;  ///< nothing: a finding without entries
};

template <typename Subject>
struct Fault {
  std::string_view name;                  ///< "drop-entry"
  std::array<std::string_view, 4> rules;  ///< the ids of which one must report it; "" at the end
  std::optional<Broken<Subject>> (*apply)(const Subject& sound, std::size_t choice);
};

/// One of the candidates by choice; nothing if there are none.
template <typename T>
[[nodiscard]] std::optional<T> chosen(const std::vector<T>& candidates, std::size_t choice) {
  if (candidates.empty()) return std::nullopt;
  return candidates[choice % candidates.size()];
}

}  // namespace capo::testing

// The second opinion on what quantization leaves outside of graphs: which forwards multiply with a
// weight of the step before, and where ranks that reduce magnitudes together part.
//
//   replayed F1.1 F1.0 F1.2     the weight of chunk 1 is made anew by F1.0: F1.1 has an old one
//   magnitudes F B B, F F B B   the second reductions are of different passes
//
// It plays the replay with a version of each chunk's weight, and lays sequences side by side. It
// shares no code with the product and includes only the standard library. Tested by
// tests/testing/oracle/quantized_test.cpp; that the product agrees is a property, in
// tests/properties/quantization_test.cpp.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace capo::oracle {

/// A forward of a step whose chunks keep a quantized weight each, in the order of replay.
struct KeptForward {
  int chunk = 0;
  int microbatch = 0;
};

/// The places of forwards that read a weight of the step before, of chunks whose weight is made
/// anew at all: by their microbatch 0.
[[nodiscard]] std::vector<int> stale_forwards(const std::vector<KeptForward>& replayed);

/// Passes behind which each member of a group reduces magnitudes, a letter each. The first that
/// some member does not share with the first member, counted from 0; nullopt if all are alike.
[[nodiscard]] std::optional<int> parting_of_magnitudes(const std::vector<std::string>& members);

}  // namespace capo::oracle

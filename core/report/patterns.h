// Findings that say the same of many places, put together: a production-sized order can break one
// rule in one way two thousand times.
//
//   the send of `B1` at index 82 of rank 3 reads the grad input of chunk 1, microbatch 4
//   the send of `B2` at index 80 of rank 3 reads the grad input of chunk 2, microbatch 4
//     ->  the send of `B1..2` at index 80..82 of rank 3 reads the grad input of chunk 1..2,
//     microbatch 4
//
// Two findings have one pattern if their rule and severity are the same and their messages differ
// in numbers alone. The pattern's words have a range where the numbers differ. Only the text report
// groups; JSON and SARIF list every finding that was kept. Tested by patterns_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"

#include <string>
#include <vector>

namespace capo {

struct Pattern {
  std::vector<const Diagnostic*> findings;  ///< in their order; at least one
  std::string words;                        ///< the message, with ranges
};

/// The patterns of findings, in the order of the first finding of each. The findings outlive them.
[[nodiscard]] std::vector<Pattern> patterns_of(const std::vector<Diagnostic>& findings);

}  // namespace capo

// The second opinion on written waits: which of them find something pending, and what is left.
//
//   Begin Wait Wait Begin     the second wait finds nothing, and the second begin is left
//
// It looks at one thing that can be begun and waited for, such as the reduction of one chunk. Every
// step is judged by counting those before it or behind it. It shares no code with the product and
// includes only the standard library. Tested by tests/testing/oracle/waits_test.cpp; that the
// product agrees is enumerated in tests/core/enumeration/waits_test.cpp.

#pragma once

#include <cstddef>
#include <vector>

namespace capo::oracle {

enum class OfWaits { Other, Begin, Wait };

/// The waits for which nothing is pending.
[[nodiscard]] std::vector<std::size_t> waits_for_nothing(const std::vector<OfWaits>& steps);

/// The number of those begun that no wait is left for.
[[nodiscard]] std::size_t left_pending(const std::vector<OfWaits>& steps);

}  // namespace capo::oracle

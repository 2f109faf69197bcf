// The second opinion on exchanges of tokens: whether each travels while nobody needs the tokens.
//
//   Forward DispatchForward Backward CombineForward     the last one comes too late
//
// Every exchange is looked at by itself, by what stands before it. It shares no code with the
// product and includes only the standard library. Tested by
// tests/testing/oracle/exchanges_test.cpp; that the product agrees is enumerated in
// tests/core/enumeration/exchanges_test.cpp and a property in tests/properties/exchanges_test.cpp.

#pragma once

#include <cstddef>
#include <vector>

namespace capo::oracle {

/// One microbatch of a chunk takes these steps: its computations, and the exchanges of its forward
/// and backward.
enum class OfTokens {
  Forward,
  Backward,
  DispatchForward,
  CombineForward,
  DispatchBackward,
  CombineBackward,
};

/// The exchanges that are out of their place.
[[nodiscard]] std::vector<std::size_t> exchanged_out_of_place(const std::vector<OfTokens>& steps);

}  // namespace capo::oracle

// The passes of a microbatch through a rank of a V, with the neighbour that each comes from and
// goes to.
//
//            Forward1   Backward2   goes from rank 0 to the last rank
//            Forward2   Backward1   comes back: chunk 1 is the way down, chunk 2 the way up
//
// A generator on a V thinks in slots of equal length; the k-th of a pass on a rank is that of
// microbatch k.

#pragma once

#include "core/base/index.h"
#include "schedules/orders.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace capo::schedules {

/// A microbatch goes through the passes in this order. `Nothing` is an empty slot.
enum class Pass : std::uint8_t {
  Forward1,
  Forward2,
  Backward2,  ///< Backward2 and Backward1 are input halves
  Backward1,
  Weight2,
  Weight1,
  Nothing,
};
inline constexpr std::size_t kPasses = 6;
/// A building block has one slot for each pass.
inline constexpr std::size_t kPeriod = kPasses;
/// A microbatch waits for these passes; weight halves go where there is room.
inline constexpr std::array kChain = {Pass::Forward1, Pass::Forward2, Pass::Backward2,
                                      Pass::Backward1};

[[nodiscard]] constexpr bool is_forward(Pass pass) {
  return pass == Pass::Forward1 || pass == Pass::Forward2;
}
[[nodiscard]] constexpr bool is_backward(Pass pass) {
  return pass == Pass::Backward2 || pass == Pass::Backward1;
}
[[nodiscard]] constexpr bool is_weight(Pass pass) {
  return pass == Pass::Weight2 || pass == Pass::Weight1;
}
[[nodiscard]] constexpr bool goes_down(Pass pass) {
  return pass == Pass::Forward1 || pass == Pass::Backward2;
}
[[nodiscard]] constexpr bool comes_up(Pass pass) {
  return pass == Pass::Forward2 || pass == Pass::Backward1;
}
[[nodiscard]] constexpr std::int32_t chunk_of(Pass pass) {
  return pass == Pass::Forward1 || pass == Pass::Backward1 || pass == Pass::Weight1 ? 1 : 2;
}

/// The number of chunks that a pass adds to its rank's memory, which holds them from the forward to
/// the weight half.
[[nodiscard]] constexpr std::int64_t held_by(Pass pass) {
  return is_forward(pass) ? 1 : is_weight(pass) ? -1 : 0;
}

/// The pass of the same microbatch and rank that comes before, at the end of the V or for a weight
/// half. Forward1 has none.
[[nodiscard]] constexpr Pass local_input(Pass pass) {
  switch (pass) {
    case Pass::Forward2:
      return Pass::Forward1;
    case Pass::Backward2:
      return Pass::Forward2;
    case Pass::Backward1:
    case Pass::Weight2:
      return Pass::Backward2;
    case Pass::Weight1:
      return Pass::Backward1;
    case Pass::Forward1:
    case Pass::Nothing:
      break;
  }
  return Pass::Nothing;
}

/// Whether a microbatch turns: its chunk before this one is on the same rank.
[[nodiscard]] constexpr bool turns_at(std::size_t rank, std::size_t ranks, Pass pass) {
  return (comes_up(pass) && rank + 1 == ranks) || (pass == Pass::Backward2 && rank == 0);
}

[[nodiscard]] constexpr Move move_of(Pass pass, std::size_t microbatch) {
  const Kind kind = is_forward(pass)    ? Kind::Forward
                    : is_backward(pass) ? Kind::BackwardInput
                                        : Kind::BackwardWeight;
  return {
      .kind = kind, .chunk = chunk_of(pass), .microbatch = static_cast<std::int32_t>(microbatch)};
}

}  // namespace capo::schedules

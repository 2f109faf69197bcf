// read_te_entry() tells which action an entry of a TE list stands for.
//
//   2 -> F of chunk 2      -1.5 -> W of chunk 1      0, 1.5, NaN -> no action
//
// It is inline and goes by twice the number, which is whole for every entry, without a branch or a
// detour through memory that depends on the kind: judging lists by the million spends most of its
// time here. Microbatches are counted by from_te_list.h. Tested by from_te_list_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>

namespace capo {

/// Reads a number so large that an id of its size does not fit; the id is cut, since no list is so
/// long that a chunk of that number could be known.
[[nodiscard]] Action read_large_te_entry(const TeEntry& entry);

/// The action has no microbatch; it is idle for NaN, 0, -0.5, 1.5, -1.25, and the float-typed 1.0.
[[nodiscard]] inline Action read_te_entry(const TeEntry& entry) {
  constexpr double kMostHalves = 2147483646;
  const double twice = entry.value * 2;
  if (!(twice <= kMostHalves && twice >= -kMostHalves)) return read_large_te_entry(entry);
  const auto halves = static_cast<std::int32_t>(twice);
  const std::int32_t size = halves < 0 ? -halves : halves;
  const std::int32_t chunk = size / 2;
  const int half = size % 2;
  const int negative = halves < 0 ? 1 : 0;
  const bool whole_float = half == 0 && entry.type == NumberType::Float;
  const bool positive_half = half > negative;
  if ((halves != twice) | (chunk == 0) | whole_float | positive_half) return {};
  static_assert(static_cast<int>(Kind::Backward) == static_cast<int>(Kind::Forward) + 1);
  static_assert(static_cast<int>(Kind::BackwardWeight) == static_cast<int>(Kind::Forward) + 3);
  return {.kind = static_cast<Kind>(negative + 2 * half), .chunk = chunk};
}

}  // namespace capo

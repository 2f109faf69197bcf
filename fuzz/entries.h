// An entry of a TE list for each byte: a to c are forwards of chunks 1 to 3, A to C their
// backwards, x to z their weight gradients, and any other byte some number that is none of these.

#pragma once

#include "core/order/te_list.h"

#include <array>
#include <cstddef>
#include <limits>

namespace capo::fuzz {

inline constexpr std::array<TeEntry, 16> kOdd{{
    {.value = 0},
    {.value = -0.0, .type = NumberType::Float},
    {.value = 1.0, .type = NumberType::Float},
    {.value = -1.0, .type = NumberType::Float},
    {.value = -2.0, .type = NumberType::Float},
    {.value = -1.25, .type = NumberType::Float},
    {.value = -0.5, .type = NumberType::Float},
    {.value = 0.5, .type = NumberType::Float},
    {.value = 1.5, .type = NumberType::Float},
    {.value = std::numeric_limits<double>::quiet_NaN(), .type = NumberType::Float},
    {.value = std::numeric_limits<double>::infinity(), .type = NumberType::Float},
    {.value = 4},
    {.value = -4},
    {.value = -4.5, .type = NumberType::Float},
    {.value = 1e300},
    {.value = -1e300},
}};

/// `byte` as Bytes::below(256) gives it.
[[nodiscard]] inline TeEntry entry_of(std::size_t byte) {
  constexpr std::size_t kBase = '0';  // counted as Bytes counts
  const std::size_t c = (byte + kBase) % 256;
  if (c >= 'a' && c <= 'c') return {.value = static_cast<double>(c - 'a' + 1)};
  if (c >= 'A' && c <= 'C') return {.value = -static_cast<double>(c - 'A' + 1)};
  if (c >= 'x' && c <= 'z') {
    return {.value = -static_cast<double>(c - 'x' + 1) - 0.5, .type = NumberType::Float};
  }
  return kOdd[byte % kOdd.size()];
}

}  // namespace capo::fuzz

// NoOrder says why there is no order: one of Megatron-LM's functions raises, or the order would be
// larger than capo is willing to make.
//
//   {"get_schedule_table", "group size 0", "ValueError: range() arg 3 must not be zero"}
//
// Megatron's functions check little. Input that they are not made for either raises somewhere
// inside, in Python's own words, or gives a wrong order in silence; the first is a Raised, the
// second is given as it is. Tested by orders_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/text/limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace capo::megatron {

struct Raised {
  std::string function;   ///< Megatron's name: "get_schedule_table"
  std::string place;      ///< the part of its input: "group size 0", "index 3 of the chunk order"
  std::string exception;  ///< "ValueError: range() arg 3 must not be zero"

  friend bool operator==(const Raised&, const Raised&) = default;
};

/// The Error is of kind Limit.
using NoOrder = std::variant<Raised, Error>;

template <typename T>
using Made = Result<T, NoOrder>;

/// The reason why a number of this size is refused; nullopt if it is within limits.counts.
/// Within them, products of two numbers fit 64 bits.
[[nodiscard]] std::optional<Error> beyond(std::string_view what, std::int64_t number,
                                          const Limits& limits);

/// The orders would have more entries than limits.entries.
[[nodiscard]] Error too_many_entries(const Limits& limits);

}  // namespace capo::megatron

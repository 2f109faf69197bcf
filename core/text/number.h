// One Python number: `-1.5`, `2`, `1.0`, `nan`.
//
// Python tells `1` from `1.0` (an int indexes a list, a float does not), so the type is part of
// what is read. Refused, as Python refuses them: `01`, `1_000`'s cousins `1__0`, `0x1f`, `1.5.2`.
// Tested by number_test.cpp.

#pragma once

#include "core/order/te_list.h"

#include <optional>
#include <string>
#include <string_view>

namespace capo {

struct Number {
  double value = 0;
  NumberType type = NumberType::Integer;
};

[[nodiscard]] std::optional<Number> read_number(std::string_view token);

/// The shortest text that reads back as the same number: "-1.5", "1.0", "3", "nan".
[[nodiscard]] std::string to_text(const Number& number);

}  // namespace capo

// Numbers in texts: one Python number, `-1.5`, `2`, `1.0`, `nan`, and amounts of bytes for people.
//
// Python tells `1` from `1.0` (an int indexes a list, a float does not), so the type is part of
// what is read. `01`, `1__0`, `0x1f` and `1.5.2` are refused, as Python refuses them.
// Tested by number_test.cpp.

#pragma once

#include "core/order/te_list.h"

#include <cstdint>
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

/// Bytes as a person reads them, in the largest binary unit of which there is at least one, to two
/// decimals: "1.25 GiB", "512 B". Machines are given the number itself.
[[nodiscard]] std::string byte_words(std::int64_t bytes);

}  // namespace capo

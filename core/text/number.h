// Numbers in texts: one Python number, `-1.5`, `2`, `1.0`, `nan`, amounts of bytes as people write
// and read them, `80GiB`, and numbers by name, `f=12,b=13`.
//
// Python tells `1` from `1.0` (an int indexes a list, a float does not), so the type is part of
// what is read. `01`, `1__0`, `0x1f` and `1.5.2` are refused, as Python refuses them.
// Tested by number_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

struct Number {
  double value = 0;
  NumberType type = NumberType::Integer;
};

[[nodiscard]] std::optional<Number> read_number(std::string_view token);

/// The shortest text that reads back as the same number: "-1.5", "1.0", "3", "nan".
[[nodiscard]] std::string to_text(const Number& number);

/// Reads "80GiB", "1.5GiB" or "512MB" as bytes, rounded down: a number and one of B, KiB, MiB, GiB,
/// TiB, kB, MB and GB. The error says what is wrong with the text.
[[nodiscard]] Result<std::int64_t, std::string> read_size(std::string_view text);

/// Bytes as a person reads them, in the largest binary unit of which there is at least one, to two
/// decimals: "1.25 GiB", "512 B". Machines are given the number itself.
[[nodiscard]] std::string byte_words(std::int64_t bytes);

/// One of a list such as "f=12,b=13".
struct NamedNumber {
  std::string_view item;        ///< "f=12"
  std::string_view name;        ///< "f", or the whole item if it has no `=`
  std::optional<double> value;  ///< nullopt: what stands behind `=` is no number
};

/// A list always has an item, and an empty one between two commas.
[[nodiscard]] std::vector<NamedNumber> named_numbers(std::string_view list);

}  // namespace capo

// The type of numbers in a tensor between modules, and in what products read unless a recipe
// (recipe.h) quantizes it. Tested by tests/core/text/model_reader_test.cpp.

#pragma once

#include <cstdint>
#include <string_view>

namespace capo {

enum class DataType : std::uint8_t { Bf16, Fp16, Fp32 };

/// "bf16", "fp16", "fp32".
[[nodiscard]] std::string_view name_of(DataType type);

/// Bytes of an element.
[[nodiscard]] constexpr std::int64_t element_bytes(DataType type) {
  return type == DataType::Fp32 ? 4 : 2;
}

}  // namespace capo

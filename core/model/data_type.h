// The type of numbers that a product reads. Tested by tests/core/text/model_reader_test.cpp.

#pragma once

#include <cstdint>
#include <string_view>

namespace capo {

/// The type of the operands that a module's products read; with Fp8 they are quantized copies, and
/// tensors between modules are bf16.
enum class DataType : std::uint8_t { Bf16, Fp16, Fp32, Fp8 };

/// "bf16", "fp16", "fp32", "fp8".
[[nodiscard]] std::string_view name_of(DataType type);

/// Bytes of an element of a tensor between modules.
[[nodiscard]] constexpr std::int64_t element_bytes(DataType type) {
  return type == DataType::Fp32 ? 4 : 2;
}

/// Bytes of an element of what a product reads.
[[nodiscard]] constexpr std::int64_t operand_bytes(DataType type) {
  return type == DataType::Fp8 ? 1 : element_bytes(type);
}

}  // namespace capo

#include "run/setup/stored.h"

#include "core/base/assert.h"
#include "run/kernels/numbers.h"

#include <cstring>

namespace capo::run {

namespace {

template <typename T>
std::vector<std::byte> stored_as(std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = round_to<T>(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<float> read_as(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    values[i] = to_float(value);
  }
  return values;
}

}  // namespace

std::vector<std::byte> to_stored(std::span<const float> values, DataType type) {
  CAPO_ASSERT(type != DataType::Fp8, "nothing is stored as fp8");
  if (type == DataType::Bf16) return stored_as<Bf16>(values);
  return type == DataType::Fp16 ? stored_as<Fp16>(values) : stored_as<float>(values);
}

std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type) {
  CAPO_ASSERT(type != DataType::Fp8, "nothing is stored as fp8");
  if (type == DataType::Bf16) return read_as<Bf16>(bytes);
  return type == DataType::Fp16 ? read_as<Fp16>(bytes) : read_as<float>(bytes);
}

}  // namespace capo::run

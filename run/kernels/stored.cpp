#include "run/kernels/stored.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "run/kernels/numbers.h"

#include <cstring>
#include <limits>

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

// The numbers of a slice as they are stored; those behind what is drawn stay as they are.
template <typename T>
void fill(std::vector<float>& values, const Drawing& from, const Slice& some) {
  // A drawing of its own, which no write to `values` can change: its seed is mixed once.
  const Drawing numbers = from;
  std::int64_t at = some.first;
  for (float& value : values) {
    if (at >= numbers.drawn) return;
    value = to_float(round_to<T>(numbers.at(at)));
    at += some.step;
  }
}

}  // namespace

std::vector<float> values_of(const DrawnTensor& tensor) {
  return values_of(tensor, {.count = tensor.count});
}

std::vector<float> values_of(const DrawnTensor& tensor, const Slice& some) {
  std::vector<float> values(as_index(some.count), std::numeric_limits<float>::quiet_NaN());
  if (some.count == 0) return values;
  const std::int64_t last = some.first + (some.count - 1) * some.step;
  CAPO_ASSERT(some.first >= 0 && last < tensor.count, "a slice lies within its tensor");
  const auto fill_as = tensor.type == DataType::Bf16   ? fill<Bf16>
                       : tensor.type == DataType::Fp16 ? fill<Fp16>
                                                       : fill<float>;
  fill_as(values, tensor.numbers, some);
  return values;
}

std::vector<std::byte> to_stored(std::span<const float> values, DataType type) {
  if (type == DataType::Bf16) return stored_as<Bf16>(values);
  return type == DataType::Fp16 ? stored_as<Fp16>(values) : stored_as<float>(values);
}

std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type) {
  if (type == DataType::Bf16) return read_as<Bf16>(bytes);
  return type == DataType::Fp16 ? read_as<Fp16>(bytes) : read_as<float>(bytes);
}

}  // namespace capo::run

// Memory for tests of the host's kernels: a tensor of any DataType that is filled from and read as
// doubles, and the two ways to look at one after a call: within a tolerance of what a test computed
// in double, or to the byte.
//
// Expectations are rounded with numbers.h, as the last thing, where call.h rounds; numbers_test.cpp
// tests that alone.

#pragma once

#include "run/host/host_engine.h"
#include "run/kernels/numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

namespace capo::run::host {

inline constexpr std::array kTypes{DataType::Bf16, DataType::Fp16, DataType::Fp32};

using Values = std::vector<double>;

class Tensor {
 public:
  Tensor(DataType type, const Values& values)
      : type_(type), bytes_(values.size() * static_cast<std::size_t>(element_bytes())) {
    for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
  }

  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] std::int64_t element_bytes() const { return type_ == DataType::Fp32 ? 4 : 2; }
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>(bytes_.size()) / element_bytes();
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  [[nodiscard]] void* data() { return bytes_.data(); }
  [[nodiscard]] const void* data() const { return bytes_.data(); }
  [[nodiscard]] void* at(std::int64_t element) { return bytes_.data() + element * element_bytes(); }
  [[nodiscard]] double value(std::int64_t element) const {
    const std::byte* from = bytes_.data() + element * element_bytes();
    if (type_ == DataType::Bf16) return double{to_float(read<Bf16>(from))};
    if (type_ == DataType::Fp16) return double{to_float(read<Fp16>(from))};
    return double{read<float>(from)};
  }
  [[nodiscard]] Values values() const {
    Values values;
    for (std::int64_t i = 0; i < count(); ++i) values.push_back(value(i));
    return values;
  }

  void set(std::int64_t element, double value) {
    const auto number = static_cast<float>(value);
    if (type_ == DataType::Bf16) return write(element, round_to<Bf16>(number));
    if (type_ == DataType::Fp16) return write(element, round_to<Fp16>(number));
    write(element, number);
  }
  /// NaN from an element on: what no kernel may read.
  void spoil_from(std::int64_t element) {
    for (; element < count(); ++element) set(element, std::numeric_limits<double>::quiet_NaN());
  }

 private:
  template <typename T>
  [[nodiscard]] static T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <typename T>
  void write(std::int64_t element, T value) {
    std::memcpy(at(element), &value, sizeof value);
  }

  DataType type_;
  std::vector<std::byte> bytes_;
};

/// Between -1 and 1; the same for a seed on every machine.
[[nodiscard]] inline Tensor at_random(DataType type, std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(random()) / 2147483648.0 - 1);
  }
  return {type, values};
}

/// Relative to the expectation, over all elements together; by the type that is written.
[[nodiscard]] inline double tolerance(DataType type) {
  return type == DataType::Fp32 ? 1e-5 : 5e-3;
}

[[nodiscard]] inline double distance(const Values& got, const Values& expected) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(error / std::max(size, 1e-30));
}

/// The first elements as expected, all others as they were.
inline void expect_near(const Tensor& got, const Tensor& before, const Values& expected) {
  ASSERT_LE(expected.size(), got.values().size());
  const Values rounded = Tensor(got.type(), expected).values();
  EXPECT_LE(distance(got.values(), rounded), tolerance(got.type()));
  const auto tail = static_cast<std::ptrdiff_t>(expected.size()) * got.element_bytes();
  EXPECT_TRUE(std::equal(got.bytes().begin() + tail, got.bytes().end(),
                         before.bytes().begin() + tail, before.bytes().end()))
      << "behind the rows in use";
}

/// Executes the call; then once more on what the tensors held before: the bytes must be the same.
inline void execute_twice(const Call& call,
                          std::initializer_list<std::reference_wrapper<Tensor>> written) {
  const std::vector<Tensor> before(written.begin(), written.end());
  execute(call);
  std::vector<std::vector<std::byte>> first;
  for (const Tensor& tensor : written) first.push_back(tensor.bytes());
  std::size_t at = 0;
  for (Tensor& tensor : written) tensor = before[at++];
  execute(call);
  at = 0;
  for (const Tensor& tensor : written) EXPECT_EQ(tensor.bytes(), first[at++]) << "on a second run";
}

/// How fast f changes with values[at], by a difference in double: needs no formula of a gradient.
[[nodiscard]] inline double slope(const std::function<double(const Values&)>& f, Values values,
                                  std::size_t at) {
  constexpr double kStep = 1e-5;
  values[at] += kStep;
  const double above = f(values);
  values[at] -= 2 * kStep;
  return (above - f(values)) / (2 * kStep);
}

}  // namespace capo::run::host

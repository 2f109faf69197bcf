// Tensors as they are drawn, and as memory holds them.
//
// A draw is decided by a seed and a place and by nothing else (draw.h), so that eager execution,
// every replay and the float64 reference are given the same numbers on every machine, in whatever
// order they are asked for. Engines draw tensors where they lie; the reference draws them again.
//
// Tested by stored_test.cpp.

#pragma once

#include "core/model/model.h"
#include "run/kernels/draw.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace capo::run {

/// A tensor that is drawn: what is in it, before anybody has drawn it.
struct DrawnTensor {
  DataType type = DataType::Bf16;
  std::int64_t count = 0;  ///< elements
  Drawing numbers;
};
/// Its numbers as they are stored, as floats.
[[nodiscard]] std::vector<float> values_of(const DrawnTensor& tensor);
/// Some of them: `count`, from the index `first` on, `step` apart.
struct Slice {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
};
[[nodiscard]] std::vector<float> values_of(const DrawnTensor& tensor, const Slice& some);

/// The bytes of the numbers, rounded to nearest even.
[[nodiscard]] std::vector<std::byte> to_stored(std::span<const float> values, DataType type);
[[nodiscard]] std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type);

}  // namespace capo::run

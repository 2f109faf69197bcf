// The numbers of a run: how they are drawn, how many rows each group gets, and how an engine stores
// them.
//
// A draw is decided by a seed and a place and by nothing else (run/kernels/draw.h), so that eager
// execution, every replay and the float64 reference are given the same numbers on every machine, in
// whatever order they are asked for. Engines draw tensors where they lie; the reference draws them
// again.
//
// Sizes of groups, one list for each microbatch of a replay:
//
//   balanced  as even as the rows allow
//   zipf      the k-th group of a shuffled list in proportion to 1/k, an eighth of the groups empty
//   random    every row to a group of its own choice; any group may stay empty
//
// Tested by values_test.cpp.

#pragma once

#include "core/model/model.h"
#include "run/kernels/draw.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace capo::run {

enum class SizeKind : std::uint8_t { Balanced, Zipf, Random };

[[nodiscard]] std::string_view name_of(SizeKind kind);
[[nodiscard]] std::optional<SizeKind> size_kind_named(std::string_view word);

/// One size a group, none negative. Their sum is `rows`, which may be less than the tokens.
[[nodiscard]] std::vector<std::int64_t> group_sizes(SizeKind kind, std::int64_t groups,
                                                    std::int64_t rows, const Draw& draw);

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

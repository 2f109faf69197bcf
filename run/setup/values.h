// The numbers of a run: how they are drawn, how many rows each group gets, and how an engine stores
// them.
//
// A draw is decided by a seed and a place and by nothing else, so that eager execution, every
// replay and the float64 reference are given the same numbers on every machine, in whatever order
// they are asked for. It mixes (seed, stream, index) with the finaliser of splitmix64 (Steele, Lea,
// Flood 2014).
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace capo::run {

struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< says what is drawn: each tensor of each step has its own

  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const {
    return mixed(mixed(mixed(seed + kStep) ^ (stream + kStep)) ^ (index + kStep));
  }
  /// A multiple of 2^-24 in [0, 1).
  [[nodiscard]] constexpr double unit(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 40) * 0x1p-24;
  }
  /// A number in [-1, 1).
  [[nodiscard]] constexpr double around_zero(std::uint64_t index) const {
    return 2 * unit(index) - 1;
  }
  /// A whole number in [0, count), for a count from 1 to 2^32.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index, std::uint64_t count) const {
    return ((bits(index) >> 32) * count) >> 32;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
};

enum class SizeKind : std::uint8_t { Balanced, Zipf, Random };

[[nodiscard]] std::string_view name_of(SizeKind kind);
[[nodiscard]] std::optional<SizeKind> size_kind_named(std::string_view word);

/// One size a group, none negative. Their sum is `rows`, which may be less than the tokens.
[[nodiscard]] std::vector<std::int64_t> group_sizes(SizeKind kind, std::int64_t groups,
                                                    std::int64_t rows, const Draw& draw);

/// The bytes of the numbers, rounded to nearest even. Nothing is stored as Fp8.
[[nodiscard]] std::vector<std::byte> to_stored(std::span<const float> values, DataType type);
[[nodiscard]] std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type);

}  // namespace capo::run

// The sizes of groups: how many rows each group gets, one list for each microbatch of a replay.
//
//   balanced  as even as the rows allow
//   zipf      the k-th group of a shuffled list in proportion to 1/k, an eighth of the groups empty
//   random    every row to a group of its own choice; any group may stay empty
//
// Tested by group_sizes_test.cpp.

#pragma once

#include "run/kernels/draw.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::run {

enum class SizeKind : std::uint8_t { Balanced, Zipf, Random };

[[nodiscard]] std::string_view name_of(SizeKind kind);
[[nodiscard]] std::optional<SizeKind> size_kind_named(std::string_view word);

/// One size a group, none negative. Their sum is `rows`, which may be less than the tokens.
[[nodiscard]] std::vector<std::int64_t> group_sizes(SizeKind kind, std::int64_t groups,
                                                    std::int64_t rows, const Draw& draw);

}  // namespace capo::run

// How many rows each group of a layer gets in one microbatch of one replay.
//
//   balanced  as even as the rows allow
//   zipf      the k-th group of a shuffled list in proportion to 1/k, an eighth of the groups empty
//   random    every row to a group of its own choice; any group may stay empty
//
// Their sum is what the caller says: up to the tokens, so that rows beyond it are there.
// Tested by tests/run/setup/group_sizes_test.cpp.

#pragma once

#include "run/setup/draw.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::run {

enum class SizeKind : std::uint8_t { Balanced, Zipf, Random };

[[nodiscard]] std::string_view name_of(SizeKind kind);
[[nodiscard]] std::optional<SizeKind> size_kind_named(std::string_view word);

/// Never negative, one a group, `rows` in all.
[[nodiscard]] std::vector<std::int64_t> group_sizes(SizeKind kind, std::int64_t groups,
                                                    std::int64_t rows, const Draw& draw);

}  // namespace capo::run

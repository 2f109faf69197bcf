// Limits on the size of an input. Beyond one there is no verdict (exit code 4), and never a guess.
// Each limit is a flag of the command line; tests/cli/limits_test.cpp stands on both sides of each.

#pragma once

#include <cstdint>

namespace capo {

struct Limits {
  std::uint64_t bytes = std::uint64_t{256} << 20;  ///< in one input; spans allow 4 GiB - 1
  std::uint64_t entries = std::uint64_t{1} << 24;  ///< actions and idle slots of all ranks
  std::uint64_t ranks = 65'536;
  std::uint64_t counts = std::uint64_t{1} << 22;  ///< chunks, stages, layers or microbatches
  std::uint64_t depth = 64;                       ///< levels of nested JSON
};

}  // namespace capo

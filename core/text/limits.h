// How much input capo is willing to look at. Beyond a limit there is no verdict (exit code 4),
// never a guess; each limit is a flag of the command line, and a test stands on both sides of each.

#pragma once

#include <cstdint>

namespace capo {

struct Limits {
  std::uint64_t bytes = std::uint64_t{256} << 20;  ///< of one input; at most 4 GiB - 1 (spans)
  std::uint64_t entries = std::uint64_t{1} << 24;  ///< actions and idle slots over all ranks
  std::uint64_t ranks = 65'536;
  std::uint64_t counts = std::uint64_t{1} << 22;  ///< of chunks, stages, layers or microbatches
  std::uint64_t depth = 64;                       ///< of nested JSON
};

}  // namespace capo

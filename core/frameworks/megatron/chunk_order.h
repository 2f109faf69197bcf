// Megatron-LM's order of one rank, chunk by chunk: N forwards, then pairs of a forward and a
// backward, then the backwards that are left.
//
//   PP 2, VP 2, group size 3, 5 microbatches, rank 0:   N = 5
//   table    0.0 1.0 2.0 0.1 1.1 2.1 3.0 4.0 3.1 4.1      microbatch.chunk, both from 0
//   order    1 1 1 2 2 | 2 -2 1 -2 1 -2 2 -1 2 -1 | -1 -2 -2 -1 -1
//
// Microbatches go in groups; inside a group all of the first chunk come first. Backwards follow the
// same table with the chunks reversed, so that each chunk is first in, first out.
//
// Three of Megatron's functions are here, each with its name and its own mistakes: none of them
// asks whether a pipeline could run its input. core/frameworks/megatron/mcore.h says what the
// runtime refuses. They are read at the commit in version.h. Tested by orders_test.cpp against the
// functions themselves.

#pragma once

#include "core/frameworks/megatron/mcore.h"
#include "core/frameworks/megatron/no_order.h"

#include <cstdint>
#include <vector>

namespace capo::megatron {

/// Whether get_pp_rank_microbatches is told of the overlap of expert parallel communication. The
/// code that captures graphs never tells it; the runtime does, and runs one more forward first.
enum class OverlapFlag { Untold, Told };

/// get_pp_rank_microbatches: forwards of one rank, counted over all its chunks.
struct ForwardCounts {
  std::int64_t total = 0;
  std::int64_t warmup = 0;     ///< N, at most `total`; negative for a rank beyond the pipeline
  std::int64_t remaining = 0;  ///< total - warmup
  bool all_in_warmup = false;

  friend bool operator==(const ForwardCounts&, const ForwardCounts&) = default;
};
[[nodiscard]] Made<ForwardCounts> forward_counts(const mcore::Configuration& configuration,
                                                 std::int64_t rank, OverlapFlag flag,
                                                 const Limits& limits = {});

/// A forward of the program, both counted from 0.
struct TableEntry {
  std::int64_t microbatch = 0;
  std::int64_t chunk = 0;

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

/// get_schedule_table. Without a microbatch or a chunk, or with a negative group size, the table is
/// empty and nothing is raised; a group size of 0 raises.
[[nodiscard]] Made<std::vector<TableEntry>> schedule_table(std::int64_t microbatches,
                                                           std::int64_t chunks,
                                                           std::int64_t group_size,
                                                           const Limits& limits = {});

/// convert_schedule_table_to_order: +c is the forward, -c the backward of chunk c, from 1. An empty
/// table raises, and so does a negative warm-up; one beyond the table is all of it.
[[nodiscard]] Made<std::vector<std::int64_t>> chunk_order(std::int64_t warmup, std::int64_t chunks,
                                                          const std::vector<TableEntry>& table,
                                                          const Limits& limits = {});

/// The chunks that a rank holds.
[[nodiscard]] inline std::int64_t chunks_of(const mcore::Configuration& configuration) {
  return configuration.virtual_stages.value_or(1);
}

}  // namespace capo::megatron

// from_te_list() reads a TE list as a schedule: the k-th entry of a kind for a chunk is microbatch
// k.
//
//   [1, 1, -1, -1.5]   ->   F1.0 F1.1 B1.0 W1.0
//
// Entries that are no action (NaN, 0, 1.5, -1.25, the float-typed 1.0) are left out and listed as
// odd. The declarations say the number of chunks; without any it is the largest id, but an id
// larger than the list is long counts as unknown, since its fellows cannot all occur. Text is read
// by list_reader.h. Tested by from_te_list_test.cpp.

#pragma once

#include "core/frameworks/te/read_entry.h"
#include "core/order/layers.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace capo {

/// Chunks that delay their weight gradient, declared without the number of chunks.
struct DelayedChunks {
  bool all = false;
  std::vector<std::int32_t> chunks;
};

/// Declarations of a user about a TE list.
struct TeDeclarations {
  Layers layers;
  std::optional<DelayedChunks> delayed;         ///< read only if need_wgrad is nullopt
  std::optional<std::vector<bool>> need_wgrad;  ///< by chunk, whether it delays its weight gradient
  std::optional<std::int32_t> microbatches;
};

struct TeReading {
  Schedule schedule;
  std::vector<std::uint32_t> odd_entries;
};

/// Reads list after list under the same declarations.
class TeListReader {
 public:
  explicit TeListReader(TeDeclarations declarations);

  /// `memory` is an earlier reading, whose storage is used again.
  [[nodiscard]] TeReading read(std::span<const TeEntry> list, TeReading memory = {});

 private:
  void number(RankOrder& rank);

  TeDeclarations declarations_;
  std::vector<std::int32_t> next_;  // microbatch, by chunk and kind
};

[[nodiscard]] TeReading from_te_list(const TeList& list, const TeDeclarations& declarations);

}  // namespace capo

// from_te_list() reads a TE list as a schedule: the k-th entry of a kind for a chunk is microbatch
// k.
//
//   [1, 1, -1, -1.5]   ->   F1.0 F1.1 B1.0 W1.0
//
// Entries that are no action (NaN, 0, 1.5, -1.25, the float-typed 1.0) are left out and listed as
// odd. The declarations say the number of chunks; without any it is the largest id, but an id
// larger than the list is long counts as unknown, since its fellows cannot all occur. Text is read
// by list_text.h. Tested by from_te_list_test.cpp.

#pragma once

#include "core/order/input.h"
#include "core/order/layers.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace capo {

/// Reads a number so large that an id of its size does not fit; the id is cut, since no list is so
/// long that a chunk of that number could be known.
[[nodiscard]] Action read_large_te_entry(const TeEntry& entry);

/// The action of an entry, without a microbatch; idle for NaN, 0, -0.5, 1.5, -1.25, and the
/// float-typed 1.0. It goes by twice the number, which is whole for every entry, without a branch
/// or a detour through memory that depends on the kind: judging lists by the million spends most of
/// its time here.
[[nodiscard]] inline Action read_te_entry(const TeEntry& entry) {
  constexpr double kMostHalves = 2147483646;
  const double twice = entry.value * 2;
  if (!(twice <= kMostHalves && twice >= -kMostHalves)) return read_large_te_entry(entry);
  const auto halves = static_cast<std::int32_t>(twice);
  const std::int32_t size = halves < 0 ? -halves : halves;
  const std::int32_t chunk = size / 2;
  const int half = size % 2;
  const int negative = halves < 0 ? 1 : 0;
  const bool whole_float = half == 0 && entry.type == NumberType::Float;
  const bool positive_half = half > negative;
  if ((halves != twice) | (chunk == 0) | whole_float | positive_half) return {};
  static_assert(static_cast<int>(Kind::Backward) == static_cast<int>(Kind::Forward) + 1);
  static_assert(static_cast<int>(Kind::BackwardWeight) == static_cast<int>(Kind::Forward) + 3);
  return {.kind = static_cast<Kind>(negative + 2 * half), .chunk = chunk};
}

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

/// Fills in what the lists of several ranks mean, each under the same declarations: the schedule,
/// the raw lists and their odd entries. `begins` is where each rank's entries begin in `list`.
void take_te_lists(Input& input, TeList list, std::vector<std::uint32_t> begins,
                   const TeDeclarations& declarations);

}  // namespace capo

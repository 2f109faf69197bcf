// The ways in which a schedule loses a part and stays a schedule.
//
//   F1.0 F1.1 B1.0 W1.0 B1.1 W1.1   without microbatch 0   ->   F1.0 B1.0 W1.0
//
// What is left is renumbered, so that nothing has a gap: the microbatches, the chunks of a rank,
// the ranks, and the stages, which are placed again by the topology. Capture and replay orders lose
// the same. A transfer whose other end went with what was deleted goes as well. What a deletion
// does to the verdict is not looked at: minimise() asks. Every result is settled. Tested by
// deletions_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace capo {

/// A chunk where it is held.
struct HeldChunk {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;

  friend auto operator<=>(const HeldChunk&, const HeldChunk&) = default;
};

/// The microbatches that occur, ascending.
[[nodiscard]] std::vector<std::int32_t> microbatches_in(const Schedule& schedule);
/// The chunks that a rank has or names, by rank and chunk.
[[nodiscard]] std::vector<HeldChunk> chunks_in(const Schedule& schedule);
/// The numbers of chunks that any rank has or names, ascending.
[[nodiscard]] std::vector<std::int32_t> layers_in(const Schedule& schedule);

/// All of these are sorted.
[[nodiscard]] Schedule without_microbatches(Schedule schedule, std::span<const std::int32_t> gone);
/// Nothing where each stage was on one rank and no longer would be, as for one chunk of a loop.
[[nodiscard]] std::optional<Schedule> without_chunks(const Schedule& schedule,
                                                     std::span<const HeldChunk> gone);
/// The chunks of these numbers of every rank.
[[nodiscard]] std::optional<Schedule> without_layers(const Schedule& schedule,
                                                     std::span<const std::int32_t> gone);
/// Ranks `begin` up to `end`; nothing where none would be left, or as for chunks.
[[nodiscard]] std::optional<Schedule> without_ranks(const Schedule& schedule, std::size_t begin,
                                                    std::size_t end);

/// The weight gradients of ranks `begin` up to `end`, whose backwards become whole.
[[nodiscard]] Schedule without_weights(Schedule schedule, std::size_t begin, std::size_t end);

/// Which of a rank's orders.
enum class From {
  Both,  ///< positions are those of the capture order; replay loses the same actions
  Capture,
  Replay,
};
/// Positions `begin` up to `end` of a rank's order.
[[nodiscard]] Schedule without_entries(Schedule schedule, std::size_t rank, From from,
                                       std::size_t begin, std::size_t end);
/// Every entry of all ranks that `goes`.
[[nodiscard]] Schedule without_entries(Schedule schedule,
                                       const std::function<bool(const Entry&)>& goes);

/// Only two microbatches of one chunk, or one of each of two, of a schedule of one rank; each is
/// the first again, so that they need not have been the same.
[[nodiscard]] std::optional<Schedule> with_only(const Schedule& schedule, const Action& one,
                                                const Action& other);

/// Whether every chunk that still runs delays its weight gradients as it did. A lost W must not
/// turn a chunk that delays into one that does not: that is a fact about the model.
[[nodiscard]] bool keeps_delays(const Schedule& before, const Schedule& after);

}  // namespace capo

// The edits that minimise() tries: a schedule loses a part and stays a schedule (deletions.cpp), or
// is said in plainer words, with other numbers, other neighbours, fewer declarations
// (renaming.cpp).
//
//   F1.0 F1.1 B1.0 W1.0 B1.1 W1.1   without microbatch 0   ->   F1.0 B1.0 W1.0
//   F2.3 F1.3                       renamed                ->   F1.0 F2.0
//
// After a deletion the rest is renumbered, so that nothing has a gap: the microbatches, the chunks
// of a rank, the ranks, and the stages, which are placed again by the topology. Capture and replay
// orders lose the same entries. A transfer goes if its other end does. Rewriting in plainer words
// deletes no entry, and the caller leaves out those that are not smaller by `Size`. No function
// here asks whether the verdict changes: minimise() does. Every result is settled. Tested by
// deletions_test.cpp and renaming_test.cpp.

#pragma once

#include "core/order/ids.h"
#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace capo {

/// The microbatches that occur, ascending.
[[nodiscard]] std::vector<std::int32_t> microbatches_in(const Schedule& schedule);
/// The chunks that a rank has or names, by rank and chunk.
[[nodiscard]] std::vector<HeldChunk> chunks_in(const Schedule& schedule);
/// The numbers of chunks that any rank has or names, ascending.
[[nodiscard]] std::vector<std::int32_t> layers_in(const Schedule& schedule);

/// Precondition: `gone` is sorted, here and below.
[[nodiscard]] Schedule without_microbatches(Schedule schedule, std::span<const std::int32_t> gone);
/// nullopt if each stage was on one rank and no longer would be, as for one chunk of a loop.
[[nodiscard]] std::optional<Schedule> without_chunks(const Schedule& schedule,
                                                     std::span<const HeldChunk> gone);
/// Takes the chunks with these numbers from every rank.
[[nodiscard]] std::optional<Schedule> without_layers(const Schedule& schedule,
                                                     std::span<const std::int32_t> gone);
/// Takes ranks `begin` up to `end` away. nullopt if none would be left, or as for chunks.
[[nodiscard]] std::optional<Schedule> without_ranks(const Schedule& schedule, std::size_t begin,
                                                    std::size_t end);

/// Takes the weight gradients of ranks `begin` up to `end` away; their backwards become whole.
[[nodiscard]] Schedule without_weights(Schedule schedule, std::size_t begin, std::size_t end);

/// The orders of a rank that lose entries.
enum class From {
  Both,  ///< positions are those of capture; replay loses the same actions
  Capture,
  Replay,
};
/// Takes positions `begin` up to `end` of a rank's order away.
[[nodiscard]] Schedule without_entries(Schedule schedule, std::size_t rank, From from,
                                       std::size_t begin, std::size_t end);
/// Takes every entry away for which `goes` returns true.
[[nodiscard]] Schedule without_entries(Schedule schedule,
                                       const std::function<bool(const Entry&)>& goes);

/// The number of resets of all ranks.
[[nodiscard]] std::size_t resets_in(const Schedule& schedule);
/// Takes resets `begin` up to `end` away, counted through the ranks.
[[nodiscard]] Schedule without_resets(Schedule schedule, std::size_t begin, std::size_t end);

/// Keeps only two microbatches of one chunk, or one microbatch of each of two chunks, of a schedule
/// of one rank. Each is numbered from the first again, so that the two need not have been the same.
[[nodiscard]] std::optional<Schedule> with_only(const Schedule& schedule, const Action& one,
                                                const Action& other);

/// Whether every chunk that still runs delays its weight gradients as it did. A lost W must not
/// turn a chunk that delays into one that does not: that is a fact about the model.
[[nodiscard]] bool keeps_delays(const Schedule& before, const Schedule& after);

/// The schedule with two chunks of an unwired rank or two named microbatches exchanged, with its
/// microbatches numbered without gaps, or without composites: one result each.
[[nodiscard]] std::vector<Schedule> renamings(const Schedule& schedule);

/// The schedule with one declaration left out, with a smaller number, or with the name of the
/// topology that places the stages as they are listed. The same chunks delay weight gradients in
/// each.
[[nodiscard]] std::vector<Schedule> with_less_declared(const Schedule& schedule);

/// The schedule with positions `at` and `at + 1` of an order swapped; nullopt if one is in a
/// composite or the swap brings the order no closer to the canonical one.
[[nodiscard]] std::optional<Schedule> with_neighbours_swapped(const Schedule& schedule,
                                                              std::size_t rank, bool replay,
                                                              std::size_t at);

}  // namespace capo

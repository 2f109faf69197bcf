// Interleaved 1F1B in groups of any size, after Wan et al., PipeOffload, arXiv 2503.01328: each
// microbatch and chunk starts at a slot of an endless grid, and a rank's order is the order of its
// slots.
//
//   2 ranks, 2 chunks, groups of 2, 2 microbatches (microbatch.chunk, both from 0)
//   rank 0:  F0.0 F1.0 F0.1 F1.1 B0.1 W0.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0
//   rank 1:  F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0
//
// A group of g microbatches passes chunk by chunk. A chunk follows the one before it after k
// groups, where k * g is at least half the ranks: below that no order of this shape keeps its
// period. Groups of p ranks are the published GIS with the memory of interleaved 1F1B, of p/2 its
// half-memory form. The input half and the weight half of a backward run back to back.
//
// The order is that of the published program, token by token, and does not depend on the costs: the
// program's launcher may raise the group size where costs are uneven, its generator does not.
// Tested by group_interleaved_test.cpp.

#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo::schedules {

namespace {

/// A forward, an input half and a weight half take a slot each.
constexpr std::int64_t kSlotsOfTriple = 3;

/// Gives every task its slot in the grid. Two tasks of a rank never share a slot: modulo a group's
/// period, the chunks start at different multiples of the group, forwards and backwards alike.
class SlotGrid {
 public:
  SlotGrid(const Setting& setting, std::int32_t group)
      : ranks_(setting.ranks), chunks_(setting.chunks), group_(group) {
    const std::int64_t half_of_ranks = (ranks_ + 1) / 2;
    groups_per_chunk_ = (half_of_ranks + group_ - 1) / group_;
    chunks_until_clash_ = chunks_ / std::gcd(chunks_, groups_per_chunk_);
  }

  [[nodiscard]] std::int64_t forward(std::int64_t rank, std::int64_t chunk,
                                     std::int64_t microbatch) const {
    return start_of_chunk(chunk) + start_of_microbatch(microbatch) + rank;
  }

  /// A gradient takes two slots a rank, since the weight half runs at once.
  [[nodiscard]] std::int64_t backward(std::int64_t rank, std::int64_t chunk,
                                      std::int64_t microbatch) const {
    const std::int64_t turning_point = start_of_chunk(chunks_ - 1) + ranks_;
    const std::int64_t chunk_on_the_way_back = chunks_ - 1 - chunk;
    return turning_point + 2 * (ranks_ - 1 - rank) + start_of_chunk(chunk_on_the_way_back) +
           start_of_microbatch(microbatch);
  }

 private:
  /// Chunks that would fall on the slots of an earlier one wait a group longer.
  [[nodiscard]] std::int64_t start_of_chunk(std::int64_t chunk) const {
    const std::int64_t groups = groups_per_chunk_ * chunk + chunk / chunks_until_clash_;
    return kSlotsOfTriple * group_ * groups;
  }

  [[nodiscard]] std::int64_t start_of_microbatch(std::int64_t microbatch) const {
    const std::int64_t whole_groups = microbatch / group_;
    return kSlotsOfTriple * (microbatch % group_ + whole_groups * group_ * chunks_);
  }

  std::int64_t ranks_;
  std::int64_t chunks_;
  std::int64_t group_;
  std::int64_t groups_per_chunk_ = 1;
  std::int64_t chunks_until_clash_ = 1;
};

std::vector<Move> order_of_rank(const Setting& setting, const SlotGrid& grid, std::int32_t rank) {
  std::vector<std::pair<std::int64_t, Move>> placed;
  for (std::int32_t chunk = 0; chunk < setting.chunks; ++chunk) {
    for (std::int32_t microbatch = 0; microbatch < setting.microbatches; ++microbatch) {
      const auto place = [&](std::int64_t slot, Kind kind) {
        placed.emplace_back(slot, Move{.kind = kind, .chunk = chunk + 1, .microbatch = microbatch});
      };
      const std::int64_t backward = grid.backward(rank, chunk, microbatch);
      place(grid.forward(rank, chunk, microbatch), Kind::Forward);
      place(backward, Kind::BackwardInput);
      place(backward + 1, Kind::BackwardWeight);
    }
  }
  std::ranges::sort(placed, {}, [](const auto& slot_and_move) { return slot_and_move.first; });
  std::vector<Move> order;
  order.reserve(placed.size());
  for (const auto& [slot, move] : placed) order.push_back(move);
  return order;
}

}  // namespace

Generated group_interleaved(const Setting& setting, std::int32_t group) {
  if (auto refusal = refuse_counts("gis", setting)) return std::move(*refusal);
  if (group < 1) return fmt::format("gis needs one microbatch a group at least, not {}", group);
  const SlotGrid grid(setting, group);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(order_of_rank(setting, grid, rank));
  }
  return orders;
}

}  // namespace capo::schedules

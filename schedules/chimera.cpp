// Chimera: two 1F1B pipelines that run through the ranks against each other and fill one another's
// bubbles, each with a copy of the weights.
//
//   4 ranks, 4 microbatches, two for each direction; slots of one forward or backward each
//   rank 0:  F0.0 .    F1.0 F0.1 BW0.1 F1.1  BW1.1 BW0.0 .     BW1.0
//   rank 1:  .    F0.0 F0.1 F1.0 F1.1  BW0.1 BW0.0 BW1.1 BW1.0 .
//
// Chunk 1 is stage `rank` of direction 0, chunk 2 is stage p-1-rank of direction 1; each direction
// numbers its own half of the microbatches from 0. On a grid of slots, where a whole backward is as
// long as a forward, the two directions never want the same slot of a rank. More than p
// microbatches are units of p, 2p slots apart, which interlock without a gap: T slots for m
// microbatches on p ranks are 2m + p - 2, whatever m.
//
// The order is that of the grid and stays so whatever the costs, which are not looked at: where a
// backward is longer than a forward, units interlock less well. A rank holds from p/2 + 1 to p
// microbatches.
//
// Li and Hoefler, arXiv 2107.06925. Tested by chimera_test.cpp.

#include "core/base/assert.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace capo::schedules {

namespace {

struct Slotted {
  std::int64_t slot = 0;
  Move move;
};

/// The moves of one stage of one direction: in each unit p/2 microbatches, each two slots after the
/// one before it, whose forwards go down one slot a stage and whose backwards come back so.
void put_stage(const Setting& setting, std::int32_t chunk, std::int32_t stage,
               std::vector<Slotted>& grid) {
  const std::int64_t unit_slots = 2 * std::int64_t{setting.ranks};
  const std::int32_t unit_microbatches = setting.ranks / 2;
  for (std::int32_t microbatch = 0; microbatch < setting.microbatches / 2; ++microbatch) {
    const std::int64_t enters = microbatch / unit_microbatches * unit_slots +
                                2 * std::int64_t{microbatch % unit_microbatches};
    grid.push_back({.slot = enters + stage,
                    .move = {.kind = Kind::Forward, .chunk = chunk, .microbatch = microbatch}});
    grid.push_back({.slot = enters + unit_slots - 1 - stage,
                    .move = {.kind = Kind::Backward, .chunk = chunk, .microbatch = microbatch}});
  }
}

std::vector<Move> order_of(const Setting& setting, std::int32_t rank) {
  std::vector<Slotted> grid;
  put_stage(setting, 1, rank, grid);
  put_stage(setting, 2, setting.ranks - 1 - rank, grid);
  std::sort(grid.begin(), grid.end(),
            [](const Slotted& a, const Slotted& b) { return a.slot < b.slot; });
  std::vector<Move> order;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    CAPO_ASSERT(i == 0 || grid[i - 1].slot != grid[i].slot, "two moves of a rank share no slot");
    order.push_back(grid[i].move);
  }
  return order;
}

std::optional<std::string> refuse_chimera(const Setting& setting) {
  if (auto refusal = refuse_counts("chimera", setting, 2)) return refusal;
  if (setting.ranks % 2 != 0) {
    return fmt::format("chimera needs an even number of ranks, not {}", setting.ranks);
  }
  if (setting.microbatches % setting.ranks != 0) {
    return fmt::format("chimera needs a multiple of its {} ranks as microbatches, not {}",
                       setting.ranks, setting.microbatches);
  }
  return std::nullopt;
}

}  // namespace

Generated chimera(const Setting& setting) {
  if (auto refusal = refuse_chimera(setting)) return *std::move(refusal);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(order_of(setting, rank));
  }
  return orders;
}

}  // namespace capo::schedules

#include "schedules/chimera.h"
#include "core/base/assert.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace capo::published {

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

std::optional<std::string> refuse(const Setting& setting) {
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

Result<PublishedOrders, std::string> chimera(const Setting& setting) {
  if (auto refusal = refuse(setting)) return *std::move(refusal);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(order_of(setting, rank));
  }
  return orders;
}

}  // namespace capo::published

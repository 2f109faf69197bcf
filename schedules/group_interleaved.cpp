#include "schedules/group_interleaved.h"

#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo::published {

namespace {

/// A forward, an input half and a weight half.
constexpr std::int64_t kSlotsOfTriple = 3;

/// Where every task stands in the grid. Two tasks of a rank never share a slot: modulo a group's
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

Result<PublishedOrders, std::string> group_interleaved(const Setting& setting, std::int32_t group) {
  if (auto refusal = refuse_counts("gis", setting)) return std::move(*refusal);
  if (group < 1) return fmt::format("gis needs one microbatch a group at least, not {}", group);
  const SlotGrid grid(setting, group);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(order_of_rank(setting, grid, rank));
  }
  return orders;
}

}  // namespace capo::published

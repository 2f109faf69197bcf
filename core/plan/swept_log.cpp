#include "core/plan/swept_log.h"

#include "core/base/assert.h"
#include "core/graph/sweep.h"

#include <utility>

namespace capo {

namespace {

class Keeper final : public SweepListener {
 public:
  Keeper(const Schedule& schedule, std::int32_t microbatches,
         const std::vector<Neighbours>& neighbours)
      : ranks(schedule.ranks.size()),
        schedule_(schedule),
        neighbours_(neighbours),
        cells_(microbatches) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::size_t entries = schedule.ranks[r].order.size();
      CAPO_ASSERT(cells_.count(schedule.ranks[r].chunks) < std::size_t{1} << 30,
                  "buffers are more than these, and have 32-bit numbers");
      // Most entries read a tensor of another rank and make one for another rank.
      ranks[r].transfers.reserve(2 * entries);
      ranks[r].issued.reserve(entries);
    }
  }

  void acts(RankId rank, std::uint32_t /*first*/, std::uint32_t /*end*/) override {
    SweptRank& of = ranks[rank.index()];
    of.issued.push_back(static_cast<std::uint32_t>(of.transfers.size()));
  }

  void hands_on(const HandedOn& tensor) override {
    auto& from = ranks[tensor.from.index()].transfers;
    auto& to = ranks[tensor.to.index()].transfers;
    const ChunkId maker = schedule_.ranks[tensor.from.index()].order[tensor.entry].chunk;
    const auto sent = static_cast<std::uint32_t>(from.size() + 1);
    const auto received = static_cast<std::uint32_t>(to.size() + 1);
    from.emplace_back(cells_.of(maker, tensor.microbatch, tensor.forward), true,
                      neighbours_[tensor.from.index()].position_of(tensor.to), received);
    to.emplace_back(cells_.of(tensor.reader, tensor.microbatch, tensor.forward), false,
                    neighbours_[tensor.to.index()].position_of(tensor.from), sent);
  }

  std::vector<SweptRank> ranks;

 private:
  const Schedule& schedule_;
  const std::vector<Neighbours>& neighbours_;
  Cells cells_;
};

}  // namespace

SweptLog swept_log(const Schedule& schedule, const StageMap& map, std::int32_t microbatches) {
  SweptLog log;
  log.neighbours.reserve(schedule.ranks.size());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
    log.neighbours.emplace_back(map, static_cast<std::int32_t>(r), schedule.ranks[r].chunks);
  Keeper keeper(schedule, microbatches, log.neighbours);
  const bool complete = sweep(schedule, map, microbatches, keeper);
  CAPO_ASSERT(complete, "every action finds its place");
  log.ranks = std::move(keeper.ranks);
  return log;
}

}  // namespace capo

#include "core/plan/safe_plan.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>

namespace capo {

SafePlanner::SafePlanner(const BufferTable& table, const StageMap& map,
                         std::vector<std::int64_t>& address)
    : table_(table),
      map_(map),
      address_(address),
      uses_left_(table.all(), 0),
      ranks_(table.ranks()),
      memory_(table.ranks()),
      transfers_(table, map, address, memory_) {
}

// Frees memory whose last use is over by now.
void SafePlanner::settle(Lane& lane, const Clock& clock) {
  lane.uses.settle(clock, [&](BufferId buffer) { drop(lane, buffer); });
}

void SafePlanner::take(Rank& rank, Lane& lane, BufferId buffer, std::int64_t bytes,
                       std::uint8_t uses) {
  uses_left_[buffer] = uses;
  if (bytes == 0) return;
  lane.owners.push_back(buffer);
  const auto spare = std::find_if(rank.spare.begin(), rank.spare.end(), [&](BufferId other) {
    return lane.blocks[as_index(address_[other])].bytes == bytes;
  });
  if (spare != rank.spare.end()) {
    address_[buffer] = address_[*spare];
    uses_left_[*spare] = 0;
    rank.spare.erase(spare);
    return;
  }
  address_[buffer] = static_cast<std::int64_t>(lane.blocks.size());
  lane.blocks.push_back({.bytes = bytes, .begin = lane.moment++, .end = 0});
  lane.alive += bytes;
  lane.most = std::max(lane.most, lane.alive);
}

// Later layers of a work may have the memory that an earlier layer has used for the last time. In a
// composite no other work may have it until the composite is over.
void SafePlanner::give_up(Rank& rank, const Work& work, BufferId buffer, Point now, bool apart) {
  if (apart || (work.beside && uses_left_[buffer] > 1)) {
    rank.main.uses.add(buffer, now, now);
  } else if (!work.beside) {
    drop(rank.main, buffer);
  } else if (address_[buffer] != kNowhere) {
    rank.spare.push_back(buffer);
  }
}

void SafePlanner::drop(Lane& lane, BufferId buffer) {
  CAPO_ASSERT(uses_left_[buffer] > 0, "a buffer is used as often as was expected");
  if (--uses_left_[buffer] > 0 || address_[buffer] == kNowhere) return;
  Block& block = lane.blocks[as_index(address_[buffer])];
  block.end = lane.moment;
  lane.alive -= block.bytes;
}

void SafePlanner::lay_out_lane(Lane& lane, Region region) {
  for (Block& block : lane.blocks) {
    if (block.end == 0) block.end = lane.moment;
  }
  const Layout layout = capo::lay_out(lane.blocks, lane.most);
  for (const BufferId buffer : lane.owners) {
    address_[buffer] = address_in(region, layout.offsets[as_index(address_[buffer])]);
  }
  lane.most = layout.total;
}

void SafePlanner::lay_out(std::int32_t rank_id) {
  Rank& rank = ranks_[RankId(rank_id).index()];
  lay_out_lane(rank.main, Region::Pool);
  lay_out_lane(rank.apart, Region::WeightScratch);
  memory_[RankId(rank_id).index()].pool = rank.main.most + rank.apart.most;
  rank = {};  // what was given out takes more memory than all addresses
}

// Whether another stage reads what this layer makes: the output of a forward, the grad input of a
// backward.
bool SafePlanner::feeds_another(std::int32_t rank, const Work& work, std::int32_t layer) const {
  if (!map_.wired()) return false;
  const bool forward = work.kind == Kind::Forward;
  if (layer != (forward ? table_.layers(rank, work.chunk) - 1 : 0)) return false;
  const std::int32_t stage = map_.stage_of(rank, work.chunk);
  return (forward ? map_.after(stage) : map_.before(stage)) != kNoStage;
}

void SafePlanner::work(std::int32_t rank_id, const Work& work, BufferId fed_by,
                       const Clock& clock) {
  transfers_.work(rank_id, work, clock);
  Rank& rank = ranks_[RankId(rank_id).index()];
  const Point now = clock.now();
  if (!rank.main_stream) rank.main_stream = now.stream;
  const bool apart = now.stream != *rank.main_stream;
  Lane& own = apart ? rank.apart : rank.main;
  settle(own, clock);
  RankMemory& memory = memory_[RankId(rank_id).index()];
  std::vector<BufferId>& read = rank.read;
  read.clear();
  BufferId handing_on = kNoBuffer;
  for_each_layer(table_, rank_id, work, [&](std::int32_t layer) {
    for (const BufferId buffer : read) give_up(rank, work, buffer, now, apart);
    read.clear();
    const LayerFacts& facts = table_.facts(rank_id, work.chunk, layer);
    const bool feeds = feeds_another(rank_id, work, layer);
    // How often each is used again: by its own backward, its weight gradient, another stage, or, so
    // that it is held while this work runs, by the work itself.
    const auto write = [&](BufferId buffer) {
      const auto kind =
          static_cast<BufferKind>((buffer - table_.id(rank_id, work.chunk, layer, work.microbatch,
                                                      BufferKind::StaticInput)));
      std::uint8_t uses = 1;
      if (kind == BufferKind::Output) uses = feeds ? 2 : 1;
      if (kind == BufferKind::GradOutput) uses = work.delayed && facts.aliases.grad_output ? 2 : 1;
      if (kind == BufferKind::GradInput) {
        uses = feeds || layer > 0 ? 2 : 1;
        read.push_back(buffer);
        if (facts.hands_on) {
          ++uses;
          handing_on = buffer;
        }
      }
      if (kind == BufferKind::Scratch) own.uses.add(buffer, now, now);
      take(rank, own, buffer, facts.bytes[as_index(kind)], uses);
    };
    for_each_access(table_, rank_id, work, layer, write,
                    [&](BufferId buffer) { read.push_back(buffer); });
    if (work.delayed) {
      const auto used_again = [&](BufferKind kept) {
        ++uses_left_[table_.id(rank_id, work.chunk, layer, work.microbatch, kept)];
      };
      // An input that is known to be read itself is read by W alone.
      if (facts.aliases.input && !facts.aliases_declared) used_again(BufferKind::StaticInput);
      if (facts.weight_reads_kept()) used_again(BufferKind::Activations);
    }
    // A composite with several layers holds more than it has to.
    const bool exact = !work.beside || table_.layers(rank_id, work.chunk) == 1;
    if (exact && rank.main.alive > memory.lower_bound) {
      memory.lower_bound = rank.main.alive;
      memory.peak_entry = work.entry;
    }
  });
  if (fed_by != kNoBuffer) read.push_back(fed_by);
  read.insert(read.end(), rank.spare.begin(), rank.spare.end());
  rank.spare.clear();
  for (const BufferId buffer : read) rank.main.uses.add(buffer, now, now);
  if (handing_on == kNoBuffer) return;
  if (rank.handed_on != kNoBuffer) rank.main.uses.add(rank.handed_on, now, now);
  rank.handed_on = handing_on;
}

void SafePlanner::sent(const Sending& sending, const Clock& clock) {
  if (table_.layers(sending.rank, sending.chunk) == 0) return;
  const bool forward = sending.kind == Kind::SendForward;
  const std::int32_t layer = forward ? table_.layers(sending.rank, sending.chunk) - 1 : 0;
  const auto kind = forward ? BufferKind::Output : BufferKind::GradInput;
  ranks_[RankId(sending.rank).index()].main.uses.add(
      table_.id(sending.rank, sending.chunk, layer, sending.microbatch, kind), clock.now(),
      sending.received);
  transfers_.sent(sending, table_.facts(sending.rank, sending.chunk, layer).bytes[as_index(kind)],
                  clock);
}

void SafePlanner::receiving(const Receiving& receiving, const Clock& clock) {
  transfers_.receiving(receiving, clock);
}

}  // namespace capo

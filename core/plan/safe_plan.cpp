#include "core/plan/safe_plan.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>

namespace capo {

SafePlanner::SafePlanner(const BufferTable& table, const StageMap& map, std::int32_t rank)
    : table_(table),
      map_(map),
      rank_(rank),
      first_(table.of_rank(rank).graphs),
      block_(table.of_rank(rank).graphs_count, kNoBlock),
      uses_left_(block_.size(), 0),
      transfers_(table, map, rank) {
}

// Frees memory whose last use is over by now.
void SafePlanner::settle(Lane& lane, const Clock& clock) {
  lane.uses.settle(clock, [&](BufferId buffer) { drop(lane, buffer); });
}

void SafePlanner::take(Lane& lane, BufferId buffer, std::int64_t bytes, std::uint8_t uses) {
  uses_left(buffer) = uses;
  if (bytes == 0) return;
  lane.owners.push_back(buffer);
  const auto spare = std::find_if(spare_.begin(), spare_.end(), [&](BufferId other) {
    return lane.blocks[block_of(other)].bytes == bytes;
  });
  if (spare != spare_.end()) {
    block_of(buffer) = block_of(*spare);
    uses_left(*spare) = 0;
    spare_.erase(spare);
    return;
  }
  block_of(buffer) = static_cast<std::uint32_t>(lane.blocks.size());
  lane.blocks.push_back({.bytes = bytes, .begin = lane.moment++, .end = 0});
  lane.alive += bytes;
  lane.most = std::max(lane.most, lane.alive);
}

// Later layers of a work may have the memory that an earlier layer has used for the last time. In a
// composite no other work may have it until the composite is over.
void SafePlanner::give_up(const Work& work, BufferId buffer, Point now, bool apart) {
  if (apart || (work.beside && uses_left(buffer) > 1)) {
    main_.uses.add(buffer, now, now);
  } else if (!work.beside) {
    drop(main_, buffer);
  } else if (block_of(buffer) != kNoBlock) {
    spare_.push_back(buffer);
  }
}

void SafePlanner::drop(Lane& lane, BufferId buffer) {
  CAPO_ASSERT(uses_left(buffer) > 0, "a buffer is used as often as was expected");
  if (--uses_left(buffer) > 0 || block_of(buffer) == kNoBlock) return;
  Block& block = lane.blocks[block_of(buffer)];
  block.end = lane.moment;
  lane.alive -= block.bytes;
}

void SafePlanner::lay_out_lane(Lane& lane, Region region, std::vector<std::int64_t>& address) {
  for (Block& block : lane.blocks) {
    if (block.end == 0) block.end = lane.moment;
  }
  const Layout layout = capo::lay_out(lane.blocks, lane.most);
  for (const BufferId buffer : lane.owners) {
    address[buffer] = address_in(region, layout.offsets[block_of(buffer)]);
  }
  memory_.pool += layout.total;
  lane = {};  // what was given out takes more memory than all addresses
}

RankMemory SafePlanner::memory() const {
  RankMemory memory = memory_;
  memory.transfers = transfers_.memory();
  return memory;
}

void SafePlanner::lay_out(std::vector<std::int64_t>& address) {
  lay_out_lane(main_, Region::Pool, address);
  lay_out_lane(apart_, Region::WeightScratch, address);
  transfers_.fill(address);
  block_ = {};
  uses_left_ = {};
}

// Whether another stage reads what this layer makes: the output of a forward, the grad input of a
// backward.
bool SafePlanner::feeds_another(const Work& work, std::int32_t layer) const {
  if (!map_.wired()) return false;
  const bool forward = work.kind == Kind::Forward;
  if (layer != (forward ? table_.layers(rank_, work.chunk) - 1 : 0)) return false;
  const std::int32_t stage = map_.stage_of(rank_, work.chunk);
  return (forward ? map_.after(stage) : map_.before(stage)) != kNoStage;
}

void SafePlanner::work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) {
  transfers_.work(work, clock);
  const Point now = clock.now();
  if (!main_stream_) main_stream_ = now.stream;
  const bool apart = now.stream != *main_stream_;
  Lane& own = apart ? apart_ : main_;
  settle(own, clock);
  read_.clear();
  BufferId handing_on = kNoBuffer;
  for_each_layer(table_, rank, work, [&](std::int32_t layer) {
    for (const BufferId buffer : read_) give_up(work, buffer, now, apart);
    read_.clear();
    const LayerFacts& facts = table_.facts(rank, work.chunk, layer);
    const bool feeds = feeds_another(work, layer);
    const BufferId first =
        table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::StaticInput);
    // How often each is used again: by its own backward, its weight gradient, another stage, or, so
    // that it is held while this work runs, by the work itself.
    const auto write = [&](BufferId buffer) {
      const auto kind = static_cast<BufferKind>(buffer - first);
      std::uint8_t uses = 1;
      if (kind == BufferKind::Output) uses = feeds ? 2 : 1;
      if (kind == BufferKind::GradOutput) uses = work.delayed && facts.aliases.grad_output ? 2 : 1;
      if (kind == BufferKind::GradInput) {
        uses = feeds || layer > 0 ? 2 : 1;
        read_.push_back(buffer);
        if (facts.hands_on) {
          ++uses;
          handing_on = buffer;
        }
      }
      if (kind == BufferKind::Scratch) own.uses.add(buffer, now, now);
      take(own, buffer, facts.bytes[as_index(kind)], uses);
    };
    for_each_access(table_, rank, work, layer, write,
                    [&](BufferId buffer) { read_.push_back(buffer); });
    if (work.delayed) {
      const auto used_again = [&](BufferKind kept) {
        ++uses_left(first + static_cast<BufferId>(kept));
      };
      // An input that is known to be read itself is read by W alone.
      if (facts.aliases.input && !facts.aliases_declared) used_again(BufferKind::StaticInput);
      if (facts.weight_reads_kept()) used_again(BufferKind::Activations);
    }
    // A composite with several layers holds more than it has to.
    const bool exact = !work.beside || table_.layers(rank, work.chunk) == 1;
    if (exact && main_.alive > memory_.lower_bound) {
      memory_.lower_bound = main_.alive;
      memory_.peak_entry = work.entry;
    }
  });
  if (fed_by != kNoBuffer) read_.push_back(fed_by);
  read_.insert(read_.end(), spare_.begin(), spare_.end());
  spare_.clear();
  for (const BufferId buffer : read_) main_.uses.add(buffer, now, now);
  if (handing_on == kNoBuffer) return;
  if (handed_on_ != kNoBuffer) main_.uses.add(handed_on_, now, now);
  handed_on_ = handing_on;
}

void SafePlanner::sent(const Sending& sending, const Clock& clock) {
  if (table_.layers(sending.rank, sending.chunk) == 0) return;
  const bool forward = sending.kind == Kind::SendForward;
  const std::int32_t layer = forward ? table_.layers(sending.rank, sending.chunk) - 1 : 0;
  const auto kind = forward ? BufferKind::Output : BufferKind::GradInput;
  main_.uses.add(table_.id(sending.rank, sending.chunk, layer, sending.microbatch, kind),
                 clock.now(), sending.received);
  transfers_.sent(table_.facts(sending.rank, sending.chunk, layer).bytes[as_index(kind)],
                  sending.received, clock);
}

void SafePlanner::receiving(const Receiving& receiving, const Clock& clock) {
  transfers_.receiving(receiving, clock);
}

}  // namespace capo

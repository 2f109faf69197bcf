#include "core/plan/transfer_buffers.h"

#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>

namespace capo {

TransferPlanner::TransferPlanner(const BufferTable& table, const StageMap& map,
                                 std::vector<std::int64_t>& address,
                                 std::vector<RankMemory>& memory)
    : table_(table), map_(map), address_(address), memory_(memory), ranks_(table.ranks()) {
}

// The address of a free slot of the size, or of a new one.
std::int64_t TransferPlanner::slot_for(std::size_t rank, std::int64_t bytes, const Clock& clock) {
  std::vector<Slot>& free = ranks_[rank].free;
  const auto fits = [&](const Slot& slot) { return slot.bytes == bytes && clock.after(slot.read); };
  const auto slot = std::find_if(free.begin(), free.end(), fits);
  if (slot == free.end()) {
    TransferMemory& memory = memory_[rank].transfers;
    const std::int64_t address = address_in(Region::Receives, memory.receive_bytes);
    ++memory.receives;
    memory.receive_bytes += bytes;
    return address;
  }
  const std::int64_t address = slot->address;
  free.erase(slot);
  return address;
}

void TransferPlanner::receiving(const Receiving& receiving, const Clock& clock) {
  const BufferKind kind = received_kind(receiving.kind);
  const std::int64_t bytes = table_.bytes_received(receiving.rank, receiving.chunk, kind);
  if (bytes == 0) return;
  address_[table_.received(receiving.rank, receiving.chunk, receiving.microbatch, kind)] =
      slot_for(RankId(receiving.rank).index(), bytes, clock);
}

void TransferPlanner::work(std::int32_t rank, const Work& work, const Clock& clock) {
  const BufferId read = received_by(table_, rank, work);
  if (read != kNoBuffer && address_[read] != kNowhere) {
    const auto kind =
        work.kind == Kind::Forward ? BufferKind::ReceivedActivation : BufferKind::ReceivedGradient;
    ranks_[RankId(rank).index()].free.push_back(
        {.address = address_[read],
         .bytes = table_.bytes_received(rank, work.chunk, kind),
         .read = clock.now()});
  }
  made(rank, work, clock);
}

// Counts what a work makes for another rank.
void TransferPlanner::made(std::int32_t rank_id, const Work& work, const Clock& clock) {
  if (!map_.wired() || work.kind == Kind::BackwardWeight) return;
  const bool forward = work.kind == Kind::Forward;
  const std::int32_t layers = table_.layers(rank_id, work.chunk);
  const std::int32_t last = forward ? layers - 1 : 0;
  if (layers == 0 || (work.layer != kAllLayers && work.layer != last)) return;
  const StageId stage = map_.stage_of(rank_id, work.chunk);
  const StageId reader = forward ? map_.after(stage) : map_.before(stage);
  if (reader == kNoStage || map_.same_rank(stage, reader)) return;
  Rank& rank = ranks_[RankId(rank_id).index()];
  rank.sends.settle(clock, [&](std::int64_t bytes) {
    --rank.sending;
    rank.bytes -= bytes;
  });
  ++rank.sending;
  const auto kind = forward ? BufferKind::Output : BufferKind::GradInput;
  rank.bytes += table_.facts(rank_id, work.chunk, last).bytes[as_index(kind)];
  TransferMemory& memory = memory_[RankId(rank_id).index()].transfers;
  memory.sends = std::max(memory.sends, rank.sending);
  memory.send_bytes = std::max(memory.send_bytes, rank.bytes);
}

void TransferPlanner::sent(const Sending& sending, std::int64_t bytes, const Clock& clock) {
  ranks_[RankId(sending.rank).index()].sends.add(bytes, clock.now(), sending.received);
}

}  // namespace capo

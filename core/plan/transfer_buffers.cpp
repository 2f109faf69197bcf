#include "core/plan/transfer_buffers.h"

#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>
#include <cstddef>

namespace capo {

TransferPlanner::TransferPlanner(const BufferTable& table, const StageMap& map, std::int32_t rank)
    : table_(table),
      map_(map),
      rank_(rank),
      buffers_(table.of_rank(rank)),
      address_(buffers_.receives_count, kNowhere) {
}

void TransferPlanner::fill(std::vector<std::int64_t>& address) const {
  std::copy(address_.begin(), address_.end(),
            address.begin() + static_cast<std::ptrdiff_t>(buffers_.receives));
}

// The address of a free slot of the size, or of a new one.
std::int64_t TransferPlanner::slot_for(std::int64_t bytes, const Clock& clock) {
  const auto fits = [&](const Slot& slot) { return slot.bytes == bytes && clock.after(slot.read); };
  const auto slot = std::find_if(free_.begin(), free_.end(), fits);
  if (slot == free_.end()) {
    const std::int64_t address = address_in(Region::Receives, memory_.receive_bytes);
    ++memory_.receives;
    memory_.receive_bytes += bytes;
    return address;
  }
  const std::int64_t address = slot->address;
  free_.erase(slot);
  return address;
}

void TransferPlanner::receiving(const Receiving& receiving, const Clock& clock) {
  const BufferKind kind = received_kind(receiving.kind);
  const std::int64_t bytes = table_.bytes_received(rank_, receiving.chunk, kind);
  if (bytes == 0) return;
  address_[table_.received(rank_, receiving.chunk, receiving.microbatch, kind) -
           buffers_.receives] = slot_for(bytes, clock);
}

void TransferPlanner::work(const Work& work, const Clock& clock) {
  const BufferId read = received_by(table_, rank_, work);
  if (read != kNoBuffer && address_[read - buffers_.receives] != kNowhere) {
    const auto kind =
        work.kind == Kind::Forward ? BufferKind::ReceivedActivation : BufferKind::ReceivedGradient;
    free_.push_back({.address = address_[read - buffers_.receives],
                     .bytes = table_.bytes_received(rank_, work.chunk, kind),
                     .read = clock.now()});
  }
  made(work, clock);
}

// Counts what a work makes for another rank.
void TransferPlanner::made(const Work& work, const Clock& clock) {
  if (!map_.wired() || work.kind == Kind::BackwardWeight) return;
  const bool forward = work.kind == Kind::Forward;
  const std::int32_t layers = table_.layers(rank_, work.chunk);
  const std::int32_t last = forward ? layers - 1 : 0;
  if (layers == 0 || (work.layer != kAllLayers && work.layer != last)) return;
  const StageId stage = map_.stage_of(rank_, work.chunk);
  const StageId reader = forward ? map_.after(stage) : map_.before(stage);
  if (reader == kNoStage || map_.same_rank(stage, reader)) return;
  sends_.settle(clock, [&](std::int64_t bytes) {
    --sending_;
    bytes_ -= bytes;
  });
  ++sending_;
  const auto kind = forward ? BufferKind::Output : BufferKind::GradInput;
  bytes_ += table_.facts(rank_, work.chunk, last).bytes[as_index(kind)];
  memory_.sends = std::max(memory_.sends, sending_);
  memory_.send_bytes = std::max(memory_.send_bytes, bytes_);
}

void TransferPlanner::sent(std::int64_t bytes, const Point& received, const Clock& clock) {
  sends_.add(bytes, clock.now(), received);
}

}  // namespace capo

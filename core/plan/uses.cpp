#include "core/plan/uses.h"

#include "core/plan/accesses.h"

#include <cstddef>

namespace capo {

UseVisitor::UseVisitor(const BufferTable& table)
    : table_(table),
      handed_on_(table.ranks(), kNoBuffer),
      last_(table.ranks()),
      received_(table.all() - table.size()) {
}

void UseVisitor::work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) {
  BufferUse of{.rank = rank, .at = clock.now(), .number = number_++, .entry = work.entry};
  BufferId handing_on = kNoBuffer;
  const auto used = [&](BufferId buffer) {
    of.buffer = buffer;
    use(of);
  };
  if (fed_by != kNoBuffer) used(fed_by);
  const BufferId received = received_by(table_, rank, work);
  if (received != kNoBuffer && received_[received - table_.size()]) used(received);
  for_each_layer(table_, rank, work, [&](std::int32_t layer) {
    ++of.layer;
    for (const Access& access : accesses_of(table_, rank, work, layer)) used(access.buffer);
    if (is_backward(work.kind) && table_.facts(rank, work.chunk, layer).hands_on)
      handing_on = table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::GradInput);
  });
  ++of.layer;
  BufferUse& last = last_[RankId(rank).index()];
  if (of.entry >= last.entry) last = of;
  if (handing_on == kNoBuffer) return;
  BufferId& before = handed_on_[RankId(rank).index()];
  if (before != kNoBuffer) used(before);
  before = handing_on;
}

void UseVisitor::end() {
  for (std::size_t rank = 0; rank < handed_on_.size(); ++rank) {
    if (handed_on_[rank] == kNoBuffer) continue;
    last_[rank].buffer = handed_on_[rank];
    use(last_[rank]);
  }
}

void UseVisitor::sent(const Sending& sending, const Clock& clock) {
  const std::int32_t layers = table_.layers(sending.rank, sending.chunk);
  if (layers == 0) return;
  const bool forward = sending.kind == Kind::SendForward;
  use({.buffer =
           table_.id(sending.rank, sending.chunk, forward ? layers - 1 : 0, sending.microbatch,
                     forward ? BufferKind::Output : BufferKind::GradInput),
       .rank = sending.rank,
       .at = clock.now(),
       .number = number_++,
       .entry = sending.entry,
       .received = sending.received});
}

void UseVisitor::receiving(const Receiving& receiving, const Clock& clock) {
  const BufferId buffer = table_.received(receiving.rank, receiving.chunk, receiving.microbatch,
                                          received_kind(receiving.kind));
  received_[buffer - table_.size()] = true;
  use({.buffer = buffer,
       .rank = receiving.rank,
       .at = clock.now(),
       .number = number_++,
       .entry = receiving.entry,
       .received = clock.now()});
}

}  // namespace capo

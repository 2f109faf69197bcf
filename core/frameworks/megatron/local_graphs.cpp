#include "core/frameworks/megatron/local_graphs.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/plan/accesses.h"
#include "core/plan/layout.h"

#include <algorithm>
#include <iterator>

namespace capo {

namespace {

bool is_last(const BufferTable& table, std::int32_t rank, const Work& work, std::int32_t layer) {
  return layer + 1 == table.layers(rank, work.chunk);
}

// Captures the graphs of one rank.
class LocalCapture {
 public:
  LocalCapture(const BufferTable& table, std::int32_t rank, Plan& plan)
      : table_(table), rank_(rank), plan_(plan) {}

  void run(const Work& work) {
    for_each_layer(table_, rank_, work, [&](std::int32_t layer) {
      if (work.kind == Kind::Forward) {
        forward(work, layer);
      } else if (work.kind == Kind::BackwardWeight) {
        weight(work, layer);
      } else {
        backward(work, layer);
      }
    });
    if (pool_.top() > memory.pool) {
      memory.pool = pool_.top();
      memory.peak_entry = work.entry;
    }
  }

  RankMemory memory;

 private:
  [[nodiscard]] BufferId id(const Work& work, std::int32_t layer, BufferKind kind) const {
    return table_.id(rank_, work.chunk, layer, work.microbatch, kind);
  }

  [[nodiscard]] bool keeps_weight(const Work& work, std::int32_t layer) const {
    return table_.facts(rank_, work.chunk, layer).keeps_quantized_weight;
  }

  void take(const Work& work, std::int32_t layer, BufferKind kind) {
    const BufferId buffer = id(work, layer, kind);
    const std::int64_t bytes = table_.bytes(buffer);
    if (bytes > 0) plan_.address[buffer] = address_in(Region::Pool, pool_.take(bytes));
  }
  // A tensor goes with the buffer that made it.
  void give_back(const Work& work, std::int32_t layer, BufferKind kind) {
    const BufferId buffer = id(work, layer, kind);
    if (plan_.address[buffer] == kNowhere || plan_.tensor[buffer] != buffer) return;
    pool_.give_back(offset_of(plan_.address[buffer]), table_.bytes(buffer));
  }
  // The block of what is copied out is free behind its own graph.
  void pass_through(const Work& work, std::int32_t layer, BufferKind kind) {
    const BufferId buffer = id(work, layer, kind);
    const std::int64_t bytes = table_.bytes(buffer);
    if (bytes == 0) return;
    const std::int64_t offset = pool_.take(bytes);
    plan_.made[buffer] = address_in(Region::Pool, offset);
    pool_.give_back(offset, bytes);
  }

  // Whether a layer reads the tensor itself that its neighbour made in the same piece of work.
  bool joined(const Work& work, BufferId reader, BufferId maker) {
    if (work.layer != kAllLayers || table_.bytes(reader) != table_.bytes(maker)) return false;
    plan_.address[reader] = plan_.address[maker];
    plan_.tensor[reader] = maker;
    return true;
  }

  void forward(const Work& work, std::int32_t layer) {
    if (layer == 0 || !joined(work, id(work, layer, BufferKind::StaticInput),
                              id(work, layer - 1, BufferKind::Output)))
      take(work, layer, BufferKind::StaticInput);
    take(work, layer, BufferKind::Activations);
    if (keeps_weight(work, layer)) take(work, layer, BufferKind::QuantizedWeight);
    if (is_last(table_, rank_, work, layer)) {
      pass_through(work, layer, BufferKind::Output);
    } else {
      take(work, layer, BufferKind::Output);
    }
  }

  void backward(const Work& work, std::int32_t layer) {
    const bool last = is_last(table_, rank_, work, layer);
    if (last || !joined(work, id(work, layer, BufferKind::GradOutput),
                        id(work, layer + 1, BufferKind::GradInput)))
      take(work, layer, BufferKind::GradOutput);
    if (work.delayed) take(work, layer, BufferKind::Operands);
    if (layer == 0) {
      pass_through(work, layer, BufferKind::GradInput);
    } else {
      take(work, layer, BufferKind::GradInput);
    }
    if (keeps_weight(work, layer)) give_back(work, layer, BufferKind::QuantizedWeight);
    if (!work.delayed) release(work, layer);
  }

  void weight(const Work& work, std::int32_t layer) {
    take(work, layer, BufferKind::Scratch);
    give_back(work, layer, BufferKind::Scratch);
    give_back(work, layer, BufferKind::Operands);
    release(work, layer);
  }

  void release(const Work& work, std::int32_t layer) {
    give_back(work, layer, BufferKind::StaticInput);
    give_back(work, layer, BufferKind::Activations);
    give_back(work, layer, BufferKind::GradOutput);
    if (is_last(table_, rank_, work, layer)) return;
    give_back(work, layer, BufferKind::Output);
    give_back(work, layer + 1, BufferKind::GradInput);
  }

  const BufferTable& table_;
  std::int32_t rank_;
  Plan& plan_;
  Arena pool_;
};

}  // namespace

RankMemory plan_as_local_graphs(const BufferTable& table, std::int32_t rank,
                                std::span<const Work> work, Plan& plan) {
  CAPO_ASSERT(plan.tensor.size() == plan.address.size() && plan.made.size() == plan.address.size(),
              "every buffer is its own tensor at first, made where it lies");
  LocalCapture capture(table, rank, plan);
  for (const Work& next : work) capture.run(next);
  return capture.memory;
}

LocalCopies::LocalCopies(const BufferTable& table, const StageMap& map,
                         std::vector<std::int64_t>& address)
    : table_(table),
      map_(map),
      address_(address),
      uses_left_(table.all(), 0),
      ranks_(table.ranks()) {
}

const LocalCopies::Most& LocalCopies::most(std::int32_t rank) const {
  return ranks_[RankId(rank).index()].most;
}

// Whether another stage reads what a work hands on.
bool LocalCopies::leaves_the_stage(std::int32_t rank, const Work& work) const {
  if (!map_.wired()) return false;
  const StageId stage = map_.stage_of(rank, work.chunk);
  return (work.kind == Kind::Forward ? map_.after(stage) : map_.before(stage)) != kNoStage;
}

void LocalCopies::copy(Rank& rank, BufferId buffer, std::int64_t bytes, const Work& work,
                       int uses) {
  uses_left_[buffer] = static_cast<std::uint8_t>(uses);
  if (bytes == 0) return;
  if (const auto free = rank.free.find(bytes); free != rank.free.end()) {
    address_[buffer] = free->second;
    rank.free.erase(free);
    return;
  }
  address_[buffer] = address_in(Region::Copies, rank.most.bytes);
  rank.most = {.bytes = rank.most.bytes + bytes, .entry = work.entry};
}

void LocalCopies::drop(Rank& rank, BufferId buffer) {
  CAPO_ASSERT(uses_left_[buffer] > 0, "a copy is used as often as was expected");
  if (--uses_left_[buffer] > 0 || address_[buffer] == kNowhere) return;
  rank.free.emplace(table_.bytes(buffer), address_[buffer]);
}

// A copy is used by the work that makes it, by the stage that it is for, and an output by its own
// backward as well.
void LocalCopies::work(std::int32_t rank_id, const Work& work, BufferId fed_by,
                       const Clock& clock) {
  Rank& rank = ranks_[RankId(rank_id).index()];
  const Point now = clock.now();
  rank.uses.settle(clock, [&](BufferId buffer) { drop(rank, buffer); });
  if (fed_by != kNoBuffer) rank.uses.add(fed_by, now, now);
  BufferId handing_on = kNoBuffer;
  for_each_layer(table_, rank_id, work, [&](std::int32_t layer) {
    const auto id = [&](BufferKind kind) {
      return table_.id(rank_id, work.chunk, layer, work.microbatch, kind);
    };
    const int others = leaves_the_stage(rank_id, work) ? 1 : 0;
    if (work.kind == Kind::Forward && is_last(table_, rank_id, work, layer)) {
      const BufferId output = id(BufferKind::Output);
      copy(rank, output, table_.bytes(output), work, 2 + others);
      rank.uses.add(output, now, now);
    }
    if (!is_backward(work.kind)) return;
    if (is_last(table_, rank_id, work, layer)) rank.uses.add(id(BufferKind::Output), now, now);
    if (layer > 0) return;
    const BufferId grad_input = id(BufferKind::GradInput);
    const bool hands_on = table_.facts(rank_id, work.chunk, layer).hands_on;
    copy(rank, grad_input, table_.bytes(grad_input), work, 1 + others + (hands_on ? 1 : 0));
    rank.uses.add(grad_input, now, now);
    if (hands_on) handing_on = grad_input;
  });
  if (handing_on == kNoBuffer) return;
  if (rank.handed_on != kNoBuffer) rank.uses.add(rank.handed_on, now, now);
  rank.handed_on = handing_on;
}

void LocalCopies::sent(const Sending& sending, const Clock& clock) {
  const std::int32_t layers = table_.layers(sending.rank, sending.chunk);
  if (layers == 0) return;
  const bool forward = sending.kind == Kind::SendForward;
  ranks_[RankId(sending.rank).index()].uses.add(
      table_.id(sending.rank, sending.chunk, forward ? layers - 1 : 0, sending.microbatch,
                forward ? BufferKind::Output : BufferKind::GradInput),
      clock.now(), sending.received);
}

}  // namespace capo

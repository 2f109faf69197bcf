#include "core/minimise/size.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace capo {

namespace {

// Returns the place of a kind among those of one chunk and microbatch, from 0.
int turn_of(Kind kind) {
  switch (kind) {
    case Kind::Unshard:
      return 0;
    case Kind::ReceiveForward:
      return 1;
    case Kind::Forward:
      return 2;
    case Kind::DispatchForward:
      return 3;
    case Kind::CombineForward:
      return 4;
    case Kind::SendForward:
      return 5;
    case Kind::ReceiveBackward:
      return 6;
    case Kind::Backward:
    case Kind::BackwardInput:
      return 7;
    case Kind::DispatchBackward:
      return 8;
    case Kind::CombineBackward:
      return 9;
    case Kind::SendBackward:
      return 10;
    case Kind::BackwardWeight:
      return 11;
    case Kind::WaitSendForward:
      return 12;
    case Kind::WaitSendBackward:
      return 13;
    case Kind::Reshard:
      return 14;
    case Kind::ReduceGradient:
      return 15;
    case Kind::WaitReduceGradient:
      return 16;
    case Kind::Idle:
      return 17;
  }
  CAPO_UNREACHABLE();
}

bool of_backward(Kind kind) {
  return turn_of(kind) >= turn_of(Kind::ReceiveBackward);
}

// Sorts `places[begin, end)` and counts the pairs that stood the wrong way round.
std::int64_t sort_and_count(std::vector<CanonicalPlace>& places, std::vector<CanonicalPlace>& spare,
                            std::size_t begin, std::size_t end) {
  if (end - begin < 2) return 0;
  const std::size_t middle = begin + (end - begin) / 2;
  std::int64_t inversions =
      sort_and_count(places, spare, begin, middle) + sort_and_count(places, spare, middle, end);
  std::size_t left = begin;
  std::size_t right = middle;
  for (std::size_t at = begin; at < end; ++at) {
    const bool takes_right = left == middle || (right < end && places[right] < places[left]);
    if (takes_right) inversions += static_cast<std::int64_t>(middle - left);
    spare[at] = places[takes_right ? right++ : left++];
  }
  std::copy(spare.begin() + static_cast<std::ptrdiff_t>(begin),
            spare.begin() + static_cast<std::ptrdiff_t>(end),
            places.begin() + static_cast<std::ptrdiff_t>(begin));
  return inversions;
}

std::int64_t inversions_of(const std::vector<Entry>& order, const RankOrder& rank,
                           Topology topology) {
  std::vector<CanonicalPlace> places;
  places.reserve(order.size());
  for (const Entry& entry : order) places.push_back(canonical_place(entry, rank, topology));
  std::vector<CanonicalPlace> spare(places.size());
  return sort_and_count(places, spare, 0, places.size());
}

void add_resets(Size& size, const std::vector<Reset>& resets) {
  size.entries += static_cast<std::int64_t>(resets.size());
  for (const Reset& reset : resets) size.numbers += reset.chunk + reset.microbatch + 1;
}

void add_order(Size& size, const std::vector<Entry>& order, const RankOrder& rank,
               Topology topology) {
  size.entries += static_cast<std::int64_t>(order.size());
  ++size.orders;
  for (const Entry& entry : order) {
    size.numbers += entry.chunk + entry.microbatch + 1;
    if (entry.group != Group::Alone) ++size.composites;
  }
  size.inversions += inversions_of(order, rank, topology);
}

}  // namespace

CanonicalPlace canonical_place(const Entry& entry, const RankOrder& rank, Topology topology) {
  const int turn = turn_of(entry.kind);
  std::int32_t microbatch = entry.microbatch;
  if (!has_microbatch(entry.kind) && entry.kind != Kind::Unshard) {
    microbatch = std::numeric_limits<std::int32_t>::max();
  }
  const std::size_t chunk = entry.chunk.index();
  if (topology == Topology::Independent || chunk >= rank.stages.size()) {
    return {microbatch, false, entry.chunk, turn};
  }
  const bool backward = of_backward(entry.kind);
  const std::int32_t stage = rank.stages[chunk];
  return {microbatch, backward, backward ? -stage : stage, turn};
}

Size size_of(const Schedule& schedule) {
  Size size;
  size.numbers = schedule.microbatches.value_or(0) + std::int64_t{schedule.stages.value_or(0)};
  size.declared = (schedule.microbatches ? 1 : 0) + (schedule.stages ? 1 : 0);
  for (const RankOrder& rank : schedule.ranks) {
    size.chunks += rank.chunks;
    // Under Custom the list of stages is the declaration of the chunks.
    if (rank.chunks_declared || schedule.topology == Topology::Custom) ++size.declared;
    if (rank.delay) ++size.declared;
    if (rank.layers.form != Layers::Form::Unstated) ++size.declared;
    add_order(size, rank.order, rank, schedule.topology);
    if (rank.replay) add_order(size, *rank.replay, rank, schedule.topology);
    add_resets(size, rank.resets);
  }
  return size;
}

}  // namespace capo

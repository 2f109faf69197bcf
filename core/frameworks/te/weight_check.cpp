#include "core/frameworks/te/weight_check.h"

#include <algorithm>
#include <cmath>

namespace capo::te {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The chunk (from 0) whose count the entry changes, or kNone: an entry such as -1.25 changes none.
std::size_t counted_chunk(const TeEntry& entry, std::size_t chunks) {
  if (!(entry.value <= -1)) return kNone;
  const double up = std::ceil(entry.value);
  const bool counted = up == entry.value || up - entry.value == 0.5;
  if (!counted || -up > static_cast<double>(chunks)) return kNone;
  return static_cast<std::size_t>(-up) - 1;
}

bool is_weight(const TeEntry& entry) {
  return std::ceil(entry.value) != entry.value;
}

}  // namespace

WeightCheck::WeightCheck(const std::vector<TeEntry>& order, std::int64_t chunks)
    : order_(order), chunks_(static_cast<std::size_t>(std::max<std::int64_t>(chunks, 0))) {
  for (const TeEntry& entry : order_) {
    if (const std::size_t c = counted_chunk(entry, chunks_.size()); c != kNone) ++chunks_[c].end;
  }
  std::size_t total = 0;
  for (Chunk& chunk : chunks_) {
    chunk.next = total;
    total += chunk.end;
    chunk.end = chunk.next;  // grows back while the positions are filled in
  }
  positions_.resize(total);
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    const std::size_t c = counted_chunk(order_[i], chunks_.size());
    if (c != kNone) positions_[chunks_[c].end++] = i;
  }
}

bool WeightCheck::passes(std::size_t i, std::size_t c) {
  Chunk& chunk = chunks_[c];
  if (i < chunk.cleared_until) return true;
  while (chunk.next < chunk.end && positions_[chunk.next] < i) ++chunk.next;
  std::int64_t open = 0;
  for (std::size_t at = chunk.next; at < chunk.end; ++at) {
    open += is_weight(order_[positions_[at]]) ? -1 : 1;
    if (open != 0) continue;
    chunk.cleared_until = positions_[at] + 1;
    return true;
  }
  return false;
}

}  // namespace capo::te

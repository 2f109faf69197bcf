#include "core/order/fuse_weights.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <span>

namespace capo {

namespace {

bool is_weight(const Entry& entry) {
  return entry.kind == Kind::BackwardWeight && entry.group == Group::Alone;
}

// Whether an entry may come before weight gradients that stand in front of it.
bool may_pass(const Entry& entry) {
  return (is_transfer(entry.kind) || is_send_wait(entry.kind)) && entry.group == Group::Alone;
}

// The position behind the last weight gradient that can be in one call with that at `begin`.
std::size_t end_of_run(std::span<const Entry> order, std::size_t begin, std::int32_t most) {
  std::size_t end = begin + 1;
  for (std::size_t at = end; at < order.size() && most > 1; ++at) {
    if (may_pass(order[at])) continue;
    if (!is_weight(order[at]) || order[at].chunk != order[begin].chunk) break;
    end = at + 1;
    --most;
  }
  return end;
}

// Makes the weight gradients of a run its end, and one composite. Returns how many they are.
std::int64_t fuse(std::vector<Entry>& order, std::size_t begin, std::size_t end) {
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(end);
  const auto call = std::stable_partition(first, last, may_pass);
  if (last - call == 1) return 1;
  for (auto entry = call; entry != last; ++entry) {
    entry->group = entry == call ? Group::Opens : Group::Continues;
  }
  return last - call;
}

// The entries up to the first reset behind `begin`: no call reaches over one.
std::span<const Entry> up_to_reset(const std::vector<Entry>& order,
                                   const std::vector<Reset>& resets, std::size_t begin) {
  const auto reset = std::find_if(resets.begin(), resets.end(),
                                  [begin](const Reset& each) { return each.behind > begin; });
  return std::span(order).first(reset == resets.end() ? order.size() : reset->behind);
}

void fuse_all(std::vector<Entry>& order, const std::vector<Reset>& resets, std::int32_t most,
              FusedWeights& fused) {
  for (std::size_t begin = 0; begin < order.size(); ++begin) {
    if (!is_weight(order[begin])) continue;
    const std::size_t end = end_of_run(up_to_reset(order, resets, begin), begin, most);
    const std::int64_t gradients = fuse(order, begin, end);
    begin = end - 1;
    if (gradients == 1) continue;
    ++fused.calls;
    fused.gradients += gradients;
  }
}

}  // namespace

FusedWeights fuse_weights(Schedule& schedule, std::int32_t most) {
  CAPO_ASSERT(most >= 1, "a call has a weight gradient");
  FusedWeights fused;
  for (RankOrder& rank : schedule.ranks) {
    const std::vector<Reset> none;
    fuse_all(rank.order, rank.replay ? none : rank.resets, most, fused);
    if (rank.replay) fuse_all(*rank.replay, rank.resets, most, fused);
  }
  return fused;
}

}  // namespace capo

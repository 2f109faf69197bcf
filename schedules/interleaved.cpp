// The schedules of a loop: chunk c of rank r is stage (c-1)p + r, so that a microbatch passes all
// ranks once for every chunk.
//
//   1f1b-interleaved, 2 ranks, 2 chunks, 4 microbatches, groups of 2; rank 0 runs 4 ahead
//   F0.0 F1.0 F0.1 F1.1 | F2.0 BW0.1 F3.0 BW1.1 F2.1 BW0.0 F3.1 BW1.0 | BW2.1 BW3.1 BW2.0 BW3.0
//
// Costs and memory are not looked at.
//
// Interleaved 1F1B: Narayanan et al., arXiv 2104.04473, with groups as Megatron-LM has them since;
// vpp.py of sail-sg/zero-bubble-pipeline-parallelism has groups of p only. Looped BFS:
// Lamy-Poirier, arXiv 2211.05953. Tested by interleaved_test.cpp.

#include "core/base/index.h"
#include "schedules/counted_order.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::schedules {

namespace {

std::optional<std::string> refuse_group(std::int32_t ranks, std::int32_t microbatches,
                                        std::int32_t group) {
  if (group < ranks) {
    return fmt::format("1f1b-interleaved needs groups of as many microbatches as ranks: {} < {}",
                       group, ranks);
  }
  if (group > microbatches) {
    return fmt::format("1f1b-interleaved fills one group of {} microbatches at least, not {}",
                       group, microbatches);
  }
  const std::int32_t left_over = microbatches % group;
  if (left_over == 0 || left_over >= ranks) return std::nullopt;
  return fmt::format(
      "1f1b-interleaved cannot end with a group smaller than its {} ranks: {} microbatches in "
      "groups of {} leave {}",
      ranks, microbatches, group, left_over);
}

}  // namespace

Generated interleaved_one_f_one_b(const Setting& setting, std::optional<std::int32_t> group) {
  if (auto refusal = refuse_counts("1f1b-interleaved", setting)) return *std::move(refusal);
  const MicrobatchGroups groups = {.microbatches = setting.microbatches,
                                   .chunks = setting.chunks,
                                   .group = group.value_or(setting.ranks)};
  if (auto refusal = refuse_group(setting.ranks, groups.microbatches, groups.group)) {
    return *std::move(refusal);
  }
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    const std::int64_t ahead =
        2 * std::int64_t{setting.ranks - 1 - rank} + std::int64_t{groups.chunks - 1} * groups.group;
    orders.push_back(interleaved_rank(groups, std::min(ahead, groups.steps())));
  }
  return orders;
}

Generated looped_bfs(const Setting& setting) {
  if (auto refusal = refuse_counts("looped-bfs", setting)) return *std::move(refusal);
  CountedOrder order(setting.chunks);
  for (std::int32_t chunk = 1; chunk <= setting.chunks; ++chunk) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.forward(chunk);
  }
  for (std::int32_t chunk = setting.chunks; chunk >= 1; --chunk) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.backward(chunk);
  }
  return PublishedOrders(as_index(setting.ranks), std::move(order).take());
}

}  // namespace capo::schedules

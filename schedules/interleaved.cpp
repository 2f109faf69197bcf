#include "schedules/interleaved.h"
#include "schedules/counted_order.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::published {

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

std::int32_t MicrobatchGroups::forward_chunk(std::int64_t step) const {
  const std::int64_t group_steps = std::int64_t{group} * chunks;
  const std::int64_t first = step - step % group_steps;  // of the step's group
  const std::int64_t size = std::min<std::int64_t>(group, microbatches - first / chunks);
  return static_cast<std::int32_t>((step - first) / size) + 1;
}

std::vector<Move> interleaved_rank(const MicrobatchGroups& groups, std::int64_t ahead) {
  CountedOrder order(groups.chunks);
  for (std::int64_t step = 0; step < ahead; ++step) order.forward(groups.forward_chunk(step));
  for (std::int64_t step = 0; step < groups.steps(); ++step) {
    if (ahead + step < groups.steps()) order.forward(groups.forward_chunk(ahead + step));
    order.backward(groups.backward_chunk(step));
  }
  return std::move(order).take();
}

Result<PublishedOrders, std::string> interleaved_one_f_one_b(const Setting& setting,
                                                             std::optional<std::int32_t> group) {
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

Result<PublishedOrders, std::string> looped_bfs(const Setting& setting) {
  if (auto refusal = refuse_counts("looped-bfs", setting)) return *std::move(refusal);
  CountedOrder order(setting.chunks);
  for (std::int32_t chunk = 1; chunk <= setting.chunks; ++chunk) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.forward(chunk);
  }
  for (std::int32_t chunk = setting.chunks; chunk >= 1; --chunk) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.backward(chunk);
  }
  return PublishedOrders(static_cast<std::size_t>(setting.ranks), std::move(order).take());
}

}  // namespace capo::published

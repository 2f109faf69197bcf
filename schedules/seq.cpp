#include "schedules/seq.h"

#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::published {

namespace {

/// The segments of a step, numbered from 0, and how many of them are a
/// microbatch.
struct Segments {
  std::int32_t count = 1;
  std::int32_t of_microbatch = 1;

  /// Of the backward that is the rank's `step`-th: microbatches ascend, their
  /// segments descend.
  [[nodiscard]] std::int32_t backward(std::int32_t step) const {
    const std::int32_t within = step % of_microbatch;
    return step - within + of_microbatch - 1 - within;
  }
};

std::vector<Move> rank_running_ahead(const Segments& segments, std::int32_t ahead) {
  std::vector<Move> order;
  order.reserve(2 * static_cast<std::size_t>(segments.count));
  std::int32_t next = 0;
  const auto forward = [&] { order.push_back({.kind = Kind::Forward, .microbatch = next++}); };
  while (next < ahead) forward();
  for (std::int32_t step = 0; step < segments.count; ++step) {
    if (next < segments.count) forward();
    order.push_back({.kind = Kind::Backward, .microbatch = segments.backward(step)});
  }
  return order;
}

}  // namespace

Result<PublishedOrders, std::string> seq_one_f_one_b(const Setting& setting,
                                                     std::int32_t segments) {
  if (auto refusal = refuse_counts("seq1f1b", setting, 1)) return *std::move(refusal);
  if (segments < 1) {
    return fmt::format("seq1f1b cuts a microbatch in one segment at least, not {}", segments);
  }
  const std::int64_t forwards = std::int64_t{setting.ranks} * setting.microbatches;
  if (forwards > kMostForwards / segments) {
    return fmt::format(
        "seq1f1b would have more than {} forwards: {} ranks, {} "
        "microbatches of {} segments",
        kMostForwards, setting.ranks, setting.microbatches, segments);
  }
  const Segments all{.count = setting.microbatches * segments, .of_microbatch = segments};
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(
        rank_running_ahead(all, std::min(setting.ranks - 2 - rank + segments, all.count)));
  }
  return orders;
}

}  // namespace capo::published

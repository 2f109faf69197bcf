// Seq1F1B: 1F1B on pieces of a sequence. Each microbatch is cut in k segments, and segments run
// ahead and in turn, so that the bubble and the memory of a rank shrink to a kth.
//
//   2 ranks, 2 microbatches, 2 segments; a number is that of a segment: 2 and 3
//   are microbatch 1 rank 0:  F0.0 F1.0 F2.0 BW1.0 F3.0 BW0.0 BW3.0 BW2.0 rank
//   1:  F0.0 F1.0 BW1.0 F2.0 BW0.0 F3.0 BW3.0 BW2.0
//
// A segment looks back at those before it. Forwards of a microbatch run from
// its first segment to its last, therefore, and backwards from the last to the
// first, whose keys and values gather gradients from all behind it.
//
// Segments are numbered as microbatches are: segment s of microbatch i is i * k
// + s, and the orders are those of m * k microbatches. Costs and memory, which
// are not looked at, would be those of a segment. That all segments cost the
// same, as the bubble of the paper has it, takes cuts that are shorter the
// further back a segment looks; an even cut makes later segments dearer.
//
// Sun et al., arXiv 2406.03488. Tested by seq_test.cpp.

#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::schedules {

namespace {

/// A step has `count` segments, numbered from 0, and a microbatch is `of_microbatch` of them.
struct Segments {
  std::int32_t count = 1;
  std::int32_t of_microbatch = 1;

  /// The segment of the rank's `step`-th backward: microbatches ascend, their segments descend.
  [[nodiscard]] std::int32_t backward(std::int32_t step) const {
    const std::int32_t within = step % of_microbatch;
    return step - within + of_microbatch - 1 - within;
  }
};

std::vector<Move> rank_running_ahead(const Segments& segments, std::int32_t ahead) {
  std::vector<Move> order;
  order.reserve(2 * as_index(segments.count));
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

Generated seq_one_f_one_b(const Setting& setting, std::int32_t segments) {
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

}  // namespace capo::schedules

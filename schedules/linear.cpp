// The schedules of one chunk a rank: GPipe, 1F1B, and the zero-bubble schedules H1 and H2 that were
// written down by hand rather than searched for.
//
//   2 ranks, 4 microbatches   rank 0                                rank 1
//   gpipe                     F0 F1 F2 F3 BW0 BW1 BW2 BW3           the same
//   1f1b                      F0 F1 BW0 F2 BW1 F3 BW2 BW3           F0 BW0 F1 BW1 F2 BW2 F3 BW3
//   zb-h1                     F0 F1 B0 W0 F2 B1 W1 F3 B2 W2 B3 W3   F0 B0 F1 B1 W0 F2 B2 W1 ... W3
//
// All rules are of the rank and the numbers alone; costs and memory are not looked at. Any number
// of microbatches is accepted. With fewer than a rank would run ahead, all of its forwards come
// first: such a schedule is still correct, but what the papers say of bubbles and memory no longer
// holds of it (ZB-H1 and H2 as published want twice as many microbatches as ranks).
//
// Qi et al., arXiv 2401.10241; basic1f1b.py and efficiency.py of
// sail-sg/zero-bubble-pipeline-parallelism. Tested by linear_test.cpp.

#include "schedules/counted_order.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace capo::schedules {

namespace {

constexpr std::int32_t kChunk = 1;

/// Lets `write` put down the moves of each rank.
template <typename Write>
Generated each_rank(std::string_view schedule, const Setting& setting, const Write& write) {
  if (auto refusal = refuse_counts(schedule, setting, 1)) return *std::move(refusal);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    CountedOrder order(1);
    write(rank, order);
    orders.push_back(std::move(order).take());
  }
  return orders;
}

/// H1 and H2 differ in the microbatches that a hop is worth: the rank above runs `per_hop` forwards
/// more ahead and keeps `per_hop` weight halves fewer back.
Generated hand_written(std::string_view schedule, const Setting& setting, std::int32_t per_hop) {
  return each_rank(schedule, setting, [&](std::int32_t rank, CountedOrder& order) {
    const std::int32_t ahead = std::min(per_hop * (setting.ranks - 1 - rank), setting.microbatches);
    const std::int32_t kept_back = per_hop * rank;
    for (std::int32_t i = 0; i < ahead; ++i) order.forward(kChunk);
    for (std::int32_t i = 0; i < setting.microbatches; ++i) {
      if (ahead + i < setting.microbatches) order.forward(kChunk);
      order.backward_input(kChunk);
      if (i >= kept_back) order.backward_weight();
    }
    while (order.owes_weights()) order.backward_weight();
  });
}

}  // namespace

Generated gpipe(const Setting& setting) {
  return each_rank("gpipe", setting, [&](std::int32_t, CountedOrder& order) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.forward(kChunk);
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.backward(kChunk);
  });
}

Generated one_f_one_b(const Setting& setting) {
  return each_rank("1f1b", setting, [&](std::int32_t rank, CountedOrder& order) {
    const std::int32_t ahead = std::min(setting.ranks - 1 - rank, setting.microbatches);
    for (std::int32_t i = 0; i < ahead; ++i) order.forward(kChunk);
    for (std::int32_t i = 0; i < setting.microbatches; ++i) {
      if (ahead + i < setting.microbatches) order.forward(kChunk);
      order.backward(kChunk);
    }
  });
}

Generated zero_bubble_h1(const Setting& setting) {
  return hand_written("zb-h1", setting, 1);
}

Generated zero_bubble_h2(const Setting& setting) {
  return hand_written("zb-h2", setting, 2);
}

}  // namespace capo::schedules

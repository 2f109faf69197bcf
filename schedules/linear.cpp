#include "schedules/linear.h"
#include "schedules/counted_order.h"
#include "schedules/setting_checks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace capo::published {

namespace {

constexpr std::int32_t kChunk = 1;

/// Lets `write` put down the moves of each rank.
template <typename Write>
Result<PublishedOrders, std::string> each_rank(std::string_view schedule, const Setting& setting,
                                               const Write& write) {
  if (auto refusal = refuse_counts(schedule, setting, 1)) return *std::move(refusal);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    CountedOrder order(1);
    write(rank, order);
    orders.push_back(std::move(order).take());
  }
  return orders;
}

/// H1 and H2 differ in how many microbatches a hop is worth: so many forwards more the rank above
/// runs ahead, and so many weight halves fewer it keeps back.
Result<PublishedOrders, std::string> hand_written(std::string_view schedule, const Setting& setting,
                                                  std::int32_t per_hop) {
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

Result<PublishedOrders, std::string> gpipe(const Setting& setting) {
  return each_rank("gpipe", setting, [&](std::int32_t, CountedOrder& order) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.forward(kChunk);
    for (std::int32_t i = 0; i < setting.microbatches; ++i) order.backward(kChunk);
  });
}

Result<PublishedOrders, std::string> one_f_one_b(const Setting& setting) {
  return each_rank("1f1b", setting, [&](std::int32_t rank, CountedOrder& order) {
    const std::int32_t ahead = std::min(setting.ranks - 1 - rank, setting.microbatches);
    for (std::int32_t i = 0; i < ahead; ++i) order.forward(kChunk);
    for (std::int32_t i = 0; i < setting.microbatches; ++i) {
      if (ahead + i < setting.microbatches) order.forward(kChunk);
      order.backward(kChunk);
    }
  });
}

Result<PublishedOrders, std::string> zero_bubble_h1(const Setting& setting) {
  return hand_written("zb-h1", setting, 1);
}

Result<PublishedOrders, std::string> zero_bubble_h2(const Setting& setting) {
  return hand_written("zb-h2", setting, 2);
}

}  // namespace capo::published

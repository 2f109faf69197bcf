// DualPipe and DualPipeV: two streams of microbatches that run through the ranks against each
// other, so that in the steady state every forward of one is overlapped with a backward of the
// other.
//
//   dualpipe, 2 ranks, 6 microbatches: F2.0&BW1.1 is one overlapped action
//   rank 0: F0.0 F0.1 F1.0 BW0.1 F1.1&BW0.0 F2.0&BW1.1 F2.1&BW1.0 BW2.1 B2.0 W2.0
//   rank 1: the same with .0 and .1 exchanged
//
// DualPipe's streams are two pipelines, with a copy of the weights each: chunk 1 is stage `rank` of
// direction 0, chunk 2 is stage p-1-rank of direction 1, and each direction numbers its own half of
// the microbatches from 0. The ranks up to the middle start with direction 0, the others with
// direction 1. DualPipeV cuts DualPipe in the middle: its two streams are the way down (chunk 1,
// stage `rank`) and the way back (chunk 2, stage 2p-1-rank) of the same microbatches.
//
// A rank's order depends on how far it is from where its own stream enters, and on nothing else;
// costs and memory are not looked at. Fewer than 2p microbatches would leave ranks without a steady
// state and are refused, as by the authors.
//
// DeepSeek-AI, arXiv 2412.19437; dualpipe.py and dualpipev.py of deepseek-ai/DualPipe. Tested by
// dual_pipe_test.cpp.

#include "schedules/counted_order.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace capo::schedules {

namespace {

/// A rank's place as its own order sees it: the stream `own` reaches it first, and `other` comes
/// towards it.
struct Stance {
  std::int32_t from_entry = 0;    ///< ranks between this one and where `own` enters
  std::int32_t from_turn = 0;     ///< ranks between this one and where the streams meet
  std::int32_t microbatches = 0;  ///< each stream has so many
  std::int32_t own = 1;
  std::int32_t other = 2;
};

/// Runs forwards of `own` until `other` arrives, then forwards of both in turn, and then forwards
/// of `other` behind its backwards while those of `own` are still on their way.
void fill(const Stance& stance, CountedOrder& order) {
  for (std::int32_t i = 0; i < 2 * stance.from_turn; ++i) order.forward(stance.own);
  for (std::int32_t i = 0; i <= stance.from_entry; ++i) {
    order.forward(stance.own);
    order.forward(stance.other);
  }
  for (std::int32_t i = 0; i < stance.from_turn; ++i) {
    order.backward_input(stance.other);
    order.backward_weight();
    order.forward(stance.other);
  }
}

/// Runs every forward together with a backward of the opposite stream, and at last, when `own` has
/// no forward left, the backwards of `other` alone.
void overlap_streams(const Stance& stance, CountedOrder& order) {
  const std::int32_t forwards_so_far = 2 * stance.from_turn + stance.from_entry + 1;
  for (std::int32_t i = forwards_so_far; i < stance.microbatches; ++i) {
    // All ranks wait for this backward at the place where the streams meet, so it runs alone.
    if (i == forwards_so_far && stance.from_turn == 0) {
      order.forward(stance.own);
      order.backward(stance.other);
    } else {
      order.overlap(stance.own, stance.other);
    }
    order.overlap(stance.other, stance.own);
  }
  for (std::int32_t i = 0; i < stance.from_turn; ++i) {
    order.backward(stance.other);
    order.overlap(stance.other, stance.own);
  }
}

/// Runs backwards of both streams in turn. The second half of them runs without weight halves,
/// which fill the waiting times up to the end.
void drain(const Stance& stance, CountedOrder& order) {
  const std::int32_t whole = stance.from_entry + 1;
  for (std::int32_t i = 0; i < 2 * whole; ++i) {
    const std::int32_t chunk = i % 2 == 0 ? stance.other : stance.own;
    if (i < whole) {
      order.backward(chunk);
    } else {
      order.backward_input(chunk);
    }
  }
  for (std::int32_t i = 0; i < stance.from_turn; ++i) {
    order.backward_weight();
    order.backward_input(stance.own);
  }
  while (order.owes_weights()) order.backward_weight();
}

std::vector<Move> order_at(const Stance& stance) {
  CountedOrder order(2);
  fill(stance, order);
  overlap_streams(stance, order);
  drain(stance, order);
  return std::move(order).take();
}

std::optional<std::string> refuse(std::string_view schedule, const Setting& setting) {
  if (auto refusal = refuse_counts(schedule, setting, 2)) return refusal;
  if (setting.microbatches / 2 >= setting.ranks) return std::nullopt;
  return fmt::format("{} needs two microbatches for every rank at least, not {} for {} ranks",
                     schedule, setting.microbatches, setting.ranks);
}

}  // namespace

Generated dual_pipe(const Setting& setting) {
  if (auto refusal = refuse("dualpipe", setting)) return *std::move(refusal);
  const std::pair<const char*, std::int32_t> halved[] = {{"ranks", setting.ranks},
                                                         {"microbatches", setting.microbatches}};
  for (const auto& [what, count] : halved) {
    if (count % 2 == 0) continue;
    return fmt::format("dualpipe needs an even number of {}, not {}", what, count);
  }
  const std::int32_t half = setting.ranks / 2;
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    const std::int32_t from_entry = std::min(rank, setting.ranks - 1 - rank);
    const bool starts_with_first = rank < half;
    orders.push_back(order_at({.from_entry = from_entry,
                               .from_turn = half - 1 - from_entry,
                               .microbatches = setting.microbatches / 2,
                               .own = starts_with_first ? 1 : 2,
                               .other = starts_with_first ? 2 : 1}));
  }
  return orders;
}

Generated dual_pipe_v(const Setting& setting) {
  if (auto refusal = refuse("dualpipev", setting)) return *std::move(refusal);
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
    orders.push_back(order_at({.from_entry = rank,
                               .from_turn = setting.ranks - 1 - rank,
                               .microbatches = setting.microbatches}));
  }
  return orders;
}

}  // namespace capo::schedules

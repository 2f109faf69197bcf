// The tables that torch.distributed.pipelining makes of its own schedules, as orders: each
// rank's actions in their sequence, without the idle slots that torch pads tables with and without
// the reductions with which 2.11 and 2.15 end the tables of GPipe and 1F1B; but for those the two
// make the same ones.
//
//   Interleaved1F1B, 2 ranks, 2 stages each, 2 microbatches
//   torch    0F0,0F1,2F0,2F1,,,,2B0,,2B1,,0B0,,0B1
//            ,1F0,1F1,,3F0,3B0,3F1,3B1,,1B0,,1B1
//   here     F0.0 F1.0 F0.1 F1.1 BW0.1 BW1.1 BW0.0 BW1.0
//            F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0
//
// Chunk c of a rank is its c-th stage from the model's input: stage (c-1)p + rank of the loops,
// stages `rank` and 2p-1-rank of the V schedules. A backward is whole (B) or split (I and W).
//
// Every order is torch's with one exception. torch numbers the forwards of 1F1B's last rank
// from 1 instead of from 0, so that its own validator refuses the table; the one made here is
// right.
//
// The rules are known from torch's schedules.py. If a class goes by the name of a published
// schedule but follows another rule, the rule says so. Tested by torch_tables_test.cpp.

#include "core/base/assert.h"
#include "schedules/counted_order.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::schedules {

namespace {

constexpr std::string_view kPrefix = "Schedule";

/// The chunks of a V are the way down and the way back.
constexpr std::int32_t kDown = 1;
constexpr std::int32_t kBack = 2;

template <typename OrderOfRank>
PublishedOrders each_rank(const Setting& setting, const OrderOfRank& order_of_rank) {
  PublishedOrders orders;
  for (std::int32_t rank = 0; rank < setting.ranks; ++rank) orders.push_back(order_of_rank(rank));
  return orders;
}

std::vector<Move> looped_bfs_rank(const Setting& setting) {
  std::vector<Move> order;
  for (std::int32_t chunk = 1; chunk <= setting.chunks; ++chunk) {
    for (std::int32_t i = 0; i < setting.microbatches; ++i) {
      order.push_back({.kind = Kind::Forward, .chunk = chunk, .microbatch = i});
    }
  }
  for (std::int32_t chunk = setting.chunks; chunk >= 1; --chunk) {
    for (std::int32_t i = setting.microbatches - 1; i >= 0; --i) {
      order.push_back({.kind = Kind::Backward, .chunk = chunk, .microbatch = i});
    }
  }
  return order;
}

/// PyTorch cuts m microbatches in max(1, m div p) rounds of one size. Megatron's groups differ: the
/// user says how large they are, and the last may be smaller.
Result<MicrobatchGroups, std::string> rounds_of(TorchClass torch_class, const Setting& setting) {
  const std::int32_t rounds = std::max(1, setting.microbatches / setting.ranks);
  if (setting.microbatches % rounds != 0) {
    return fmt::format(
        "{} cuts {} microbatches on {} ranks in {} rounds, which do not come out even",
        name_of(torch_class), setting.microbatches, setting.ranks, rounds);
  }
  return MicrobatchGroups{.microbatches = setting.microbatches,
                          .chunks = setting.chunks,
                          .group = setting.microbatches / rounds};
}

/// The number of a rank's forwards before its first backward, with `per_hop` more for every hop to
/// the last rank.
std::int64_t forwards_ahead(const Setting& setting, const MicrobatchGroups& rounds,
                            std::int32_t rank, std::int32_t per_hop) {
  const std::int64_t ahead = std::int64_t{rounds.chunks - 1} * rounds.group +
                             std::int64_t{per_hop} * (setting.ranks - 1 - rank);
  return std::min(ahead, rounds.steps());
}

/// ZB-H1 with chunks: each rank keeps back one weight half more than the rank above it.
std::vector<Move> interleaved_zero_bubble_rank(const MicrobatchGroups& rounds, std::int64_t ahead,
                                               std::int32_t rank) {
  CountedOrder order(rounds.chunks);
  for (std::int64_t step = 0; step < ahead; ++step) order.forward(rounds.forward_chunk(step));
  for (std::int64_t step = 0; step < rounds.steps(); ++step) {
    if (ahead + step < rounds.steps()) order.forward(rounds.forward_chunk(ahead + step));
    order.backward_input(rounds.backward_chunk(step));
    if (step >= rank) order.backward_weight();
  }
  while (order.owes_weights()) order.backward_weight();
  return std::move(order).take();
}

void forward_and_split_backward(std::int32_t chunk, CountedOrder& order) {
  order.forward(chunk);
  order.backward_input(chunk);
  order.backward_weight(chunk);
}

/// ZB-V by hand, made for at least 2p-1 microbatches; it has no bubble if F, I and W take equally
/// long.
std::vector<Move> zbv_rank(std::int32_t ranks, std::int32_t microbatches, std::int32_t rank) {
  CountedOrder order(2);
  const std::int32_t to_turn = ranks - rank;  // counts this rank as well
  for (std::int32_t i = 0; i < 2 * to_turn - 1; ++i) order.forward(kDown);
  for (std::int32_t i = 0; i < rank; ++i) {
    order.forward(kBack);
    order.forward(kDown);
  }
  for (std::int32_t i = 0; i < to_turn; ++i) forward_and_split_backward(kBack, order);
  const std::int32_t gone_down = 2 * to_turn - 1 + rank;
  for (std::int32_t i = 0; i < microbatches - ranks; ++i) {
    if (gone_down + i < microbatches) order.forward(kDown);
    order.backward_input(kDown);
    order.backward_weight(kDown);
    forward_and_split_backward(kBack, order);
  }
  for (std::int32_t i = 0; i < rank; ++i) {
    order.backward_input(kDown);
    order.backward_input(kBack);
  }
  for (std::int32_t i = 0; i < to_turn; ++i) {
    order.backward_input(kDown);
    order.backward_weight(kDown);
  }
  for (std::int32_t i = 0; i < rank; ++i) order.backward_weight(kBack);
  for (std::int32_t i = 0; i < rank; ++i) order.backward_weight(kDown);
  return std::move(order).take();
}

/// With fewer microbatches than the V holds, the order leaves out the missing ones.
std::vector<Move> zbv_rank_of_any(const Setting& setting, std::int32_t rank) {
  const std::int32_t full = std::max(2 * setting.ranks - 1, setting.microbatches);
  std::vector<Move> order = zbv_rank(setting.ranks, full, rank);
  std::erase_if(order, [&](const Move& move) { return move.microbatch >= setting.microbatches; });
  return order;
}

std::optional<std::string> refuse(TorchClass torch_class, const Setting& setting) {
  const std::string_view name = name_of(torch_class);
  switch (torch_class) {
    case TorchClass::GPipe:
      return refuse_counts(name, setting, 1);
    case TorchClass::OneFOneB:
      if (auto refusal = refuse_counts(name, setting, 1)) return refusal;
      if (setting.microbatches >= setting.ranks) return std::nullopt;
      return fmt::format("{} needs a microbatch for every rank at least, not {} for {} ranks", name,
                         setting.microbatches, setting.ranks);
    case TorchClass::LoopedBfs:
    case TorchClass::InterleavedOneFOneB:
    case TorchClass::InterleavedZeroBubble:
      return refuse_counts(name, setting);
    case TorchClass::ZbvZeroBubble:
    case TorchClass::DualPipeV:
      return refuse_counts(name, setting, 2);
  }
  CAPO_ASSERT(false, "every class of torch has its preconditions");
  return std::nullopt;
}

Result<PublishedOrders, std::string> interleaved(TorchClass torch_class, const Setting& setting) {
  const auto rounds = rounds_of(torch_class, setting);
  if (!rounds) return rounds.error();
  return each_rank(setting, [&](std::int32_t rank) {
    return torch_class == TorchClass::InterleavedOneFOneB
               ? interleaved_rank(*rounds, forwards_ahead(setting, *rounds, rank, 2))
               : interleaved_zero_bubble_rank(*rounds, forwards_ahead(setting, *rounds, rank, 1),
                                              rank);
  });
}

Result<PublishedOrders, std::string> order_of(TorchClass torch_class, const Setting& setting) {
  switch (torch_class) {
    case TorchClass::GPipe:
      return gpipe(setting);
    case TorchClass::OneFOneB:
      return one_f_one_b(setting);
    case TorchClass::LoopedBfs:
      return each_rank(setting, [&](std::int32_t) { return looped_bfs_rank(setting); });
    case TorchClass::InterleavedOneFOneB:
    case TorchClass::InterleavedZeroBubble:
      return interleaved(torch_class, setting);
    case TorchClass::ZbvZeroBubble:
      return each_rank(setting, [&](std::int32_t rank) { return zbv_rank_of_any(setting, rank); });
    case TorchClass::DualPipeV:
      return dual_pipe_v(setting);
  }
  CAPO_ASSERT(false, "every class of torch has its order");
  return std::string();
}

}  // namespace

std::string_view name_of(TorchClass torch_class) {
  switch (torch_class) {
    case TorchClass::GPipe:
      return "GPipe";
    case TorchClass::OneFOneB:
      return "1F1B";
    case TorchClass::LoopedBfs:
      return "LoopedBFS";
    case TorchClass::InterleavedOneFOneB:
      return "Interleaved1F1B";
    case TorchClass::InterleavedZeroBubble:
      return "InterleavedZeroBubble";
    case TorchClass::ZbvZeroBubble:
      return "ZBVZeroBubble";
    case TorchClass::DualPipeV:
      return "DualPipeV";
  }
  CAPO_ASSERT(false, "every class of torch has a name");
  return {};
}

std::optional<TorchClass> torch_class_named(std::string_view word) {
  if (word.starts_with(kPrefix)) word.remove_prefix(kPrefix.size());
  const auto* found = std::find_if(kTorchClasses.begin(), kTorchClasses.end(),
                                   [&](TorchClass c) { return name_of(c) == word; });
  if (found == kTorchClasses.end()) return std::nullopt;
  return *found;
}

Result<PublishedOrders, std::string> torch_table(TorchClass torch_class,
                                                 const TorchSetting& setting) {
  const Setting same = {.ranks = setting.ranks,
                        .microbatches = setting.microbatches,
                        .chunks = setting.stages_per_rank};
  if (auto refusal = refuse(torch_class, same)) return *std::move(refusal);
  return order_of(torch_class, same);
}

}  // namespace capo::schedules

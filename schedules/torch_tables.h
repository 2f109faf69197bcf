// The tables that torch.distributed.pipelining 2.11 makes of its own schedules, as orders: each
// rank's actions in their sequence, without the idle slots that torch pads tables with and without
// REDUCE_GRAD.
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
// Every order is torch's with one exception. torch 2.11 numbers the forwards of 1F1B's last rank
// from 1 instead of from 0, so that its own validator refuses the table; the one made here is
// right.
//
// The rules are known from torch's schedules.py. If a class goes by the name of a published
// schedule but follows another rule, the rule says so. Tested by torch_tables_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::published {

enum class TorchClass : std::uint8_t {
  GPipe,
  OneFOneB,
  LoopedBfs,  ///< backwards take the microbatches in descending order
  InterleavedOneFOneB,
  InterleavedZeroBubble,
  ZbvZeroBubble,
  DualPipeV,
};

constexpr std::array<TorchClass, 7> kTorchClasses = {
    TorchClass::GPipe,
    TorchClass::OneFOneB,
    TorchClass::LoopedBfs,
    TorchClass::InterleavedOneFOneB,
    TorchClass::InterleavedZeroBubble,
    TorchClass::ZbvZeroBubble,
    TorchClass::DualPipeV,
};

/// torch's spelling without "Schedule": "GPipe", "1F1B", "LoopedBFS", "Interleaved1F1B",
/// "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV".
[[nodiscard]] std::string_view name_of(TorchClass torch_class);
/// Takes the word with or without "Schedule" before it; nullopt if it names no class.
[[nodiscard]] std::optional<TorchClass> torch_class_named(std::string_view word);

struct TorchSetting {
  std::int32_t ranks = 1;
  std::int32_t stages_per_rank = 1;
  std::int32_t microbatches = 1;

  friend bool operator==(const TorchSetting&, const TorchSetting&) = default;
};

/// Refuses what torch's constructor refuses, and a setting without a rank, stage or microbatch:
///
/// - GPipe and 1F1B have one stage a rank, and 1F1B a microbatch for every rank;
/// - the V schedules have two stages a rank, and DualPipeV two microbatches for every rank;
/// - the interleaved ones cut m microbatches in max(1, m div p) rounds, which must come out even.
[[nodiscard]] Result<PublishedOrders, std::string> torch_table(TorchClass torch_class,
                                                               const TorchSetting& setting);

}  // namespace capo::published

// The generators of published schedules: functions from a setting to the orders of all ranks.
//
//   one_f_one_b({.ranks = 2, .microbatches = 2})   ->   F0 F1 BW0 BW1
//                                                       F0 BW0 F1 BW1
//
// Each returns one sentence if the setting has no such schedule. The head of the file that defines
// a generator says what the schedule is, shows one, and names its paper; catalogue.h lists them by
// name. PyTorch's own tables are the last ones here.
//
// Tested by golden_orders_test.cpp and by a test beside each generator's name.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::schedules {

using Generated = Result<PublishedOrders, std::string>;

// These are in linear.cpp: one chunk a rank and any number of microbatches; costs and memory are
// not looked at.

/// All forwards, then all backwards, whole. A rank holds every microbatch at once.
[[nodiscard]] Generated gpipe(const Setting& setting);

/// Rank r of p runs p-1-r forwards ahead, then a forward and a whole backward in turn. It holds p-r
/// microbatches.
[[nodiscard]] Generated one_f_one_b(const Setting& setting);

/// 1F1B with split backwards, where rank r keeps back r weight halves to fill its drain. Every rank
/// holds p microbatches at most until their weight half is done.
[[nodiscard]] Generated zero_bubble_h1(const Setting& setting);

/// H1 with twice the forwards ahead and twice the weight halves kept back: 2p-1 microbatches.
[[nodiscard]] Generated zero_bubble_h2(const Setting& setting);

// These are in files of their own name, or of their family's: interleaved.cpp, seq.cpp,
// group_interleaved.cpp, chimera.cpp, dual_pipe.cpp, hanayo.cpp.

/// Megatron-LM's interleaved 1F1B: rank r of p with v chunks and groups of g runs
/// 2(p-1-r) + (v-1)g forwards ahead (all of them if there are no more), then a forward and a whole
/// backward in turn. It holds at most one more chunk's activations than it runs ahead. Accepted is
/// p <= g <= m if groups come out even or the last one is no smaller than p; without a group, g is
/// p. One chunk makes it 1F1B with twice as many forwards ahead.
[[nodiscard]] Generated interleaved_one_f_one_b(const Setting& setting,
                                                std::optional<std::int32_t> group = std::nullopt);

/// All forwards chunk by chunk, then all backwards, whole, from the last chunk to the first;
/// microbatches ascend throughout. With one chunk it is GPipe.
[[nodiscard]] Generated looped_bfs(const Setting& setting);

/// Rank r of p runs p-2-r+k forwards of segments ahead, then a forward and a whole backward in
/// turn. It holds p-1-r+k segments. A rank has one chunk; with one segment, the fewest, it is 1F1B.
[[nodiscard]] Generated seq_one_f_one_b(const Setting& setting, std::int32_t segments);

/// Any number of ranks, microbatches and chunks, and any group, from 1; the last group may be
/// short.
[[nodiscard]] Generated group_interleaved(const Setting& setting, std::int32_t group);

/// Two directions, each with its copy of the weights: an even number p of ranks with two chunks
/// each, and a multiple of p microbatches, both directions together.
[[nodiscard]] Generated chimera(const Setting& setting);

/// Two directions as well: an even number p of ranks with two chunks each, and an even number of
/// microbatches, both directions together, from 2p on.
[[nodiscard]] Generated dual_pipe(const Setting& setting);

/// Any number p of ranks with two chunks each, and any number of microbatches from 2p on.
[[nodiscard]] Generated dual_pipe_v(const Setting& setting);

/// An even number of chunks a rank, any number of ranks and of microbatches, and costs that are
/// finite and not negative, on which the order depends.
[[nodiscard]] Generated hanayo(const Setting& setting);

// These are on a V, with two chunks a rank: one_f_one_b_v.cpp, v_greedy.cpp and v_adaptive.cpp.

/// Any number of ranks and microbatches, from 1.
[[nodiscard]] Generated one_f_one_b_v(const Setting& setting);
[[nodiscard]] Generated v_half(const Setting& setting);
[[nodiscard]] Generated v_min(const Setting& setting);

/// Two ranks at least; refuses a limit that no block keeps.
[[nodiscard]] Generated v_adaptive(const Setting& setting);

// These search with the setting's costs and memory: zero_bubble_search.cpp and
// zero_bubble_v_search.cpp.

/// One chunk a rank, stage s on rank s; ZB-1p, ZB-1.5p and ZB-2p are the limits of 1, 1.5 and 2
/// times `ranks` forwards. Every limit that holds one microbatch is accepted.
[[nodiscard]] Generated zero_bubble_search(const Setting& setting);

/// Two chunks a rank, alike in their times, which are those of a chunk, like the memory; ZB-V is
/// the limit of 2 times `ranks` forwards. Every limit that holds one microbatch, both its chunks,
/// is accepted.
[[nodiscard]] Generated zero_bubble_v_search(const Setting& setting);

// These are PyTorch's own: torch_tables.cpp.

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

}  // namespace capo::schedules

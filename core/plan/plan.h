// A plan gives every buffer of a step its address, and tells how much memory that takes.
//
// Addresses are bytes within one of the regions of a rank: static inputs, static gradient outputs,
// the pool, and copies that are made outside of it. capo's own plan uses the pool for everything
// but the scratch of weight gradients on a stream of their own. Two buffers of one rank share
// memory exactly if their ranges meet. Where a layer reads the tensor itself that its neighbour
// made, the two buffers are one. A plan is a value that knows no CUDA; engines allocate its
// regions. core/frameworks/assign.h makes plans. Tested by safe_plan_test.cpp and
// tests/core/frameworks/te/reuse_test.cpp.

#pragma once

#include "core/plan/buffers.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace capo {

constexpr std::int64_t kNowhere = -1;  ///< the address of a buffer without bytes

enum class Region : std::uint8_t {
  StaticInputs,
  GradOutputs,
  Pool,
  WeightScratch,
  Receives,
  Copies
};

inline constexpr std::array kRegions{Region::StaticInputs,  Region::GradOutputs, Region::Pool,
                                     Region::WeightScratch, Region::Receives,    Region::Copies};

/// "inputs", "gradients", "pool", "scratch", "receives", "copies", as plans in files have them.
[[nodiscard]] constexpr std::string_view name_of(Region region) {
  constexpr std::array<std::string_view, kRegions.size()> kNames{"inputs",  "gradients", "pool",
                                                                 "scratch", "receives",  "copies"};
  return kNames[static_cast<std::size_t>(region)];
}

[[nodiscard]] constexpr std::int64_t address_in(Region region, std::int64_t offset) {
  return (static_cast<std::int64_t>(region) << kAddressBits) | offset;
}
[[nodiscard]] constexpr Region region_of(std::int64_t address) {
  return static_cast<Region>(address >> kAddressBits);
}
[[nodiscard]] constexpr std::int64_t offset_of(std::int64_t address) {
  return address & ((std::int64_t{1} << kAddressBits) - 1);
}

/// Buffers of a rank's transfers, which lie beside those of its graphs.
struct TransferMemory {
  std::size_t receives = 0;  ///< slots that receives are posted into
  std::int64_t receive_bytes = 0;
  std::size_t sends = 0;  ///< outputs and grad inputs at once whose send is not over for certain
  std::int64_t send_bytes = 0;  ///< their most; they are part of the pool

  friend bool operator==(const TransferMemory&, const TransferMemory&) = default;
};

/// Memory of a rank's buffers, in bytes, or in units if sizes are not declared.
struct RankMemory {
  std::size_t input_slots = 0;  ///< distinct static inputs
  std::int64_t static_inputs = 0;
  std::int64_t grad_outputs = 0;
  std::int64_t pool = 0;
  std::int64_t weights = 0;      ///< declared bytes of its layers' weights; no part of the peak
  std::uint32_t peak_entry = 0;  ///< the entry of its order that first reaches the peak
  /// The most that the passes before capture take, static inputs among it; 0 if there are none.
  std::int64_t warm_up = 0;
  std::uint32_t warm_up_entry = 0;  ///< the entry of its order that first takes so much
  std::int64_t lower_bound = 0;     ///< the heaviest set of buffers of which no two may share
  TransferMemory transfers;         ///< receives are no part of the peak

  [[nodiscard]] std::int64_t peak() const { return static_inputs + grad_outputs + pool; }
  /// Whether more is taken before capture than ever after.
  [[nodiscard]] bool peaks_in_warm_up() const { return warm_up > peak(); }
};

struct Plan {
  PlanKind kind = PlanKind::Te;
  Granularity granularity = Granularity::PerAction;
  std::vector<std::int64_t> address;  ///< by buffer; those of receives may be left out
  std::vector<RankMemory> ranks;
  /// Says by buffer of which buffer it is the tensor: a layer reads what its neighbour made.
  /// Empty: every buffer is a tensor of its own.
  std::vector<BufferId> tensor;
  /// Says by buffer at which address a graph makes what is then copied to its own. Empty or
  /// kNowhere: it is made where it lies.
  std::vector<std::int64_t> made;

  [[nodiscard]] BufferId tensor_of(BufferId buffer) const {
    return buffer < tensor.size() ? tensor[buffer] : buffer;
  }
  [[nodiscard]] std::int64_t made_at(BufferId buffer) const {
    return buffer < made.size() ? made[buffer] : kNowhere;
  }

  /// kNowhere: the buffer has no bytes, or the plan says nothing of it.
  [[nodiscard]] std::int64_t at(BufferId buffer) const {
    return buffer < address.size() ? address[buffer] : kNowhere;
  }
};

}  // namespace capo

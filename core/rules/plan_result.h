// A plan's outcome as a plain value: how much memory it takes, and which memory is read too late.

#pragma once

#include "core/diag/diagnostic.h"
#include "core/plan/hazards.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace capo {

/// Memory that is read after it was taken over, for programs.
struct FoundHazard {
  HazardKind kind = HazardKind::StaticInput;
  Buffer victim;
  WitnessEntry writer;
  WitnessEntry reader;
  bool possible = false;  ///< it depends on PyTorch's allocator, or on operands nobody declared
  bool race = false;
  bool by_replay = false;  ///< replayed as captured there would be none

  friend bool operator==(const FoundHazard&, const FoundHazard&) = default;
};

/// The outcome of a plan.
struct PlanResult {
  PlanKind kind = PlanKind::Te;
  bool declared = false;
  bool sized = false;  ///< memory is in bytes; else in units, one a buffer
  std::vector<RankMemory> ranks;
  std::vector<FoundHazard> hazards;
};

/// Whether any rank receives or sends.
[[nodiscard]] inline bool has_transfers(const PlanResult& plan) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const RankMemory& memory) { return memory.transfers != TransferMemory{}; });
}

}  // namespace capo

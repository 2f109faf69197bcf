// What minimise() is asked for, and what it gives.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace capo {

struct MinimiseOptions {
  std::uint64_t max_checks = 20'000;
  Limits limits;  ///< of a schedule's text
  /// So many ranks, from 0, are numbered by something outside the schedule and stay.
  std::size_t fixed_ranks = 0;
  bool fixed_chunks = false;  ///< likewise all chunks
};

struct Minimised {
  Schedule schedule;
  std::uint64_t checks = 0;
  bool at_limit = false;  ///< max_checks ended it, and it may not be minimal
};

using StillBroken = std::function<bool(const Schedule&)>;

}  // namespace capo

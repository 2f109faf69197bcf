// The ranks that one process replays, which follow each other: process 1 of two has ranks 2 and 3
// of four.

#pragma once

#include <algorithm>
#include <cstdint>

namespace capo::run {

struct RankRange {
  std::int32_t first = 0;
  std::int32_t end = 0;

  [[nodiscard]] constexpr bool contains(std::int32_t rank) const {
    return first <= rank && rank < end;
  }
};

/// How ranks are divided among processes; the last process may have fewer than the others.
struct Division {
  std::int32_t ranks = 0;
  std::int32_t per_process = 1;

  [[nodiscard]] constexpr std::int32_t processes() const {
    return (ranks + per_process - 1) / per_process;
  }
  [[nodiscard]] constexpr std::int32_t home(std::int32_t rank) const { return rank / per_process; }
  [[nodiscard]] constexpr RankRange of(std::int32_t process) const {
    return {std::min(process * per_process, ranks), std::min((process + 1) * per_process, ranks)};
  }
};

}  // namespace capo::run

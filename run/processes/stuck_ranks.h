// The state in which the ranks of a run wait for each other, told by the processes that have them.
//
//   no message came for 5 s, and ranks are stuck:
//     rank 0 waits for rank 1 to receive message 1 from rank 0 to rank 1, ...
//     rank 1 waits for rank 0 to receive message 0 from rank 1 to rank 0, ...
//     in a circle: rank 0 for rank 1, which waits for rank 0
//
// Tested by processes_test.cpp.

#pragma once

#include "run/processes/processes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace capo::run {

struct StuckRank {
  std::int32_t rank = 0;
  std::int32_t awaited = -1;  ///< the rank that it waits for; -1: all of them, or nobody
  std::string words;          ///< "waits for rank 1 to send message 0 ..."
};

/// All processes call when they have waited too long. At rank 0 the state of all ranks; elsewhere
/// empty, or, if rank 0 does not answer, what this process waits for.
[[nodiscard]] std::string stuck_state_of(Processes& processes, const std::vector<StuckRank>& own,
                                         std::int32_t ranks);

}  // namespace capo::run

// to_te_list() writes a rank's order as a TE list, or says why TE's notation cannot hold it.
//
//   F1.0 F1.1 B1.0 W1.0 B1.1 W1.1   ->   1 1 -1 -1.5 -1 -1.5
//
// TE's list knows forwards, backwards and delayed weight gradients of chunks, first in, first out.
// Transfers, dispatch and combine, idle slots, composites, chunks that split only some backwards,
// and microbatches out of turn have no notation. Entries keep their spans. Tested by
// to_te_list_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/inexpressible.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <string>
#include <vector>

namespace capo {

[[nodiscard]] Result<TeList, Inexpressible> to_te_list(const RankOrder& rank,
                                                       const std::vector<Entry>& order,
                                                       Beside beside = Beside::Refuse);

/// The entry of a list that stands for a computation: `2`, `-2`, `-2.5`.
[[nodiscard]] std::string te_token(const Action& action);

}  // namespace capo

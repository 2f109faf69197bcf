// A rank's order as a TE list, or the reason why TE's notation cannot say it.
//
//   F1.0 F1.1 B1.0 W1.0 B1.1 W1.1   ->   1 1 -1 -1.5 -1 -1.5
//
// TE's list knows forwards, backwards and delayed weight gradients of chunks, first in, first out.
// Transfers, dispatch and combine, idle slots, composites, chunks that split only some backwards,
// and microbatches out of turn have no notation. Entries keep their spans. Tested by
// to_te_list_test.cpp.

#pragma once

#include <capo/core/base/result.h>
#include <capo/core/order/schedule.h>
#include <capo/core/order/te_list.h>

#include <optional>
#include <string>

namespace capo {

/// Why a form cannot express a schedule, and the entry that it cannot.
struct Inexpressible {
  std::string reason;
  std::optional<Span> span;
  bool droppable = false;  ///< Beside::Drop would leave it out
};

/// What to do with an entry that the target has no notation for and that does not change what is
/// computed: idle slots, transfers, dispatch and combine, and actions of whole stages.
enum class Beside { Refuse, Drop };

[[nodiscard]] Result<TeList, Inexpressible> to_te_list(const RankOrder& rank,
                                                       const std::vector<Entry>& order,
                                                       Beside beside = Beside::Refuse);

}  // namespace capo

// Why a form of text cannot say a schedule: each notation leaves something out, and a writer says what.

#pragma once

#include "core/diag/span.h"

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

}  // namespace capo

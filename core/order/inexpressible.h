// Why a form of text cannot say a schedule: each notation leaves something out, and its writer says
// which entry or declaration. Tested by written_test.cpp and tokens_printer_test.cpp.

#pragma once

#include "core/diag/span.h"

#include <optional>
#include <string>

namespace capo {

/// Why a form cannot express a schedule, and the entry that it cannot.
struct Inexpressible {
  std::string reason;
  std::optional<Span> span;
  bool droppable = false;  ///< whether Beside::Drop leaves it out instead
};

/// Whether an entry is refused or dropped if the target has no notation for it and it does not
/// change what is computed: idle slots, transfers, dispatch and combine, and actions of whole
/// stages.
enum class Beside { Refuse, Drop };

}  // namespace capo

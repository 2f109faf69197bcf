// A rule of the model: a row in the table of its family's file, one essay, one corpus.
//
// Rules run in passes. What a later pass takes for granted an earlier one has checked: counting
// makes no sense in a list that holds NaN. A pass with an error skips those that need it, and the
// report says which.
//
// Tested by tests/cli/rules_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace capo {

class Context;
class Findings;

/// The passes in the order in which their first rules run; passes.cpp says what each needs.
enum class Pass : std::uint8_t {
  Reading,    ///< done by a reader; the rule has no check of its own
  Entries,    ///< each entry by itself
  Counts,     ///< what occurs how often
  Order,      ///< what comes before what on one rank
  Placement,  ///< which rank runs which stage
  Stages,     ///< all ranks' orders together
  Routing,    ///< Megatron's transfers worked out, where asked for
  Transfers,  ///< every transfer in its queue
  Modules,    ///< the declared modules by themselves
  Gradients,  ///< the declared modules in these orders
  Buffers,    ///< who uses which memory when, under a plan
  Resets,     ///< until when graphs can be replayed, and which is to follow which
};

/// The cycle that a drawing of a finding shows beside the entries of its witness.
enum class DrawnCycle : std::uint8_t {
  None,             ///< the entries alone
  AgainstTheOrder,  ///< the reader, and what it reads further down in the same order
  OfComputations,   ///< the shortest cycle of waits, leaving out how ranks communicate
  OfTransfers,      ///< the shortest cycle of waits, with transfers
};

struct Rule {
  std::string_view id;    ///< stable: "S10"
  std::string_view name;  ///< stable: "backward-count"
  std::string_view title;
  Family family;
  Pass pass;
  void (*check)(const Context&, Findings&);  ///< null for Pass::Reading
  /// Whether orders with such findings alone can still be executed on paper.
  bool leaves_executable = false;
  DrawnCycle draws = DrawnCycle::None;
};

/// All rules, in the order in which they run and docs/rules.md lists them.
[[nodiscard]] std::span<const Rule> catalogue();

/// The rule of this id or name; null if there is none.
[[nodiscard]] const Rule* find_rule(std::string_view id_or_name);

[[nodiscard]] std::string_view name_of(Pass pass);

}  // namespace capo

// A rule of the model: a row of the catalogue, one source file, one test file, one essay, one
// corpus.
//
// Rules run in passes. What a later pass takes for granted an earlier one has checked: counting
// makes no sense in a list that holds NaN. A pass with an error skips those that need it, and the
// report says which.

#pragma once

#include "core/diag/diagnostic.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace capo {

class Context;
class Diagnostics;

enum class Pass : std::uint8_t {
  Reading,    ///< done by a reader; the rule has no check of its own
  Entries,    ///< each entry by itself
  Counts,     ///< what occurs how often; needs Entries
  Order,      ///< what comes before what; needs Entries, and stands beside Counts
  Placement,  ///< which rank runs which stage; needs Entries
  Stages,     ///< all ranks' orders together; needs all before
  Routing,    ///< Megatron's transfers worked out, where asked for; needs all but Stages
  Transfers,  ///< every transfer in its queue; needs all before
  Modules,    ///< the declared modules by themselves; needs Entries
  Gradients,  ///< the declared modules in these orders; needs all but Stages, Routing, Transfers
  Buffers,    ///< who uses which memory when, under a plan; needs all but Modules and Gradients
};

struct Rule {
  std::string_view id;    ///< stable: "S10"
  std::string_view name;  ///< stable: "backward-count"
  std::string_view title;
  Family family;
  Pass pass;
  void (*check)(const Context&, Diagnostics&);  ///< null for Pass::Reading
};

/// All rules, in the order in which they run and docs/rules.md lists them.
[[nodiscard]] std::span<const Rule> catalogue();

/// By id or by name; null if there is none.
[[nodiscard]] const Rule* find_rule(std::string_view id_or_name);

[[nodiscard]] std::string_view name_of(Family family);
[[nodiscard]] std::string_view name_of(Pass pass);

}  // namespace capo

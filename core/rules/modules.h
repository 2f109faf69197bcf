// What TransformerEngine makes of declared modules when it captures them: facts about it, not about
// the order, so that how much they weigh depends on whose plan is declared.
//
//   plan te     an error
//   no plan     a warning that names the condition; the verdict stands
//   plan safe   nothing: capo's own modules keep the sound contract
//
// A module at fault is one finding, however many layers and microbatches it is of, at an entry of
// the first order that runs a layer of it. What nobody declares is at no fault. Tested through the
// rules under gradients/ and capture/, and by modules_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"
#include "core/rules/context.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

class Diagnostics;

namespace rules {

/// Nothing where such a rule is silent.
[[nodiscard]] std::optional<Severity> captured_by_te(const Context& context);

/// "if these layers are captured as TransformerEngine captures them, " before a warning.
[[nodiscard]] std::string_view te_condition(Severity severity);

/// A layer of a module, in the first order that has one.
struct ModuleUse {
  const Module* module = nullptr;
  const OrderView* order = nullptr;
  std::int32_t chunk = 0;
  std::size_t at = 0;  ///< the chunk's first entry of the kind that matters

  /// The first entries of one of the kinds for the chunk, at most `limit`.
  [[nodiscard]] std::vector<std::size_t> entries(std::initializer_list<Kind> kinds,
                                                 std::size_t limit) const;
};

/// Which of a chunk's entries a fault shows at first; another where it has none of them.
enum class ShowsAt : std::uint8_t { Forward, Backward, WeightGradient };

/// The modules at fault that some order runs, in the order in which they come up.
[[nodiscard]] std::vector<ModuleUse> modules_at_fault(
    const Context& context, ShowsAt shows_at, const std::function<bool(const Module&)>& at_fault);

/// Whether a layer of the chunk is a module at fault; which one.
[[nodiscard]] const Module* module_at_fault(const Context& context, std::int32_t rank,
                                            std::int32_t chunk,
                                            const std::function<bool(const Module&)>& at_fault);

/// Layers of a chunk that the table tells apart: as many as stated, else as declared; one where one
/// speaks for all.
[[nodiscard]] std::int32_t distinct_layers(const Context& context, std::int32_t rank,
                                           std::int32_t chunk);

/// What a rule says of a module at fault; its place is ModuleUse::at.
struct ModuleFinding {
  std::string message;  ///< begins with the module, so that a condition can stand before it
  std::string label;
  std::string help;
  std::vector<std::size_t> replayed = {};  ///< entries whose replay shows it, the first one `at`
  std::string second_label = {};           ///< of the second of them
};

struct ModuleRule {
  std::string_view id;
  Family family;
  ShowsAt shows_at;
  bool (*at_fault)(const Context&, const Module&);
  ModuleFinding (*describe)(const Context&, const ModuleUse&);
};

/// Judges a fact about TransformerEngine's captures.
void report_modules(const Context& context, const ModuleRule& rule, Diagnostics& out);

/// One finding of a module, whatever the plan.
[[nodiscard]] Diagnostic module_diagnostic(const Context& context, const ModuleRule& rule,
                                           const ModuleUse& use, Severity severity);

/// Whether W has anything to compute: delayed, and of a weight that is trained.
[[nodiscard]] inline bool queues_weight_gradient(const Module& module) {
  return module.flags.delay_wgrad && !module.flags.frozen_weight;
}

}  // namespace rules
}  // namespace capo

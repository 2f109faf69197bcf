// Declared modules that a capture makes something wrong of. These are facts about TE, not about the
// order, so that their weight depends on whose plan is declared.
//
//   plan te     an error
//   no plan     a warning that names the condition; the verdict stands
//   plan safe   nothing: capo's own modules keep the sound contract
//
// A module at fault is one finding, however many layers and microbatches it is of, at an entry of
// the first order that runs a layer of it. An undeclared layer is at no fault. Tested through the
// rules in module_gradients.cpp and capture.cpp, and by modules_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"
#include "core/rules/context.h"
#include "core/rules/findings.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::rules {

/// The severity of a fact about captures by TE; nullopt if the plan is capo's own.
[[nodiscard]] std::optional<Severity> captured_by_te(const Context& context);

/// A layer whose module is at fault, in the first order that has one.
struct ModuleUse {
  const Module* module = nullptr;
  const OrderView* order = nullptr;
  std::int32_t chunk = 0;
  std::size_t at = 0;  ///< the chunk's first entry of the kind that matters

  /// The first entries of one of the kinds for the chunk, at most `limit`.
  [[nodiscard]] std::vector<std::size_t> entries(std::initializer_list<Kind> kinds,
                                                 std::size_t limit) const;
};

/// The kind of a chunk's entries that shows a fault first; another kind if the chunk has none.
enum class ShowsAt : std::uint8_t { Forward, Backward, WeightGradient };

/// The modules at fault that some order runs, in the order in which they come up.
[[nodiscard]] std::vector<ModuleUse> modules_at_fault(
    const Context& context, ShowsAt shows_at, const std::function<bool(const Module&)>& at_fault);

/// The first layer of the chunk that is a module at fault; null if there is none.
[[nodiscard]] const Module* module_at_fault(const Context& context, std::int32_t rank,
                                            std::int32_t chunk,
                                            const std::function<bool(const Module&)>& at_fault);

/// Layers of a chunk that the table tells apart: at most as many as the order states; one if one
/// entry speaks for all.
[[nodiscard]] std::int32_t distinct_layers(const Context& context, std::int32_t rank,
                                           std::int32_t chunk);

/// The words of a rule about a module at fault, whose place is ModuleUse::at.
struct ModuleFinding {
  std::string message;  ///< begins with the module, so that a condition can stand before it
  std::string label;
  std::string help;
  std::vector<std::size_t> replayed = {};  ///< entries whose replay shows it, the first one `at`
  std::string second_label = {};           ///< stands at the second of them
};

/// A rule that judges declared modules by themselves.
struct ModuleRule {
  ShowsAt shows_at;
  bool (*at_fault)(const Context&, const Module&);
  ModuleFinding (*describe)(const Context&, const ModuleUse&);
  bool under_every_plan = false;  ///< true: capo's own modules are at fault as well
};

/// Reports the modules that a rule finds at fault, weighed by the declared plan.
void report_modules(const Context& context, const ModuleRule& rule, Findings& out);

/// The check of a module rule, for its row in the table.
template <const ModuleRule& kRule>
void judge_modules(const Context& context, Findings& out) {
  report_modules(context, kRule, out);
}

/// The finding about one module; a warning begins with its condition.
[[nodiscard]] Diagnostic module_diagnostic(const Context& context, ModuleFinding found,
                                           const ModuleUse& use, Severity severity);

/// Whether W has anything to compute: delayed, and of a weight that is trained.
[[nodiscard]] inline bool queues_weight_gradient(const Module& module) {
  return module.flags.delay_wgrad && !module.flags.frozen_weight;
}

}  // namespace capo::rules

// The verdict with its reasons: runs the catalogue over an input, pass by pass. A reader has
// refused malformed input before this is called.
//
// Tested by check_test.cpp, by the corpus of every rule, and against the oracle.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/plan_result.h"
#include "core/rules/rule.h"
#include "core/rules/verdict.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace capo {

struct CheckResult {
  Verdict verdict = Verdict::NoVerdict;
  Diagnostics diagnostics;
  std::vector<Pass> skipped;  ///< passes that an earlier one's errors left without a ground
  bool orders_clean = false;  ///< no error in any rank's order by itself, nor in the placement
  /// Whether every task runs in the end, under the environment; nullopt if that was not asked,
  /// since chunks are not wired to each other or errors come before.
  std::optional<bool> finishes;
  std::int32_t microbatches = 0;  ///< of the step: declared, or read off the orders
  Environment environment;        ///< that the verdict is relative to
  std::size_t groups = 0;         ///< of ranks whose collectives were declared
  std::optional<PlanKind> plan_declared;
  std::vector<std::string> modules;  ///< names of those that layers were declared to be
  std::optional<PlanResult> plan;    ///< nullopt if none was asked for, or errors came before
  /// Whether TE's plan could hurt this order, is not declared, and is too large to look at unasked.
  bool left_unasked = false;
};

class Context;

/// CheckResult::orders_clean alone, without the rules that look across ranks: for callers that ask
/// many times a second whether the orders can be wired.
[[nodiscard]] bool orders_are_clean(const Context& context);

[[nodiscard]] CheckResult check(const Input& input, const CheckOptions& options = {});
/// Checks a context that the caller made and goes on with.
[[nodiscard]] CheckResult check(const Context& context);

/// The finding that stands for a check in a drawing of one: of sorted findings the first error, or
/// the first warning if there is no error; null if there is no finding.
[[nodiscard]] const Diagnostic* first_finding(const Diagnostics& findings);

}  // namespace capo

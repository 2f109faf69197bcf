// check() returns a plain value: the verdict, the findings, and what both are relative to.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/model/environment.h"
#include "core/model/plan_options.h"
#include "core/rules/plan_result.h"
#include "core/rules/rule.h"
#include "core/rules/verdict.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// A fact of the environment that nobody declared, and the verdict under each value of it: that of
/// the worst environment with the value.
struct Undeclared {
  struct Value {
    std::string_view name;
    Verdict verdict = Verdict::NoVerdict;

    friend bool operator==(const Value&, const Value&) = default;
  };
  std::string_view key;  ///< "communicators" or "transfers"
  std::vector<Value> values;

  friend bool operator==(const Undeclared&, const Undeclared&) = default;
};

struct CheckResult {
  Verdict verdict = Verdict::NoVerdict;
  Diagnostics diagnostics;
  std::vector<Pass> skipped;      ///< passes that an earlier one's errors left without a ground
  bool transfers_judged = false;  ///< whether the pass of transfers had its ground
  bool orders_clean = false;      ///< no error in any rank's order by itself, nor in the placement
  /// Whether every task runs in the end, under the environment; nullopt if that was not asked,
  /// since chunks are not wired to each other or errors come before.
  std::optional<bool> finishes;
  std::int32_t microbatches = 0;  ///< of the step: declared, or read off the orders
  Environment environment;        ///< as declared: what is stated of the plan goes by it
  /// Facts under each of whose values the verdict holds; empty if ranks do not communicate, or
  /// defaults were asked for.
  std::vector<Undeclared> undeclared;
  std::size_t groups = 0;  ///< of ranks whose collectives were declared
  std::optional<PlanKind> plan_declared;
  std::vector<std::string> modules;  ///< names of those that layers were declared to be
  std::optional<PlanResult> plan;    ///< nullopt if none was asked for, or errors came before
  /// Whether TE's plan could hurt this order, is not declared, and is too large to look at unasked.
  bool left_unasked = false;
};

}  // namespace capo

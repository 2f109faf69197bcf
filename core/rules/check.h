// The verdict: runs the catalogue over an input, pass by pass.
//
//   accepted     no execution that docs/model.md permits breaks a rule of the families checked
//   rejected     at least one rule is broken; each finding has a witness
//   no verdict   the input is malformed or over a limit (a reader says so, before this is called)
//
// Tested by check_test.cpp, by the corpus of every rule, and against the oracle.

#pragma once

#include <capo/core/diag/diagnostics.h>
#include <capo/core/order/input.h>
#include <capo/core/rules/rule.h>

#include <cstddef>
#include <vector>

namespace capo {

enum class Verdict { Accepted, Rejected, NoVerdict };

struct CheckOptions {
  std::size_t findings_per_rule = Diagnostics::kDefaultLimit;
};

struct CheckResult {
  Verdict verdict = Verdict::NoVerdict;
  Diagnostics diagnostics;
  std::vector<Pass> skipped;  ///< passes that an earlier one's errors left without a ground
};

[[nodiscard]] CheckResult check(const Input& input, const CheckOptions& options = {});

}  // namespace capo

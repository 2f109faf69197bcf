// The verdict with its reasons: runs the catalogue over an input, pass by pass, under every
// environment that was not ruled out (undeclared.h). A reader has refused malformed input before
// this is called.
//
// Tested by check_test.cpp, by the corpus of every rule, and against the oracle.

#pragma once

#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/check_result.h"

namespace capo {

class Context;

/// CheckResult::orders_clean alone, without the rules that look across ranks: for callers that ask
/// many times a second whether the orders can be wired.
[[nodiscard]] bool orders_are_clean(const Context& context);

[[nodiscard]] CheckResult check(const Input& input, const CheckOptions& options = {});
/// Checks a context that the caller made and goes on with.
[[nodiscard]] CheckResult check(const Context& context);

}  // namespace capo

// Tells before a check whether a given plan is one for these orders, with the place of what is
// wrong in the plan's own text, which a finding about the orders could not point at. Tested by
// given_plan_test.cpp.

#pragma once

#include "core/text/refusal.h"

#include <optional>

namespace capo {

class Context;

/// Why the given plan does not fit the orders of a context; nullopt if it fits, or if the orders
/// have errors or too many buffers, which check() tells.
[[nodiscard]] std::optional<Refusal> misfit_of_given_plan(const Context& context);

}  // namespace capo

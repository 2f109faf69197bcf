// The verdict under one environment: what is declared, with the first value of whatever is not. It
// executes on paper what check() asserts about its findings: accepting what cannot be executed
// would be the worst bug that capo could have.
//
// Nobody but check() and undeclared.h asks for it, since a verdict that rests on what nobody
// declared is none. Tested through check_test.cpp.

#pragma once

#include "core/rules/check_result.h"

#include <cstddef>

namespace capo {

class Context;

[[nodiscard]] CheckResult check_stated(const Context& context, std::size_t findings_per_rule);

/// It leaves CheckResult::plan out, whose lower bounds take a second plan.
[[nodiscard]] CheckResult findings_stated(const Context& context, std::size_t findings_per_rule);

}  // namespace capo

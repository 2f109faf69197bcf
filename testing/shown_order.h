// Generators show an order as .order lines to paste into `capo check -`.
//
//   # declared: capo check - --model FILE, of
//   # {"schema":1,"transfers":"buffered"}
//   capo 1
//   ...
//
// Declarations that .order text has no line for stand above it, in comments. Tested by
// shown_order_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/rules/check_options.h"

#include <string>

namespace capo::testing {

[[nodiscard]] std::string shown_order(const Schedule& schedule, const CheckOptions& declared = {});

}  // namespace capo::testing

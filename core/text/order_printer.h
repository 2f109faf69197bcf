// A schedule to capo's own .order text, which can say everything a schedule holds.
// Tested by tests/properties/round_trip_test.cpp: printing then reading is the identity.

#pragma once

#include "core/order/schedule.h"

#include <string>

namespace capo {

[[nodiscard]] std::string print_order_file(const Schedule& schedule);

}  // namespace capo

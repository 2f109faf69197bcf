// Prints a schedule as JSON, in the form with one object per rank, as
// docs/schema/schedule.schema.json describes it. Tested by tests/properties/round_trip_test.cpp:
// printing then reading is the identity.

#pragma once

#include "core/order/schedule.h"

#include <string>

namespace capo {

[[nodiscard]] std::string print_json(const Schedule& schedule);

}  // namespace capo

// print_te_list() writes a TE list as text: `[1, 1, -1, -1.5]`, every number in the shortest form
// that reads back the same. Tested by tests/properties/round_trip_test.cpp: printing then reading
// is the identity.

#pragma once

#include "core/order/te_list.h"

#include <string>

namespace capo {

[[nodiscard]] std::string print_te_list(const TeList& list);

}  // namespace capo

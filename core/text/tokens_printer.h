// A schedule as the authors of zero-bubble and DualPipe schedules print theirs: a rank a line.
//
//   F0 F1 B0 W0 F2 BW1          kind and microbatch; BW is a whole backward
//   F0.0 F0.1 F3.0&BW1.1        with the chunk, from 0, where ranks hold several; & runs together
//
// Placement is not said. What computes nothing has no token. Tested by tokens_printer_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/inexpressible.h"
#include "core/order/schedule.h"

#include <string>

namespace capo {

[[nodiscard]] Result<std::string, Inexpressible> print_tokens(const Schedule& schedule);

}  // namespace capo

// A schedule as the text of any form, or the reason why the form cannot say it.
//
// What is written is read again, with nothing declared beside it: it must be readable, and mean the
// same as far as a verdict goes (left_out.h). Tested by written_test.cpp and
// tests/cli/convert_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/input/load.h"
#include "core/order/inexpressible.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"

#include <string>

namespace capo {

/// `limits`: what a reader of it takes, but for its bytes. Under Beside::Drop the text may say less
/// than the schedule: a TE list and a table then leave out what they have no notation for.
[[nodiscard]] Result<std::string, Inexpressible> written(const Schedule& schedule, TextForm form,
                                                         Beside beside = Beside::Refuse,
                                                         const Limits& limits = {});

}  // namespace capo

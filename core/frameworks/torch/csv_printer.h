// A schedule to a PyTorch table, or the reason why a table cannot say it.
//
// A table names stages, so the chunks must be placed; a single rank whose chunks are not wired is
// written with chunk c as stage c - 1. Layers, delays without entries, dispatch and combine, and a
// replay order have no notation in it, and neither have two pipelines. Tested by
// csv_reader_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/inexpressible.h"
#include "core/order/schedule.h"

#include <string>

namespace capo {

/// Beside::Drop leaves out layers, dispatch and combine, and that chunks take no backward apart
/// which do.
[[nodiscard]] Result<std::string, Inexpressible> print_torch_csv(const Schedule& schedule,
                                                                 Beside beside = Beside::Refuse);

}  // namespace capo

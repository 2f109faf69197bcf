// print_torch_csv() writes a schedule as a PyTorch table, or says why a table cannot hold it.
//
//   rank 0: F1 B1, stage 0   ->   0F0,0B0
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

/// With Beside::Drop the table lacks layers, dispatch and combine; and a chunk that is declared to
/// take no backward apart, and does, is written with the halves it has.
[[nodiscard]] Result<std::string, Inexpressible> print_torch_csv(const Schedule& schedule,
                                                                 Beside beside = Beside::Refuse);

}  // namespace capo

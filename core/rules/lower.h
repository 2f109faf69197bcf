// A schedule with the transfers that its ranks perform, as the transfer rules judge them, for
// printing.
//
//   capo convert table.csv --to csv --lower       PyTorch's table with its sends and receives
//
// Transfers are as written if the orders write them, as Megatron calls them with Environment::p2p,
// and otherwise as PyTorch adds them. A replay order that differs from its capture has its own. No
// form says who waits for a transfer and, between two ranks, which communicator it goes through, as
// Megatron's calls do: a schedule whose verdict depends on that is not printed. Tested by
// lower_test.cpp and tests/cli/convert_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/inexpressible.h"
#include "core/order/input.h"
#include "core/rules/check.h"

namespace capo {

/// The schedule, its microbatches named, which has the input's verdict under the same options but
/// for `p2p`; or why there is none. Under Beside::Drop the verdict may be another.
[[nodiscard]] Result<Schedule, Inexpressible> lower(const Input& input, const CheckOptions& options,
                                                    Beside beside = Beside::Refuse);

}  // namespace capo

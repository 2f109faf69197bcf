// A schedule with the transfers that its ranks perform, for printing: what the transfer rules
// judge.
//
//   capo convert table.csv --to csv --lower       PyTorch's table with its sends and receives
//
// As written where the orders write them, as Megatron calls them with Environment::p2p, else as
// PyTorch adds them. Tested by lower_test.cpp and tests/cli/convert_test.cpp.

#pragma once

#include <capo/core/base/result.h>
#include <capo/core/order/input.h>
#include <capo/core/rules/check.h>

#include <string>

namespace capo {

/// The schedule, its microbatches named; or why there is none, in words.
[[nodiscard]] Result<Schedule, std::string> lower(const Input& input, const CheckOptions& options);

}  // namespace capo

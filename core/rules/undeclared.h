// Judges what nobody declared under every value that it can have.
//
//   1f1b under plan te     one communicator a rank holds each send back until it does no harm; with
//                          one for each pair of ranks a gradient may be overwritten while it is
//                          sent
//
// A verdict must not rest on what nobody said. Ranks that are wired communicate in one of three
// layouts and in one of two modes; whatever of the two is not declared is judged under all of its
// values, and an order is accepted only if it holds under each. A finding that not all of them have
// names those that do.
//
// The values are ordered. One communicator a rank with sends that wait orders most: what deadlocks
// anywhere deadlocks there. One for each direction with sends that end by themselves orders least:
// what races anywhere races there. What lies between two values
// that find the same finds it too and is not judged; that this is so is held against judging all of
// them by tests/schedules/undeclared_test.cpp and, over the corpora,
// tests/cli/undeclared_orders_test.cpp.
//
// Not varied: plan and modules, whose absence is a warning, topology, and who calls the transfers.
// Weight gradients run on the stream of the other computations, as those of Megatron do, unless
// somebody says otherwise; where an accepted order would be rejected if they had one of their own,
// a warning says so, and the verdict stands.

#pragma once

#include "core/model/environment.h"
#include "core/order/schedule.h"
#include "core/rules/check_result.h"

namespace capo {

class Context;

/// Whether there is anything to vary: ranks communicate, and how is not declared altogether.
[[nodiscard]] bool has_undeclared(const Schedule& schedule, const Environment& declared);

/// So many findings of each rule are told apart between values; more are counted.
[[nodiscard]] std::size_t findings_to_compare(const Context& context);

/// Adds to a result of check_stated(), which has so many findings, what is found under the other
/// values: findings, the verdict and CheckResult::undeclared.
void judge_undeclared(const Context& context, CheckResult& result);

/// Adds to a result of judge_undeclared() the warning about the stream of weight gradients.
void warn_of_weight_stream(const Context& context, CheckResult& result);

}  // namespace capo

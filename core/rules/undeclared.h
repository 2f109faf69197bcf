// Judges what nobody declared under every value that it can have.
//
//   ranks that share one communicator never race; with one for each pair of ranks the same order
//   may overwrite a gradient while it is sent
//
// A verdict must not rest on what nobody said. Ranks that are wired communicate in one of three
// layouts and in one of two modes; whatever of the two is not declared is judged under all of its
// values, and an order is accepted only if it holds under each. A finding that not all of them have
// names those that do.
//
// The values are ordered. One communicator a rank with sends that wait orders most: what deadlocks
// anywhere deadlocks there. One for each direction with sends that end by themselves orders least:
// what races anywhere races there. If both ends of the scale find the same, so does everything
// between, and nothing between is judged; that this is so is held against judging all of them by
// tests/schedules/undeclared_test.cpp.
//
// Not varied: plan and modules, whose absence is a warning, topology, the stream of weight
// gradients, and who calls the transfers.

#pragma once

#include "core/rules/check_result.h"

namespace capo {

class Context;

/// Adds to a result of check_stated() what is found under the other values: findings, the verdict
/// and CheckResult::undeclared.
void judge_undeclared(const Context& context, CheckResult& result);

}  // namespace capo

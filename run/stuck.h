// The state in which a step stays for ever: what each stream would run next, and what that waits
// for. For orders that are rejected for their transfers.
//
// The task graph is stepped through as the host engine would, every task as soon as all that it
// waits for is over. Tested over the corpus of the transfer rules by tests/cli/run_corpus_test.cpp.

#pragma once

#include "core/order/input.h"
#include "core/rules/check_options.h"

#include <string>

namespace capo::run {

/// A line a stream. Where every transfer meets some other end, a line that says that nothing waits.
/// Empty where no task graph can be made of the step.
[[nodiscard]] std::string stuck_state(const Input& input, const CheckOptions& options);

}  // namespace capo::run

// Independent pieces of work on several threads: each takes the next piece that nobody has.
//
// Results belong in places of their own, so that they stand in the order of the pieces whatever the
// threads did. An exception stops its thread, and is thrown again when all have ended. Tested by
// tests/cli/batch_test.cpp and simulate_test.cpp, with one thread and several.

#pragma once

#include <cstddef>
#include <functional>

namespace capo::cli {

/// Calls work(0) to work(count - 1); on the caller's thread where `threads` is 1.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace capo::cli

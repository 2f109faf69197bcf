// Independent pieces of work on several threads: each takes the next piece that nobody has.
//
// Results belong in places of their own, so that they stand in the order of the pieces whatever the
// threads did. An exception stops its thread, and is thrown again when all have ended. If the
// system refuses more threads, those that there are do the work. Tested by in_parallel_test.cpp,
// and through its users with one thread and several.

#pragma once

#include <cstddef>
#include <functional>

namespace capo {

/// Calls work(0) to work(count - 1), on no more threads than that. With one thread everything runs
/// on the caller's.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

/// How many threads so many tasks, buffers or the like are worth: one, if there are few.
[[nodiscard]] unsigned threads_worth(std::size_t things);

}  // namespace capo

// The memory that a command may take: an order that needs more is told so, before the machine's
// other programs suffer.
//
//   capo check huge.order --plan te --max-memory 4GiB
//   error: more memory is needed than 4 GiB
//     help: raise the limit with --max-memory
//
// The kernel keeps the limit, on all memory that the process may write (RLIMIT_DATA), so that
// nothing has to be counted or guessed here: an allocation beyond it fails as any that finds no
// memory, and main() tells which limit that was. Under a sanitizer, which reserves more than any
// machine has, no limit is set. Tested by tests/cli/limits_test.cpp.

#pragma once

#include <cstdint>
#include <string>

namespace capo::cli {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  // gcc says so
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) ||
                                   __has_feature(thread_sanitizer) ||
                                   __has_feature(memory_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// From now on the process has at most so many bytes. An option calls it while the command line is
/// parsed.
void limit_memory(std::int64_t bytes);

/// The report of a command that needed more; empty if no limit was set. It was made together with
/// the limit, since there is no memory to make it when it is needed.
[[nodiscard]] const std::string& over_memory_limit();

}  // namespace capo::cli

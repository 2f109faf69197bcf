// What capo says when memory runs out, wherever it does.
//
// main() catches what is thrown. CLI11 also allocates where nothing can be caught, in objects that
// are made before main() and in functions that promise not to throw; that ends in std::terminate,
// and is told there in the same words with the same exit code. Anything else that comes to
// std::terminate is a bug of capo's and aborts. And CLI11 writes its help into streams, which
// swallow what is thrown and stop in the middle: whoever prints it asks whether memory ran out.
// Tested by tests/failing/memory_test.cpp, for every allocation of every command.

#pragma once

namespace capo::cli {

/// "error: out of memory", to standard error; the exit code that it means.
[[nodiscard]] int fail_out_of_memory();

/// Whether any allocation has failed so far, be it caught or swallowed.
[[nodiscard]] bool has_run_out_of_memory();

}  // namespace capo::cli

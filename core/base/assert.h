// Assertions of capo about itself.
//
// CAPO_ASSERT states an invariant of capo's own code, never a fault of the user's input (that is a
// Diagnostic) nor of the world (that is an Error). It stays on in release builds: a verdict from a
// program in an unknown state is worth less than none. It throws, so that a caller that embeds capo
// keeps its process; the command line turns it into exit code 70.

#pragma once

#include <stdexcept>

namespace capo {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_assertion(const char* expression, const char* sentence, const char* file,
                                 int line);

}  // namespace capo

/// `CAPO_ASSERT(position < size, "a task's position lies in its order");`
#define CAPO_ASSERT(expression, sentence) \
  ((expression) ? void(0) : ::capo::fail_assertion(#expression, sentence, __FILE__, __LINE__))

/// Stands after a switch that names every case and returns in each.
#define CAPO_UNREACHABLE() \
  ::capo::fail_assertion("unreachable", "every case returns", __FILE__, __LINE__)

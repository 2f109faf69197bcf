#include "core/base/assert.h"

#include <string>

namespace capo {

void fail_assertion(const char* expression, const char* sentence, const char* file, int line) {
  throw InternalError("capo's own invariant does not hold: " + std::string(sentence) + " (" +
                      expression + " at " + file + ":" + std::to_string(line) + ")");
}

}  // namespace capo

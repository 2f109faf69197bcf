// The system's words for the error that broke a stream of the standard library.
//
// A stream takes a lack of memory for a read error unless it is told to hand on what it caught
// (exceptions(badbit)): then only what the system refused comes as its failure. Tested by
// tests/failing/lines_test.cpp, which lets every read fail, and every allocation.

#pragma once

#include "core/base/error.h"

#include <ios>
#include <string>

namespace capo::testing {

[[nodiscard]] inline std::string stream_error(const std::ios_base::failure& broken) {
  return error_text(broken.code().value());
}

}  // namespace capo::testing

// A step that was run on the host engine for Python: the report of `capo run`, and whether all came
// out.
//
// The wheel has no CUDA; with a device the program `capo run` is the way. An order that is not
// accepted is not run unless that is asked for: it is a NotAccepted, and any other refusal an
// std::runtime_error. Tested by python/tests/test_run.py.

#pragma once

#include "core/order/input.h"
#include "python/judge.h"

#include <cstdint>
#include <string>

namespace capo::python {

struct RunArguments {
  std::uint32_t replays = 3;
  std::uint64_t seed = 1;
  std::string sizes = "random";
  bool unchecked = false;
  bool fused = false;  ///< modules are named by kinds alone, and their gradients accumulate
};

struct Ran {
  bool accepted = false;  ///< by the verdict
  bool bit_equal = false;
  bool within_bounds = false;
  std::string text;
  std::string json;
};

/// Throws std::invalid_argument if an argument is none, std::runtime_error if nothing was run.
[[nodiscard]] Ran ran(const Input& input, const Declared& declared, const RunArguments& arguments);

}  // namespace capo::python

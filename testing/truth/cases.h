// The cases of the truth campaign: orders with all that a run of them needs, each a function of the
// seed and its number alone, so that any one can be run again.
//
//   even numbers   a sound order under plan `safe`, or a published schedule: accepted, so every
//                  gradient has to be right
//   odd numbers    an order that TransformerEngine captures under its own plan, with modules that
//                  alias their operands: what the verifier rejects has to be seen, victim by
//                  victim, and what it accepts has to be right
//
// Modules take turns over all kinds and over bf16 and fp16; graphs over both granularities. All
// sizes are at most 32. Tested by tests/testing/truth_test.cpp.

#pragma once

#include <capo/core/order/input.h>
#include <capo/core/plan/plan_options.h>
#include <capo/core/rules/check_options.h>

#include <cstdint>
#include <string>

namespace capo::testing {

struct TruthCase {
  std::string words;  ///< "zb-h1 of 2 ranks", or the order itself
  std::string module;
  Input input;
  CheckOptions options;  ///< complete: sizes and plan
  Granularity graphs = Granularity::PerAction;
  bool unchecked = false;  ///< it goes through the unchecked door
};

[[nodiscard]] TruthCase truth_case(std::uint64_t seed, std::uint64_t number);

}  // namespace capo::testing

// All 21,435,888 strings of at most seven entries over {1, 2, 3, -1, -2, -3, -1.5, -2.5, -3.5, 0,
// 4}: right and wrong counts, chunks that are missing or unknown, and a number that is no entry.
//
// Quick: at most five entries; long: at most eight, 235,794,769.

#include "testing/oracle/first_fault.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

namespace capo::exhaustive {

namespace {

std::size_t longest_of(Effort effort) {
  if (effort == Effort::Quick) return 5;
  return effort == Effort::Whole ? 7 : 8;
}

}  // namespace

bool strings(const Options& options) {
  const std::size_t longest = longest_of(options.effort);
  List alphabet;
  for (const double value : {1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -1.5, -2.5, -3.5, 0.0, 4.0})
    alphabet.push_back(entry_of(value));
  Comparison comparison("strings", options);
  Judge judge({}, options);
  std::uint64_t all = 0;
  std::uint64_t oracles_differ = 0;
  std::vector<oracle::Number> numbers;
  for_each_string(alphabet, longest, [&](const List& list) {
    ++all;
    if (!comparison.mine()) return true;
    to_oracle(list, numbers);
    const Answer expected = answer_of(oracle::first_fault(numbers));
    const bool sound = oracle::sound(numbers, std::nullopt, {.form = oracle::Layers::None});
    oracles_differ += expected.accepted() == sound ? 0 : 1;
    comparison.compare(judge.of(list), expected, [&] { return shown(list); });
    return !comparison.stopped();
  });
  std::uint64_t known = 0;
  for (std::size_t length = 0; length <= longest; ++length) known = known * alphabet.size() + 1;
  if (!comparison.stopped()) comparison.expect("strings", all, known);
  comparison.expect("strings on whose soundness the oracles differ", oracles_differ, 0);
  return comparison.finish();
}

}  // namespace capo::exhaustive

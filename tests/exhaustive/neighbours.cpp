// All 87,516 orders of three chunks and three microbatches without weight gradients that a chain
// can execute, and the 239 lists that one edit makes of each: 20,916,324, of which some are alike.
//
// Judged as chains. Random strings test almost nothing but that wrong counts are rejected; here
// every list is one edit from being right. Quick: two chunks and two microbatches.

#include "testing/oracle/first_fault.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

namespace capo::exhaustive {

namespace {

// Deletions, insertions, replacements, exchanges.
std::uint64_t neighbours_of_each(std::uint64_t length, std::uint64_t alphabet) {
  return length + (length + 1) * alphabet + length * (alphabet - 1) + (length - 1);
}

}  // namespace

bool neighbours(const Options& options) {
  const Size size = options.effort == Effort::Quick ? Size{2, 2, false} : Size{3, 3, false};
  Comparison comparison("neighbours of " + name_of(size), options);
  Judge chain({.topology = Topology::Chain}, options);
  const Needs needs = needs_of_a_chain(size);
  List alphabet;
  for (std::size_t token = 0; token < needs.size(); ++token)
    alphabet.push_back(entry_of_token(size, token));
  std::uint64_t executable = 0;
  std::uint64_t edited = 0;
  std::uint64_t not_accepted = 0;
  std::vector<oracle::Number> numbers;
  const auto compare = [&](const List& list) {
    to_oracle(list, numbers);
    const Answer expected = answer_of(oracle::first_fault_of_chain(numbers));
    comparison.compare(chain.of(list), expected, [&] { return "a chain: " + shown(list); });
    return expected.accepted();
  };
  Interleavings(needs, size.microbatches).for_each([&](const std::vector<std::size_t>& tokens) {
    ++executable;
    if (!comparison.mine()) return true;
    List list;
    for (const std::size_t token : tokens) list.push_back(entry_of_token(size, token));
    not_accepted += compare(list) ? 0 : 1;
    for_each_neighbour(list, alphabet, [&](const List& neighbour) {
      ++edited;
      if (!comparison.stopped()) compare(neighbour);
    });
    return !comparison.stopped();
  });
  comparison.expect("executable orders that the oracle rejects", not_accepted, 0);
  if (!comparison.stopped()) {
    comparison.expect("executable orders, by the hook lengths", executable,
                      tableaux(2 * size.chunks, size.microbatches));
  }
  if (comparison.complete()) {
    const auto length = static_cast<std::uint64_t>(size.tokens());
    comparison.expect("neighbours", edited,
                      executable * neighbours_of_each(length, alphabet.size()));
  }
  return comparison.finish();
}

}  // namespace capo::exhaustive

// All lists of at most three chunks and three microbatches and at most twelve entries that have
// each entry as often as it should occur: 7,857,292 without weight gradients and 7,849,776 with
// them.
//
// Each is judged as a bare list, and where that finds nothing as a chain too. What comes out are
// the counts that others have published (tables A13 and D2 of capo's survey of the ecosystem): of
// all arrangements, of those that are first in, first out, and of those that a chain can execute.
// The latter are also the standard Young tableaux of 2C rows and M columns, or 3 and M for one
// chunk with weight gradients, which the hook lengths count. Quick: at most eight entries.

#include "testing/oracle/first_fault.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <optional>

namespace capo::exhaustive {

namespace {

struct Row {
  Size size;
  std::uint64_t in_turn;     // each chunk's entries, by microbatch
  std::uint64_t executable;  // judged as a chain
};

constexpr Row kWithout[] = {{{1, 1, false}, 1, 1},    {{1, 2, false}, 2, 2},
                            {{1, 3, false}, 5, 5},    {{2, 1, false}, 6, 1},
                            {{2, 2, false}, 280, 14}, {{2, 3, false}, 23'100, 462},
                            {{3, 1, false}, 90, 1},   {{3, 2, false}, 277'200, 132}};
constexpr Row kWith[] = {{{1, 1, true}, 1, 1},        {{1, 2, true}, 5, 5},
                         {{1, 3, true}, 42, 42},      {{2, 1, true}, 20, 3},
                         {{2, 2, true}, 23'100, 908}, {{3, 1, true}, 1'680, 15}};

bool is_sound(const std::vector<oracle::Number>& numbers) {
  return oracle::sound(numbers, std::nullopt, {.form = oracle::Layers::None});
}

bool compare_row(const Row& row, const Options& options) {
  Comparison comparison("lists of " + name_of(row.size), options);
  Judge bare({}, options);
  Judge chain({.topology = Topology::Chain}, options);
  std::uint64_t all = 0;
  std::uint64_t in_turn = 0;
  std::uint64_t executable = 0;
  std::uint64_t oracles_differ = 0;
  std::vector<oracle::Number> numbers;
  for_each_arrangement(sorted_list(row.size), [&](const List& list) {
    ++all;
    if (!comparison.mine()) return true;
    to_oracle(list, numbers);
    const Answer expected = answer_of(oracle::first_fault(numbers));
    oracles_differ += expected.accepted() == is_sound(numbers) ? 0 : 1;
    comparison.compare(bare.of(list), expected, [&] { return shown(list); });
    if (!expected.accepted()) return !comparison.stopped();
    ++in_turn;
    const Answer wired = answer_of(oracle::first_fault_of_chain(numbers));
    comparison.compare(chain.of(list), wired, [&] { return "a chain: " + shown(list); });
    executable += wired.accepted() ? 1 : 0;
    return !comparison.stopped();
  });
  comparison.expect("orders on whose soundness the oracles differ", oracles_differ, 0);
  if (comparison.complete()) {
    comparison.expect("arrangements", all, well_counted(row.size));
    comparison.expect("first in, first out", in_turn, row.in_turn);
    comparison.expect("executable as a chain", executable, row.executable);
    const int rows = row.size.kinds() * row.size.chunks;
    if (!row.size.weights || row.size.chunks == 1) {
      comparison.expect("by the hook lengths", executable, tableaux(rows, row.size.microbatches));
    }
  }
  return comparison.finish();
}

template <typename Rows>
bool compare_rows(const Rows& rows, const Options& options) {
  constexpr int kQuickTokens = 8;
  bool agree = true;
  for (const Row& row : rows) {
    if (options.effort == Effort::Quick && row.size.tokens() > kQuickTokens) continue;
    agree = compare_row(row, options) && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace

bool lists(const Options& options) {
  return compare_rows(kWithout, options);
}

bool lists_with_weights(const Options& options) {
  return compare_rows(kWith, options);
}

}  // namespace capo::exhaustive

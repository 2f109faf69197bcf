// All orders of one microbatch in which moves of some kinds stand among its computations, and the
// places that a rule names in them: what the exhaustive tests of exchanges and parameters share.
//
//   computations F B, moves x y, at most one:   F B, x F B, y F B, F x B, F y B, F B x, F B y

#pragma once

#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::testing_support {

/// The entries at which `rule`, the only rule that finds anything, finds something, ascending.
inline std::vector<std::size_t> places_found(std::vector<Entry> order, std::string_view rule) {
  Input input;
  input.schedule = {.naming = Naming::Named, .microbatches = 1, .ranks = {RankOrder{.chunks = 1}}};
  input.schedule.ranks[0].order = std::move(order);
  const CheckResult result = check(input);
  std::vector<std::size_t> places;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, rule);
    places.push_back(finding.witness.tasks.front().index);
  }
  std::sort(places.begin(), places.end());  // findings are sorted by spans, which these have not
  return places;
}

/// Calls `look` with each order of all computations, in their sequence, and up to `most` moves.
template <typename Step, typename Look>
void for_every_order(const std::vector<Step>& computations, const std::vector<Step>& moves,
                     std::size_t most, const Look& look) {
  std::vector<Step> steps;
  const auto extend = [&](auto&& self, std::size_t computed, std::size_t moved) -> void {
    if (computed == computations.size()) look(std::as_const(steps));
    const auto with = [&](Step step, std::size_t c, std::size_t m) {
      steps.push_back(step);
      self(self, c, m);
      steps.pop_back();
    };
    if (computed < computations.size()) with(computations[computed], computed + 1, moved);
    if (moved == most) return;
    for (const Step& move : moves) with(move, computed, moved + 1);
  };
  extend(extend, 0, 0);
}

/// Compares the places that the product and the oracle find, order by order.
struct Compared {
  std::size_t orders = 0;
  std::size_t sound = 0;

  void compare(const std::vector<std::size_t>& found, const std::vector<std::size_t>& expected) {
    EXPECT_EQ(found, expected) << "order " << orders;
    ++orders;
    sound += expected.empty() ? 1 : 0;
  }
};

}  // namespace capo::testing_support

// Product and oracle both answer which rule finds an order wrong first, and where.

#pragma once

#include "testing/oracle/first_fault.h"
#include "testing/oracle/transfers.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::exhaustive {

struct Answer {
  static constexpr int kNowhere = -1;

  std::string_view rule;    ///< the first finding's rule; empty if the order is accepted
  int rank = 0;             ///< the finding's rank
  int position = kNowhere;  ///< the entry's place, from 0; kNowhere for the input as a whole, or if
                            ///< it is accepted

  [[nodiscard]] bool accepted() const { return rule.empty(); }

  friend bool operator==(const Answer&, const Answer&) = default;
};

/// The oracle's answer to a list.
[[nodiscard]] inline Answer answer_of(const std::optional<oracle::Fault>& fault) {
  if (!fault) return {};
  return {.rule = fault->rule, .position = fault->position};
}

/// The oracle's answer where transfers wait for themselves, as these do: T09 stands at the first of
/// the shortest circle, and which circle that is the oracle does not say. So it agrees with any of
/// them, and else says the last, behind which no other finding can be the first.
[[nodiscard]] inline Answer answer_of(const std::vector<oracle::Place>& in_circles,
                                      const Answer& product) {
  if (in_circles.empty()) return {};
  const oracle::Place said{product.rank, product.position};
  const bool agrees = product.rule == "T09" &&
                      std::find(in_circles.begin(), in_circles.end(), said) != in_circles.end();
  const oracle::Place place = agrees ? said : in_circles.back();
  return {.rule = "T09", .rank = place.rank, .position = place.position};
}

}  // namespace capo::exhaustive

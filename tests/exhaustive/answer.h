// Product and oracle both answer which rule finds an order wrong first, and where.

#pragma once

#include "testing/oracle/first_fault.h"

#include <optional>
#include <string_view>

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

}  // namespace capo::exhaustive

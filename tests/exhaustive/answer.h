// What product and oracle are both asked: which rule finds an order wrong first, and where.

#pragma once

#include "testing/oracle/first_fault.h"

#include <optional>
#include <string_view>

namespace capo::exhaustive {

struct Answer {
  static constexpr int kNowhere = -1;

  std::string_view rule;    ///< of the first finding; empty: accepted
  int rank = 0;             ///< where it stands
  int position = kNowhere;  ///< of the entry, from 0; nowhere: the input as a whole, or accepted

  [[nodiscard]] bool accepted() const { return rule.empty(); }

  friend bool operator==(const Answer&, const Answer&) = default;
};

/// The oracle's, of a list.
[[nodiscard]] inline Answer answer_of(const std::optional<oracle::Fault>& fault) {
  if (!fault) return {};
  return {.rule = fault->rule, .position = fault->position};
}

}  // namespace capo::exhaustive

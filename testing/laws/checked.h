// Prints what a generator made, reads it again and checks it like a user's file, so that findings
// have places and a law is about a text that can be pasted.

#pragma once

#include "core/order/input.h"
#include "core/rules/check.h"
#include "testing/faults/table.h"
#include "testing/generators/communication.h"
#include "testing/generators/sound_declared.h"
#include "testing/generators/te_order.h"

#include <string>
#include <vector>

namespace capo::testing {

/// An input with its verdict; a text that was refused has verdict NoVerdict, and one finding.
struct Checked {
  Input input;
  CheckResult result;

  [[nodiscard]] bool accepted() const { return result.verdict == Verdict::Accepted; }
  /// The findings of one family alone, in their order.
  [[nodiscard]] std::vector<Diagnostic> of(Family family) const;
  /// "S15@3 S16@-": every finding as its rule and the index of its first witness.
  [[nodiscard]] std::string findings() const;
  /// The report that `capo check` would print.
  [[nodiscard]] std::string report() const;
};

[[nodiscard]] Checked checked(const Schedule& schedule, const CheckOptions& options = {});
[[nodiscard]] Checked checked(const TeOrder& order);
[[nodiscard]] Checked checked(const Table& table, const CheckOptions& options = {});
[[nodiscard]] Checked checked(const Communication& communication);
[[nodiscard]] Checked checked(const Declared& declared);

}  // namespace capo::testing

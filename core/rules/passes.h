// The catalogue run over an input, pass by pass: each pass whose ground the passes before have left
// without an error.
//
// The one way from rules to a verdict, for reports and for who wants the verdict alone; what is
// wanted is said by the Diagnostics. Tested through check_test.cpp and verdicts_test.cpp.

#pragma once

#include "core/rules/rule.h"
#include "core/rules/verdict.h"

#include <array>
#include <cstddef>

namespace capo {

class Context;
class Diagnostics;
struct Diagnostic;

class Passes {
 public:
  /// Both outlive the passes; `out` is empty.
  Passes(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  void run();

  [[nodiscard]] Verdict verdict() const;
  /// Whether its rules were asked.
  [[nodiscard]] bool ran(Pass pass) const { return ran_[static_cast<std::size_t>(pass)]; }
  /// Whether they had something to look at, but errors of earlier passes left them no ground. Not
  /// known where only the first error is asked for.
  [[nodiscard]] bool skipped(Pass pass) const { return skipped_[static_cast<std::size_t>(pass)]; }
  /// Whether TransformerEngine's plan, which nobody declared, was too large to look what it hurts.
  /// Not known where only the first error is asked for.
  [[nodiscard]] bool left_unasked() const;
  /// Whether no order by itself, nor the placement, has an error.
  [[nodiscard]] bool orders_clean() const { return ground_.orders; }

 private:
  // What of the passes before was without an error.
  struct Ground {
    bool entries = true;
    bool orders = true;  // every pass that looks at one rank or at the placement
    bool all = true;     // every pass up to the transfers
  };
  using OfEachPass = std::array<bool, static_cast<std::size_t>(Pass::Buffers) + 1>;

  [[nodiscard]] bool has_ground(Pass pass) const;
  [[nodiscard]] bool begin(Pass pass);
  void refuse(Diagnostic finding);  // the plan
  void end(Pass pass);

  const Context& context_;
  Diagnostics& out_;
  Ground ground_;
  OfEachPass ran_{};
  OfEachPass skipped_{};
  bool limited_ = false;  // the plan would be too large to look at
  bool refused_ = false;  // and an error says so
};

}  // namespace capo

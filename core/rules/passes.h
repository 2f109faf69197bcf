// The catalogue run over an input, pass by pass: each pass for which the passes before have left
// the ground that it needs.
//
// This is the one way from rules to a verdict, for reports and for callers that want the verdict
// alone; the Diagnostics say which of the two it is. Tested by check_test.cpp and
// verdicts_test.cpp.

#pragma once

#include "core/base/index.h"
#include "core/rules/rule.h"
#include "core/rules/verdict.h"

#include <array>
#include <cstddef>
#include <vector>

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
  [[nodiscard]] bool ran(Pass pass) const { return ran_[as_index(pass)]; }
  /// The passes that had something to look at, and no ground to stand on because of errors of
  /// earlier ones. Not known where only the first error is asked for.
  [[nodiscard]] std::vector<Pass> skipped() const;
  /// Whether TE's plan, which nobody declared, was too large to look what it hurts. Not known where
  /// only the first error is asked for.
  [[nodiscard]] bool left_unasked() const;
  /// Whether no order by itself, nor the placement, has an error.
  [[nodiscard]] bool orders_clean() const { return clean(Ground::Orders); }

  /// The part of the catalogue that must be free of errors before a pass can run.
  enum class Ground : std::uint8_t {
    None,
    Entries,  ///< every entry by itself
    Orders,   ///< every order by itself, and the placement
    All,      ///< every pass up to the transfers
  };

 private:
  using OfEachPass = std::array<bool, as_index(Pass::Resets) + 1>;

  [[nodiscard]] bool clean(Ground ground) const { return clean_[as_index(ground)]; }
  [[nodiscard]] bool has_ground(Pass pass) const;
  [[nodiscard]] bool begin(Pass pass);
  void refuse_plan(Diagnostic finding);
  void end(Pass pass);

  const Context& context_;
  Diagnostics& out_;
  std::array<bool, 4> clean_{true, true, true, true};  // by Ground
  OfEachPass ran_{};
  OfEachPass skipped_{};
  bool limited_ = false;  // the plan would be too large to look at
  bool refused_ = false;  // and an error says so
};

}  // namespace capo

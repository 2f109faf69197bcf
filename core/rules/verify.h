// From an input to what an engine may run: a plan that was judged and found right.
//
//   verify(input, options)           a VerifiedPlan, if the verdict is *accepted*
//   admit_unchecked(input, options)  an UncheckedPlan, if all that is wrong can be run
//
// Nothing else makes either, so that an engine's parameter says what it relies on. The second is
// the one door for orders that are wrong on purpose: to show a hazard. It opens for findings about
// buffers, streams, replays, gradients and captures; a step of another kind of fault has no course
// that could be run. Both ask for a declared plan whose sizes are bytes.
//
// Tested by verify_test.cpp.

#pragma once

#include "core/order/input.h"
#include "core/rules/check.h"
#include "core/rules/check_options.h"
#include "core/rules/plan_view.h"

#include <memory>
#include <string>
#include <variant>

namespace capo {

class UncheckedPlan;
class VerifiedPlan;
struct NotVerified;

[[nodiscard]] std::variant<VerifiedPlan, NotVerified> verify(Input input, CheckOptions options);
[[nodiscard]] std::variant<UncheckedPlan, NotVerified> admit_unchecked(Input input,
                                                                       CheckOptions options);

/// A step with its plan, and all that the two refer to.
class PlannedStep {
 public:
  PlannedStep(PlannedStep&&) noexcept;
  PlannedStep& operator=(PlannedStep&&) noexcept;
  ~PlannedStep();

  [[nodiscard]] const Input& input() const;
  [[nodiscard]] const CheckOptions& options() const;
  [[nodiscard]] const CheckResult& result() const;
  [[nodiscard]] const PlanView& view() const;
  /// How the orders run as captured, and as replayed: the same where there is no replay order.
  [[nodiscard]] const Course& captured() const;
  [[nodiscard]] const Course& replayed() const;
  [[nodiscard]] bool replays_as_captured() const;

 private:
  friend class VerifiedPlan;
  friend class UncheckedPlan;
  friend std::variant<VerifiedPlan, NotVerified> verify(Input input, CheckOptions options);
  friend std::variant<UncheckedPlan, NotVerified> admit_unchecked(Input input,
                                                                  CheckOptions options);
  struct State;
  explicit PlannedStep(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Why there is no plan to run: the verdict, and one sentence.
struct NotVerified {
  CheckResult result;
  std::string reason;
};

/// Whether all that is wrong can be run unchecked.
[[nodiscard]] bool can_be_admitted(const CheckResult& result);

class VerifiedPlan {
 public:
  [[nodiscard]] const PlannedStep& step() const { return step_; }

 private:
  friend std::variant<VerifiedPlan, NotVerified> verify(Input input, CheckOptions options);
  explicit VerifiedPlan(std::unique_ptr<PlannedStep::State> state);

  PlannedStep step_;
};

class UncheckedPlan {
 public:
  [[nodiscard]] const PlannedStep& step() const { return step_; }

 private:
  friend std::variant<UncheckedPlan, NotVerified> admit_unchecked(Input input,
                                                                  CheckOptions options);
  explicit UncheckedPlan(std::unique_ptr<PlannedStep::State> state);

  PlannedStep step_;
};

}  // namespace capo

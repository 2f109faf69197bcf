// A call of capo.check as values of C++: what is declared beside an order, and the order judged.
//
// The Python module is a second caller of what `capo check` calls, and has no judgement of its own:
// the report is the command line's, for programs and as text. An argument that does not fit the
// order is an std::invalid_argument, which Python sees as a ValueError. Tested by python/tests.

#pragma once

#include "core/input/load.h"
#include "core/model/model.h"
#include "core/order/input.h"
#include "core/profiles/opinion.h"
#include "core/project/suppression.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/rules/given_plan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::python {

/// A plan that others made, with its text.
struct PlanText {
  Source source;
  GivenPlan plan;
};

/// Everything that a call declares beside its order.
struct Declared {
  LoadOptions load;
  Model model;
  std::shared_ptr<const PlanText> given;  ///< null unless model.plan.kind is PlanKind::Given
  std::vector<std::string> profiles;      ///< names of other programs that are asked as well
  std::vector<Suppression> suppressions;
};

/// A capo.toml, and the name of the order's file as it has it.
struct ProjectText {
  Source source;
  std::string file;
};

/// The suppressions of an order, in its own text and in the capo.toml that holds for it.
[[nodiscard]] Result<std::vector<Suppression>, RefusedInput> suppressions_of(
    const Input& input, const std::optional<ProjectText>& project);

/// A plan in the text of `capo check --plan-in`, which is declared in place of one of capo's.
/// Throws std::invalid_argument if another is declared.
[[nodiscard]] Result<Declared, RefusedInput> with_plan(Declared declared, Source plan);

/// Throws std::invalid_argument if the order has no use for something that is declared, or states
/// otherwise itself.
void place(Input& input, const Declared& declared);

/// The page of a rule, by its id or name, or of the gradient contract. Throws std::invalid_argument
/// if there is none.
[[nodiscard]] std::string page_of(const std::string& name);

/// Throws std::invalid_argument if no profile has that name.
void refuse_unknown_profile(const std::string& name);

/// An order that was judged, or a text that was refused.
class Judgement {
 public:
  Judgement(Input input, Declared declared);
  explicit Judgement(RefusedInput refused);

  [[nodiscard]] Verdict verdict() const;
  /// The report as `capo check` prints it.
  [[nodiscard]] std::string text() const;
  /// The report as `capo check --format json` prints it.
  [[nodiscard]] std::string json() const;
  /// The smallest schedule that still breaks the rule, or, of an empty name, that of the first
  /// error. Throws std::invalid_argument if the order does not break it, or only by its form.
  [[nodiscard]] Schedule minimised(const std::string& rule) const;

 private:
  [[nodiscard]] std::optional<RefusedInput> misfit() const;
  [[nodiscard]] CheckOptions options(std::size_t findings_per_rule) const;
  [[nodiscard]] CheckResult checked(const Input& input, std::size_t findings_per_rule) const;
  // What was found, and what of it is suppressed.
  struct Found {
    CheckResult result;
    std::vector<Suppressed> suppressed;
  };
  [[nodiscard]] Found found(std::size_t findings_per_rule) const;
  [[nodiscard]] Report report(Found of) const;
  [[nodiscard]] std::optional<CheckResult> judge_again(const std::string& text) const;
  [[nodiscard]] std::vector<Opinion> opinions() const;

  std::optional<RefusedInput> refused_;
  Input input_;
  Declared declared_;
  Found found_;
  std::optional<Diagnostic> slip_;
  std::vector<Opinion> opinions_;
};

}  // namespace capo::python

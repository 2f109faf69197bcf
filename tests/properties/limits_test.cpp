// How many findings are kept is nothing to the verdict: who keeps none, or the first error alone,
// counts as many and comes to the same. The subjects are faults of every rule.

#include "core/diag/diagnostics.h"
#include "core/rules/context.h"
#include "core/rules/passes.h"
#include "testing/faults/faults.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/checked.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <span>
#include <string_view>

namespace capo::testing {
namespace {

CheckOptions options_of(const TeOrder& /*order*/) {
  return {};
}
CheckOptions options_of(const Schedule& /*schedule*/) {
  return {};
}
CheckOptions options_of(const Table& /*table*/) {
  return {};
}
CheckOptions options_of(const Communication& of) {
  return {.environment = of.environment, .groups = of.groups};
}
CheckOptions options_of(const Declared& of) {
  return of.options;
}

struct Judged {
  Verdict verdict;
  Diagnostics findings;
};

Judged judged(const Input& input, const CheckOptions& options, Diagnostics findings) {
  const Context context(input, options);
  Passes passes(context, findings);
  passes.run();
  return {passes.verdict(), std::move(findings)};
}

template <typename Subject>
void require_the_same(const Subject& subject) {
  const CheckOptions options = options_of(subject);
  const Input input = checked(subject).input;
  const Judged whole = judged(input, options, Diagnostics());
  const Diagnostics& all = whole.findings;

  const Judged none = judged(input, options, Diagnostics(0));
  RC_ASSERT(none.verdict == whole.verdict);
  RC_ASSERT(none.findings.kept().empty());
  RC_ASSERT(none.findings.errors() == all.errors());
  RC_ASSERT(none.findings.warnings() == all.warnings());

  const Judged one = judged(input, options, Diagnostics(1));
  RC_ASSERT(one.verdict == whole.verdict);
  RC_ASSERT(one.findings.errors() == all.errors());
  std::set<std::string_view> rules;
  for (const Diagnostic& finding : one.findings.kept())
    RC_ASSERT(rules.insert(finding.rule).second);

  const Judged first = judged(input, options, Diagnostics::first_error_only());
  RC_ASSERT(first.verdict == whole.verdict);
  RC_ASSERT(first.findings.kept().empty());
}

template <typename Subject>
void require_for_all(const Subject& sound, std::span<const Fault<Subject>> faults) {
  require_the_same(sound);
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const Fault<Subject>& fault : faults) {
    if (const auto broken = fault.apply(sound, choice)) require_the_same(broken->subject);
  }
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnAList, ()) {
  require_for_all(*sound_order(), list_faults());
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnANamedOrder, ()) {
  require_for_all(*sound_named_schedule(), order_faults());
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnATable, ()) {
  require_for_all(table_of(*sound_named_schedule()), table_faults());
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnCommunication, ()) {
  require_for_all(*sound_communication(), communication_faults());
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnModules, ()) {
  require_for_all(*sound_declared(), module_faults());
}

RC_GTEST_PROP(Limits, ChangeNoVerdictOnAPlan, ()) {
  require_for_all(*sound_planned(), plan_faults());
}

}  // namespace
}  // namespace capo::testing

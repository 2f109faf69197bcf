// Faults of plans: none where a plan is kept to, none of reuse under capo's own, and no errors
// without one. That each is reported is in faults_test.cpp.

#include <capo/testing/faults/faults.h>
#include <capo/testing/generators/sound_planned.h>
#include <capo/testing/laws/checked.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

bool is_silent(const Checked& verdict) {
  return verdict.of(Family::Buffers).empty() && verdict.of(Family::Streams).empty() &&
         verdict.of(Family::Replay).empty();
}

RC_GTEST_PROP(PlanFaults, AreNotSeenWhereThereAreNone, ()) {
  const Checked verdict = checked(*sound_planned());
  RC_ASSERT(verdict.accepted());
  RC_ASSERT(verdict.result.diagnostics.kept().empty());
}

// Where memory is shared only when nobody can be hurt, a budget and the order of replay are left.
RC_GTEST_PROP(PlanFaults, OfReuseAreNoneUnderCaposPlan, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || broken->rule == "B08" || broken->rule == "Y01") continue;
    broken->subject.options.plan.kind = PlanKind::Safe;
    RC_ASSERT(is_silent(checked(broken->subject)));
  }
}

// A plan that nobody declared is no ground for an error.
RC_GTEST_PROP(PlanFaults, LeaveTheVerdictAloneWithoutAPlan, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken) continue;
    broken->subject.options.plan.kind.reset();
    RC_ASSERT(checked(broken->subject).accepted());
  }
}

}  // namespace
}  // namespace capo::testing

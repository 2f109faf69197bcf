// Every fault of a plan is reported, by its rule, at its place; and a plan that is kept to is at no
// fault.

#include <capo/testing/generators/sound_planned.h>
#include <capo/tests/properties/planned.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

using testing_support::Checked;

bool is_silent(const Checked& checked) {
  return checked.of(Family::Buffers).empty() && checked.of(Family::Streams).empty() &&
         checked.of(Family::Replay).empty();
}

RC_GTEST_PROP(PlanFaults, AreReportedByTheirRuleAtTheirPlace, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    const auto broken = fault.apply(sound, choice);
    if (!broken) continue;
    const Checked checked = check_planned(broken->subject);
    if (reports(checked, *broken) && checked.result.verdict == Verdict::Rejected) continue;
    RC_LOG() << rc::toString(broken->subject) << "\n";
    RC_FAIL(fmt::format("{}: expected {} at rank {} index {}, found [{}]", fault.name, broken->rule,
                        broken->place->rank, broken->place->index,
                        fmt::join(checked.findings(), " ")));
  }
}

RC_GTEST_PROP(PlanFaults, AreNotSeenWhereThereAreNone, ()) {
  const Checked checked = check_planned(*sound_planned());
  RC_ASSERT(checked.accepted());
  RC_ASSERT(checked.findings().empty());
}

// Where memory is shared only when nobody can be hurt, a budget and the order of replay are left.
RC_GTEST_PROP(PlanFaults, OfReuseAreNoneUnderCaposPlan, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || broken->rule == "B08" || broken->rule == "Y01") continue;
    broken->subject.options.plan.kind = PlanKind::Safe;
    const Checked checked = check_planned(broken->subject);
    RC_ASSERT(is_silent(checked));
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
    RC_ASSERT(check_planned(broken->subject).accepted());
  }
}

}  // namespace
}  // namespace capo::testing

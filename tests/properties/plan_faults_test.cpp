// Faults of plans: a kept plan has none, capo's own plan has none of reuse, and without a plan they
// are no errors. faults_test.cpp holds that each is reported.

#include "testing/faults/faults.h"
#include "testing/generators/sound_planned.h"
#include "testing/laws/checked.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>

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

// Memory that is shared only when no reader can be hurt leaves a budget and the order of replay to
// break.
RC_GTEST_PROP(PlanFaults, OfReuseAreNoneUnderCaposPlan, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || broken->rule == "B08" || broken->rule.front() == 'Y') continue;
    broken->subject.options.plan.kind = PlanKind::Safe;
    RC_ASSERT(is_silent(checked(broken->subject)));
  }
}

// The operands that a module keeps decide whether its weight gradient reads a shared buffer;
// without declared modules that is no ground for an error.
RC_GTEST_PROP(PlanFaults, OfOperandsAreWarningsWhereNobodyDeclaredThem, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || (broken->rule != "B01" && broken->rule != "B02")) continue;
    broken->subject.options.plan.aliases.reset();
    broken->subject.options.modules = {};
    for (const Diagnostic& finding : checked(broken->subject).of(Family::Buffers)) {
      if (finding.rule == broken->rule) RC_ASSERT(finding.severity == Severity::Warning);
    }
  }
}

// A rank needs its buffers at their peak, and its weights.
RC_GTEST_PROP(PlanFaults, OfBudgetsBeginOneByteBelowWhatTheRanksNeed, ()) {
  Declared declared = *sound_planned();
  for (Module& module : declared.options.modules.list) module.bytes.weight = 1000;
  const Checked free = checked(declared);
  RC_ASSERT(free.result.plan.has_value() && free.result.plan->sized);
  std::int64_t needed = 0;
  for (const RankMemory& rank : free.result.plan->ranks) {
    RC_ASSERT(rank.weights > 0);
    needed = std::max(needed, rank.peak() + rank.weights);
  }
  declared.options.plan.budget = needed;
  RC_ASSERT(checked(declared).accepted());
  declared.options.plan.budget = needed - 1;
  RC_ASSERT(!checked(declared).accepted());
}

// An undeclared plan is no ground for an error. A paged stash is declared by itself (Y06).
RC_GTEST_PROP(PlanFaults, LeaveTheVerdictAloneWithoutAPlan, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || broken->rule == "Y06") continue;
    broken->subject.options.plan.kind.reset();
    RC_ASSERT(checked(broken->subject).accepted());
  }
}

}  // namespace
}  // namespace capo::testing

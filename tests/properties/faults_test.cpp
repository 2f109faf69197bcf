// Every fault that is injected into something sound is reported, by its rule, at its place.

#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/verdicts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

std::size_t any_choice() {
  return *rc::gen::inRange<std::size_t>(0, 10'000);
}

RC_GTEST_PROP(Faults, OfAListAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::faults_are_reported(*sound_order(), any_choice()));
}

RC_GTEST_PROP(Faults, OfANamedOrderAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::faults_are_reported(*sound_named_schedule(), any_choice()));
}

RC_GTEST_PROP(Faults, OfATableAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::faults_are_reported(table_of(*sound_named_schedule()), any_choice()));
}

RC_GTEST_PROP(Faults, OfCommunicationAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::faults_are_reported(*sound_communication(), any_choice()));
}

RC_GTEST_PROP(Faults, OfModulesAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::module_faults_are_reported(*sound_declared(), any_choice()));
}

RC_GTEST_PROP(Faults, OfPlansAreReportedByTheirRuleAtTheirPlace, ()) {
  require(laws::plan_faults_are_reported(*sound_planned(), any_choice()));
}

}  // namespace
}  // namespace capo::testing

// The laws of simulated time hold of every sound schedule, at any costs and however messages
// travel.

#include "testing/generators/arbitrary_costs.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

SimulationOptions any_options() {
  SimulationOptions options{.costs = *arbitrary_costs()};
  if (*rc::gen::arbitrary<bool>()) options.check.environment.transfers = TransferMode::Buffered;
  if (*rc::gen::arbitrary<bool>()) options.ideal_links = *rc::gen::arbitrary<bool>();
  return options;
}

RC_GTEST_PROP(Times, WhatIsAcceptedFinishes, ()) {
  require(laws::finishes_where_accepted(*sound_schedule(), any_options()));
}

RC_GTEST_PROP(Times, NoStepIsFasterThanItsChains, ()) {
  const Schedule schedule = *sound_schedule();
  const SimulationOptions options = any_options();
  RC_CLASSIFY(laws::longest_chain(schedule, options.costs) > 0);
  require(laws::is_no_faster_than_its_chains(schedule, options));
}

}  // namespace
}  // namespace capo::testing

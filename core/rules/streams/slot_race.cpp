// Two uses of the same memory, one of them a write, are ordered by streams and events.
//
// What is over before what is known from one clock a stream: the order of a stream, and the events
// between streams. A race may come out right; nothing says that it will. Tested by
// slot_race_test.cpp and tests/corpus/rules/E01/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

namespace capo::rules {

void slot_race(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    // A send that may still read is no race, but B04's.
    if (hazard.hazard.race) report_hazard(context, view, hazard, "E01", Family::Streams, out);
  }
}

}  // namespace capo::rules

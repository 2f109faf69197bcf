// A static input is its graph's until the last reader: the weight gradient, where that reads it.
//
//   1 -1 1 -1.5 -1 -1.5      -1.5 pairs the input of microbatch 1 with the gradient of microbatch 0
//
// TE frees the input at the backward, and the next forward of the same signature takes the oldest
// one that is free. Races and reorderings by replay are E01's and Y01's. Tested by
// static_input_reuse_test.cpp and tests/corpus/rules/B01/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

namespace capo::rules {

void static_input_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::StaticInput && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B01", Family::Buffers, out);
  }
}

}  // namespace capo::rules

// The gradient that came in is there until the weight gradient has read it.
//
//   1 2 -2 -1 -2.5 -1.5      -2.5 reads the gradient of chunk 1
//
// TE has one static gradient for all graphs whose outputs look alike, and every backward copies its
// own into it. Races and reorderings by replay are E01's and Y01's. Tested by
// grad_output_reuse_test.cpp and tests/corpus/rules/B02/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

namespace capo::rules {

void grad_output_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::GradOutput && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B02", Family::Buffers, out);
  }
}

}  // namespace capo::rules

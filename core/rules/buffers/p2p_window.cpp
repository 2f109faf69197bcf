// A grad input that goes to another rank is there until its send is over.
//
// TE frees it when the next backward of any chunk is captured, since Megatron's send is over by the
// end of the next chunk's. Where every layer is a chunk of TE's list (EP overlap), the next chunk
// is one layer, and the send may last to the end of the next chunk of the model: `--model-chunks`
// says how many layers make one. Where transfers are known, the send itself is the reader; one that
// is issued in time but that nobody waits for is a race, E01's. Tested by p2p_window_test.cpp and
// tests/corpus/rules/B04/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

namespace capo::rules {

void p2p_window(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::P2pWindow && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B04", Family::Buffers, out);
  }
}

}  // namespace capo::rules

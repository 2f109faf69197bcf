// Memory of the graphs' pool is its buffer's until the last reader.
//
//   1 1 1 2 2 2 -2 -2 -2 -1 -1 -1      the first -1 reads what the first -2 hands back: the second
//                                      freed it, the third took it
//
// In the order of capture only one thing can outlive its memory: the gradient that a chunk hands
// back to another chunk of the same rank. TE frees it when the next backward of any chunk is
// captured, as if it were sent away by then. An output is kept until its own backward, and nothing
// reads it after that. Which block a capture takes is up to PyTorch's allocator, so the finding
// says may. What is sent is B04's; races and reorderings by replay are E01's and Y01's. Tested by
// pool_reuse_test.cpp and tests/corpus/rules/B03/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

namespace capo::rules {

void pool_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::Pool && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B03", Family::Buffers, out);
  }
}

}  // namespace capo::rules

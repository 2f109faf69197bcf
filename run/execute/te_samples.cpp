#include "run/execute/te_samples.h"

#include "core/plan/accesses.h"

#include <map>

namespace capo::run {

TeSamples te_samples(const PlannedStep& step) {
  TeSamples samples;
  const BufferTable& table = step.view().table();
  const Plan& plan = step.view().plan();
  if (plan.kind != PlanKind::Te) return samples;
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    std::map<std::int64_t, const Module*> first;  // by address: whose tensors they were
    for (const Work& work : step.captured().work[r]) {
      if (work.kind == Kind::BackwardWeight) continue;
      for_each_layer(table, rank, work, [&](std::int32_t layer) {
        const Module* module = table.facts(rank, work.chunk, layer).module;
        const bool forward = work.kind == Kind::Forward;
        const BufferId buffer =
            table.id(rank, work.chunk, layer, work.microbatch,
                     forward ? BufferKind::StaticInput : BufferKind::GradOutput);
        const Module* owner = first.try_emplace(plan.address[buffer], module).first->second;
        if (forward && !owner->flags.input_requires_grad && module->flags.input_requires_grad) {
          samples.without_gradient.insert(buffer);
        }
        if (!forward && owner->output_position != module->output_position) {
          samples.zeros.insert(buffer);
        }
      });
    }
  }
  return samples;
}

}  // namespace capo::run

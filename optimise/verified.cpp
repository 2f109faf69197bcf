#include "optimise/search.h"

#include "core/base/assert.h"
#include "core/order/declare.h"
#include "core/order/fuse_weights.h"
#include "core/rules/check.h"

namespace capo::optimise {

Schedule verified(const Problem& problem, const Orders& orders, const Figures& figures,
                  const SimulationOptions& options) {
  Input input{.form = Form::OrderFile, .schedule = schedule_of(problem, orders)};
  Schedule schedule = input.schedule;
  CheckOptions judged = options.check;
  if (problem.fuses()) {
    fuse_weights(input.schedule, problem.frame.weights_in_call);
    judged.plan.kind = PlanKind::Safe;  // what such a call holds is part of a plan
  }
  CAPO_ASSERT(check(input, judged).verdict == Verdict::Accepted,
              "the verifier accepts what the search finds");
  const auto misfit = declare_layers(input.schedule, options.costs.modules.layers);
  CAPO_ASSERT(!misfit, "the layers of a problem fit its orders");
  SimulationOptions ideal = options;
  ideal.ideal_links = true;
  const auto simulated = simulation_of(input, ideal);
  CAPO_ASSERT(simulated.has_value(), "the simulator runs what the search finds");
  const Simulation& simulation = **simulated;
  CAPO_ASSERT(simulation.makespan() == figures.makespan && simulation.span() == figures.span,
              "the simulator comes to the times of the search");
  for (std::size_t rank = 0; rank < figures.peaks.size(); ++rank) {
    CAPO_ASSERT(simulation.peaks()[rank].held == figures.peaks[rank],
                "the simulator comes to the memory of the search");
  }
  return schedule;
}

}  // namespace capo::optimise

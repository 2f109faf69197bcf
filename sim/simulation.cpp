#include "sim/simulation.h"

#include "core/base/in_parallel.h"
#include "core/graph/lowered.h"
#include "core/rules/plan_view.h"
#include "core/text/action_token.h"
#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo {

namespace {

Subject subject_of(const Wiring& wiring, Links links) {
  const bool ideal = links == Links::Ideal;
  return {.schedule = wiring.schedule(),
          .map = wiring.map(),
          .lowered = ideal ? wiring.ideal().lowered : wiring.lowered_for_links(),
          .graph = ideal ? wiring.ideal().graph : wiring.graph_for_links(),
          .links = links};
}

// An order is captured once and replayed step after step, so the replay is what runs.
const Wiring& as_run(const Context& context) {
  return *context.wirings().back();
}

Links links_of(const Wiring& wiring, const SimulationOptions& options) {
  const Environment& across = wiring.environment();
  const bool declared =
      across.transfers || across.communicators || across.p2p || has_transfers(wiring.schedule());
  if (!wiring.map().wired() || options.ideal_links.value_or(!declared)) return Links::Ideal;
  return across.buffered() ? Links::Buffered : Links::Rendezvous;
}

// Says what tasks wait for that never run under these links.
std::string waits_in_words(Links links) {
  return links == Links::Ideal ? "the orders wait for each other"
                               : "its transfers wait for each other";
}

// The reason why the orders have no times under these links, as far as it is known before they are
// simulated; empty if none is.
std::string obstacle(const Wiring& wiring, Links links) {
  if (wiring.by_megatron() && !wiring.megatron_placement()) {
    return "Megatron's transfers need stages that go around the ranks in a loop";
  }
  if (wiring.by_megatron() && !wiring.megatron().faults.empty()) {
    return "Megatron's runtime stops at it";
  }
  // The graph of a composite does not show that its members read one another.
  const bool shown = links == Links::Ideal && !has_composites(wiring.schedule());
  return shown || wiring.executable() ? "" : waits_in_words(Links::Ideal);
}

// The plan is judged with all that it is relative to: a peak is what `check` says, or nothing.
std::optional<PlanResult> planned_memory(const Input& input, const SimulationOptions& options) {
  if (!options.memory_plan || options.check.modules.layers.empty()) return std::nullopt;
  CheckOptions declared = options.check;
  declared.plan = *options.memory_plan;
  if (!declared.plan.kind) declared.plan.kind = PlanKind::Safe;
  auto plan = check(input, declared).plan;
  return plan && plan->sized ? std::move(plan) : std::nullopt;
}

// Whether a layer, or an exchange of one, has tasks of its own.
bool takes_layers_apart(const Lowered& lowered) {
  return std::ranges::any_of(lowered.ranks, [](const StepList& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      return step.part != Part::Whole || is_exchange(step.kind);
    });
  });
}

std::string_view words_for(Part part) {
  switch (part) {
    case Part::PreDispatch:
      return " pre-dispatch";
    case Part::Experts:
      return " experts";
    case Part::PostProcess:
      return " post-process";
    case Part::Whole:
      break;
  }
  return "";
}

}  // namespace

namespace {

Costs shared(Costs costs, const Schedule& schedule) {
  if (costs.per == CostPer::Rank) costs.shares = chunk_shares(schedule);
  return costs;
}

}  // namespace

Simulation::Simulation(const Input& input, const SimulationOptions& options,
                       std::unique_ptr<Context> context, Links links, Costs costs, TaskTimes times)
    : input_(input),
      costs_(std::move(costs)),
      context_(std::move(context)),
      wiring_(as_run(*context_)),
      subject_(subject_of(wiring_, links)),
      times_(std::move(times)),
      layers_(layer_counts(input.schedule)),
      ranks_(rank_times(subject_, times_)),
      quantizing_(quantizing_times(subject_, costs_, times_)),
      span_(span_of(ranks_)),
      memory_(options.memory.value_or(MemoryChange{})) {
  for (const RankTimes& rank : ranks_) busiest_ = std::max(busiest_, rank.busy);
  peaks_ = peaks_of(same_for_all(input.schedule, memory_, costs_.recomputed));
  planned_ = planned_memory(input, options);
  origins_ = options.origins;
  rates_ = options.rates;
  bounds_ = lower_bounds(subject_, costs_, context_->microbatches(), memory_,
                         options.memory_limit.value_or(peak()));
}

std::vector<MemoryPeak> Simulation::peaks_of(const MemoryChanges& changes) const {
  std::vector<MemoryPeak> peaks(input_.schedule.ranks.size());
  in_parallel(peaks.size(), threads_worth(graph().tasks.size()), [&](std::size_t rank) {
    peaks[rank] = peak_of(subject_, times_, changes, static_cast<std::int32_t>(rank));
  });
  return peaks;
}

std::vector<MemoryStep> Simulation::memory_course(std::int32_t rank) const {
  return memory_of(subject_, times_, same_for_all(input_.schedule, memory_, costs_.recomputed),
                   rank);
}

double Simulation::quantizing_of(std::size_t rank) const {
  const std::vector<TaskId>& first = subject_.graph.first_of;
  double sum = 0;
  for (TaskId id = first[rank]; id < first[rank + 1]; ++id) sum += quantizing(id);
  return sum;
}

double Simulation::peak() const {
  double peak = 0;
  for (const MemoryPeak& rank : peaks_) peak = std::max(peak, rank.held);
  return peak;
}

double Simulation::exposed() const {
  return std::accumulate(ranks_.begin(), ranks_.end(), 0.0,
                         [](double sum, const RankTimes& rank) { return sum + rank.exposed; });
}

std::int32_t Simulation::microbatches_in_flight() const {
  std::int32_t most = 0;
  for (const MemoryPeak& peak : peaks_) most = std::max(most, peak.microbatches);
  return most;
}

double Simulation::rate(double of) const {
  return of > 0 ? (of - busiest_) / of : 0;
}

bool Simulation::replayed() const {
  return replays_otherwise(input_.schedule);
}

std::string Simulation::label(TaskId task) const {
  const Task& of = subject_.graph.tasks[task];
  const Step& step = step_of(subject_.lowered, of);
  const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
  std::string label = to_token(action, Naming::Named);
  const bool of_layer = step.part != Part::Whole || is_exchange(step.kind);
  const std::int32_t layers = layers_[RankId(of.rank).index()][step.chunk.index()];
  if (of_layer && layers > 1) label += fmt::format(" l{}", step.layer);
  label += words_for(step.part);
  return label;
}

Result<std::unique_ptr<Simulation>, CannotSimulate> simulation_of(
    const Input& input, const SimulationOptions& options) {
  const auto refused = [&](std::string why) {
    return CannotSimulate{.why = std::move(why), .check = check(input, options.check)};
  };
  auto context = std::make_unique<Context>(input, options.check);
  if (context->wirings().empty()) return refused("there are no ranks");
  if (!orders_are_clean(*context)) return refused("the orders have errors of their own");
  const Wiring& wiring = as_run(*context);
  const Links links = links_of(wiring, options);
  if (std::string why = obstacle(wiring, links); !why.empty()) return refused(std::move(why));
  // Nobody asks for them any more, and the graph and its times are what takes the memory.
  for (const OrderView& order : context->orders()) order.by_microbatch.reset();
  const Subject subject = subject_of(wiring, links);
  if (options.costs.recomputed.any() && takes_layers_apart(subject.lowered)) {
    return refused("chunks that recompute are not taken apart into layers and exchanges");
  }
  Costs costs = shared(options.costs, input.schedule);
  auto times = simulate_if_it_finishes(subject, costs);
  if (!times) return refused(waits_in_words(links));
  if (costs.tell_rest()) {
    costs.used = used_shares(subject, costs, *times);
    times = simulate(subject, costs);
  }
  return std::make_unique<Simulation>(input, options, std::move(context), links, std::move(costs),
                                      *std::move(times));
}

}  // namespace capo

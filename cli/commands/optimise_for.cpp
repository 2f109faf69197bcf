// Orders for whoever runs them, `capo optimise --for`: only such as the recipient takes and runs
// right.
//
//   te      a list a rank, whose weight gradients stand directly behind their backwards: its reuse
//           of memory overwrites at the next backward, or at a forward, what a later weight
//           gradient reads (B01, B02)
//   torch   PyTorch's table of one pipeline
//   mcore   Megatron-LM runs orders of its own alone: the best of those for the counts, by the size
//           of the group of microbatches
//
// For te it is a problem of its own that is searched (with_weights_behind()). With --placement free
// the placement is searched as well (optimise/variants.h). Found orders are put to the profiles in
// the end. Tested by tests/cli/optimise_for_test.cpp and tests/cli/optimise_free_test.cpp.

#include "cli/commands/optimised.h"
#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/megatron/orders.h"
#include "core/order/declare.h"
#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::cli {

namespace {

/// Megatron's configurations of a problem: by the size of the group, where there are virtual
/// stages.
std::vector<mcore::Configuration> configurations_of(const optimise::Frame& frame) {
  mcore::Configuration plain{.pipeline = frame.ranks, .microbatches = frame.microbatches};
  if (frame.chunks == 1) return {plain};
  plain.virtual_stages = frame.chunks;
  std::vector<mcore::Configuration> all;
  for (std::int64_t group = frame.ranks; group <= std::max(frame.ranks, frame.microbatches);
       ++group) {
    mcore::Configuration each = plain;
    each.group_size = group;
    if (!refusal(each)) all.push_back(each);
  }
  if (all.empty()) all.push_back(plain);
  return all;
}

std::string name_of(const mcore::Configuration& configuration) {
  if (!configuration.group_size) return "Megatron-LM's 1F1B";
  return fmt::format("Megatron-LM's --group-size {}", *configuration.group_size);
}

std::optional<ForRecipient> made_with(const mcore::Configuration& configuration,
                                      const SimulationOptions& options, const Limits& limits) {
  const auto made = megatron::orders_of(
      {.configuration = configuration, .which = megatron::Which::Runtime}, limits);
  if (!made) return std::nullopt;
  ForRecipient of{.schedule = megatron::schedule_of(*made),
                  .found = {.from = name_of(configuration)}};
  Input input{.form = Form::OrderFile, .schedule = of.schedule};
  if (declare_layers(input.schedule, options.costs.modules.layers)) return std::nullopt;
  SimulationOptions ideal = options;
  ideal.ideal_links = true;
  const auto simulation = simulation_of(input, ideal);
  if (!simulation) return std::nullopt;
  of.found.figures.makespan = (*simulation)->makespan();
  of.found.figures.span = (*simulation)->span();
  for (const MemoryPeak& peak : (*simulation)->peaks()) of.found.figures.peaks.push_back(peak.held);
  return of;
}

Result<ForRecipient, std::string> best_of_megatron(const optimise::Problem& problem,
                                                   const SimulationOptions& options,
                                                   optimise::Objective objective,
                                                   const Limits& limits) {
  std::optional<ForRecipient> best;
  double least = std::numeric_limits<double>::infinity();
  const auto configurations = configurations_of(problem.frame);
  for (const mcore::Configuration& configuration : configurations) {
    auto made = made_with(configuration, options, limits);
    if (!made) continue;
    const optimise::Figures& figures = made->found.figures;
    least = std::min(least, figures.highest_peak());
    if (!fits(problem, figures)) continue;
    if (best && value_of(figures, objective) >= value_of(best->found.figures, objective)) continue;
    best = std::move(made);
  }
  if (best) return *std::move(best);
  return fmt::format(
      "of Megatron-LM's {} orders for these counts each holds {} at least, and {} is "
      "the limit",
      configurations.size(), figure(least), figure(problem.memory_limit));
}

// Has what was found verified, and put to the recipient's profile.
Made judged(Recipient recipient, const optimise::Problem& problem, optimise::Found found,
            const SimulationOptions& options) {
  if (recipient == Recipient::Te) {
    found.orders = optimise::with_weights_behind(found.orders);
    auto figures = evaluate(problem, found.orders);
    CAPO_ASSERT(figures.has_value(), "weight gradients directly behind their backwards run");
    found.figures = *std::move(figures);
  }
  Schedule schedule = verified(problem, found.orders, found.figures, options);
  if (auto why = refused_by(recipient, schedule)) return *std::move(why);
  return std::optional(ForRecipient{.schedule = std::move(schedule), .found = std::move(found)});
}

}  // namespace

std::optional<std::string> why_not_for(Recipient recipient, const optimise::Frame& frame) {
  if (recipient == Recipient::Torch && frame.topology == Topology::Bidirectional) {
    return "the stages of PyTorch's table are one pipeline, and --placement bidirectional has two";
  }
  if (recipient != Recipient::Mcore) return std::nullopt;
  if (frame.topology != Topology::Loop) {
    return "Megatron-LM places the chunks of its ranks in a loop, and --placement says otherwise";
  }
  return refusal(configurations_of(frame).front());
}

std::optional<std::string> why_no_calls_for(Recipient recipient) {
  switch (recipient) {
    case Recipient::Anybody:
      return std::nullopt;
    case Recipient::Te:
      return "has no use with --for te: TransformerEngine has a call for each weight gradient";
    case Recipient::Torch:
      return "has no use with --for torch: PyTorch's table has an action for each weight gradient";
    case Recipient::Mcore:
      return "has no use with --for mcore: Megatron-LM's own orders take no backward apart";
  }
  CAPO_UNREACHABLE();
}

Made made_by_megatron(const optimise::Problem& problem, const SimulationOptions& options,
                      const optimise::SearchOptions& how, const Limits& limits) {
  auto made = best_of_megatron(problem, options, how.objective, limits);
  if (!made) return made.error();
  const double bound = how.better_bound ? how.better_bound() : how.bound;
  const bool best = optimise::reaches(value_of(made->found.figures, how.objective), bound);
  made->found.ended = best ? optimise::Ended::Proof : optimise::Ended::Budget;
  return std::optional(*std::move(made));
}

Made searched_for(Recipient recipient, const optimise::Problem& problem,
                  const std::function<std::vector<optimise::Start>()>& starts,
                  const optimise::SearchOptions& how,
                  const std::function<void(const optimise::Found&)>& tell,
                  const SimulationOptions& options) {
  const bool behind = recipient == Recipient::Te;
  optimise::SearchOptions of_these = how;
  if (behind) of_these.exhaustive_tasks = 0;  // bounds are about any order
  auto found =
      search(behind ? optimise::with_weights_behind(problem) : problem, starts, of_these, tell);
  if (!found) return std::optional<ForRecipient>();
  return judged(recipient, problem, *std::move(found), options);
}

Made searched_for(Recipient recipient, optimise::Variants variants,
                  const optimise::SearchOptions& how,
                  const std::function<void(const optimise::Found&)>& tell) {
  variants.weights_behind = recipient == Recipient::Te;
  optimise::SearchOptions of_these = how;
  if (variants.weights_behind) of_these.exhaustive_tasks = 0;
  auto found = search_variants(variants, of_these, tell);
  if (!found) return std::optional<ForRecipient>();
  auto problem = problem_of(found->problem.frame, found->options);
  CAPO_ASSERT(problem.has_value(), "a problem that was searched can be made again");
  found->problem = *std::move(problem);
  auto made = judged(recipient, found->problem, std::move(found->found), found->options);
  if (made && *made) (*made)->variant = *std::move(found);
  return made;
}

Result<optimise::Frame, std::string> placed_as(const Schedule& schedule,
                                               const optimise::Problem& problem,
                                               const SimulationOptions& options) {
  if (schedule.topology == Topology::Independent) return problem.frame;
  if (schedule.topology == Topology::Bidirectional) {
    return std::string("has two pipelines, and --placement free has one");
  }
  optimise::Frame frame = problem.frame;
  frame.topology = Topology::Custom;
  for (const RankOrder& rank : schedule.ranks) frame.stages.push_back(rank.stages);
  if (const auto own = problem_of(frame, options); !own) return own.error();
  return optimise::with_placement(problem.frame, optimise::placement_of(frame));
}

}  // namespace capo::cli

// `capo sweep NAME...`: published schedules over a grid of counts and costs, a line each.
//
// Everything that is given several times or as a list is a dimension of the grid: names, --ranks,
// --microbatches, --chunks, --cost (each occurrence is a whole set of costs), --memory. A point
// that its schedule refuses is listed with the reason, since that is an answer too; one that is
// beyond a limit is listed as well, and has none.
//
// Schedules compete where counts, costs and --memory are the same: there they are sorted, those
// that exceed --memory last, and the best are marked. For that limit and peaks to be of one unit,
// searches within it take --mem, or what `simulate` takes without it.
//
// With --optimise the best order that a search finds competes as well, a point for each placement.
// It is made of rules and walks alone and of a number of moves, so that the output is the same on
// every machine; published orders of the same placement are its starts. What less memory costs is
// drawn as a picture.

#include "cli/commands/sweep.h"

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/progress.h"
#include "core/base/in_parallel.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <memory>

namespace capo::cli {

namespace {

void refuse_unused(const SweepRequest& request) {
  if (request.names.empty() && !request.optimise) {
    throw CLI::RequiredError("the name of a schedule");
  }
  if (request.ranks.empty()) throw CLI::RequiredError("--ranks");
  if (request.microbatches.empty()) throw CLI::RequiredError("--microbatches");
  for (const std::string& name : with_all(request.names)) {
    if (const auto why = schedules::unknown_name(name)) throw CLI::ValidationError("NAME", *why);
  }
}

int sweep(const SweepRequest& request) {
  refuse_unused(request);
  const auto points = grid_of(request);
  if (!points) return fail(points.error());
  std::vector<SweepOutcome> outcomes(points->size());
  {
    Progress progress("sweep", points->size());
    std::atomic<std::uint64_t> done{0};
    in_parallel(points->size(), request.threads, [&](std::size_t i) {
      outcomes[i] = outcome_of((*points)[i], request);
      progress.set(++done);
    });
  }
  choose(outcomes, request.sort);
  if (const auto failed = write_sweep(outcomes, request)) return fail(*failed);
  const bool all_within = std::none_of(outcomes.begin(), outcomes.end(),
                                       [](const SweepOutcome& each) { return each.beyond_limit; });
  return all_within ? kAccepted : kNoVerdict;
}

}  // namespace

Run add_sweep(CLI::App& command) {
  command.footer(
      "Example: capo sweep 1f1b zb-h1 zb-2p --ranks 4,8 --microbatches 16,32 --cost comm=0 "
      "--cost comm=0.1");
  auto request = std::make_shared<SweepRequest>();
  command.add_option("NAME", request->names,
                     "Published schedules; `capo generate --list` lists them, `all` is every one");
  command.add_option("--ranks,--pp,--pipeline-model-parallel-size", request->ranks,
                     "Pipeline ranks, `4,8,16`");
  command.add_option("--microbatches,--num-microbatches", request->microbatches,
                     "Microbatches, `16,32`");
  command.add_option("--chunks,--vp,--num-virtual-stages-per-pipeline-rank", request->chunks,
                     "Chunks of each rank, `2,4`; default: as named");
  command.add_option("--memory", request->memory_limits,
                     "Limits of what a rank may hold, `4,6.5`, `2..8` or `2..8:0.5`, in the unit "
                     "of --mem: searches keep to them, and what exceeds them is not chosen");
  command
      .add_option("--cost", request->costs,
                  "Times of one microbatch on one rank, f=12,b=13,w=9,comm=1; given again, "
                  "another set")
      ->allow_extra_args(false);
  add_cost_per(command, request->cost_per);
  command.add_option("--mem", request->memory,
                     "What a microbatch of one rank takes and gives up, f=1,b=-0.5,w=-0.5");
  add_sort(command, request->sort);
  auto* const optimise = command.add_flag("--optimise", request->optimise,
                                          "The best order that a search finds competes as well, as "
                                          "optimised-loop; see `capo optimise`");
  command
      .add_option("--placement", request->placements,
                  "What --optimise searches, `loop,v,bidirectional`: a point each")
      ->needs(optimise)
      ->default_str("loop");
  command.add_option("--moves", request->moves, "How much --optimise searches for each point")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->needs(optimise)
      ->capture_default_str();
  command.add_option("--seed", request->seed, "Of the numbers that --optimise draws")
      ->needs(optimise)
      ->capture_default_str();
  add_choice(command, "--format", request->format,
             {{"text", SweepFormat::Text}, {"json", SweepFormat::Json}, {"svg", SweepFormat::Svg}},
             "text, json, or svg: what less memory costs, as a picture; default: svg if the output "
             "is called so, else text");
  command
      .add_option("--max-runs", request->max_runs,
                  "Points of the grid; exceeding it is exit code 4")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  command.add_option("--threads", request->threads, "Threads; the output is the same")
      ->check(CLI::Range(1U, 1024U))
      ->default_str("one for each core");
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(command, request->limits);
  return [request] { return sweep(*request); };
}

}  // namespace capo::cli

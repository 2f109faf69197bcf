#include "cli/commands/optimise_request.h"

#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/environment_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/numbers.h"
#include "core/base/index.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "optimise/exhaustive.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <limits>
#include <string_view>
#include <utility>

namespace capo::cli {

using optimise::Objective;
using optimise::Orders;
using optimise::Problem;

namespace {

optimise::Frame frame_of(const OptimiseRequest& request) {
  if (request.ranks == 0) throw CLI::RequiredError("--ranks");
  if (request.microbatches == 0) throw CLI::RequiredError("--microbatches");
  optimise::Frame frame{.ranks = request.ranks,
                        .microbatches = request.microbatches,
                        .weights_in_call = request.fuse_w};
  if (request.fuse_w > 1) {
    if (const auto why = why_no_calls_for(request.recipient)) {
      throw CLI::ValidationError("--fuse-w", *why);
    }
  }
  switch (request.placement) {
    case SearchedPlacement::Loop:
      frame.chunks = request.chunks.value_or(1);
      break;
    case SearchedPlacement::V:
      frame.topology = Topology::V;
      frame.chunks = request.chunks.value_or(2);
      break;
    case SearchedPlacement::Bidirectional:
      frame.topology = Topology::Bidirectional;
      frame.chunks = request.chunks.value_or(2);
      if (request.microbatches % 2 != 0) {
        throw CLI::ValidationError("--microbatches", "is odd, and two pipelines share them evenly");
      }
      frame.microbatches /= 2;
      break;
    case SearchedPlacement::Free:  // the placement that is looked at first
      frame.chunks = request.chunks.value_or(2);
      break;
  }
  return frame;
}

// The times of a model file's modules, which flags override. What else it declares is about the
// order that is found, and not about the search.
Result<SimulationOptions, CommandError> options_of(const OptimiseRequest& request) {
  SimulationOptions options{.memory = memory_change(request.memory),
                            .memory_limit = request.memory_limit};
  if (!request.model.empty()) {
    auto file = read_model_file(request.model, request.limits);
    if (!file) return file.error();
    auto costs = costs_of(file->model);
    if (!costs) throw CLI::ValidationError("--model", costs.error());
    if (!costs->in_microseconds) {
      throw CLI::ValidationError("--model",
                                 "states no times: `capo measure` writes a file that does");
    }
    options.costs = *std::move(costs);
    options.costs.slowdown = 1;  // links of a search are ideal, and slow nothing
  }
  for (const CostSetting& setting : cost_settings(request.costs)) options.costs.set(setting);
  options.costs.per = request.cost_per;
  options.costs.recomputed = recomputed_chunks(request.chooses() ? "all" : request.recompute);
  options.costs.alike = true;  // as what is found is simulated
  return options;
}

// A chunk of which the model file says nothing would take the times of --cost, which are of another
// unit.
void refuse_undeclared(const ModuleTable& modules, const optimise::Frame& frame) {
  if (modules.layers.empty()) return;
  for (std::int32_t rank = 0; rank < frame.ranks; ++rank) {
    for (std::int32_t chunk = 1; chunk <= frame.chunks; ++chunk) {
      if (modules.of(rank, chunk, 0) != nullptr) continue;
      throw CLI::ValidationError(
          "--model", fmt::format("declares no module of chunk {} on rank {}", chunk, rank));
    }
  }
}

// The problem of a file's own placement, where any is searched.
Problem problem_for(const Schedule& schedule, const OptimiseRequest& request,
                    const Problem& problem, const SimulationOptions& options) {
  if (!request.free()) return problem;
  const auto frame = placed_as(schedule, problem, options);
  if (!frame) throw CLI::ValidationError("--from", frame.error());
  return *problem_of(*frame, options);
}

// The orders of --from, which is read as a start of the search.
std::variant<FromFile, int> start_from(const OptimiseRequest& request, const Problem& asked,
                                       const SimulationOptions& options) {
  const auto input = load_input({.file = request.from, .limits = request.limits});
  if (!input) return refuse(input.error());
  const Problem problem = problem_for(input->schedule, request, asked, options);
  auto orders = optimise::orders_of(problem, input->schedule);
  if (!orders) throw CLI::ValidationError("--from", orders.error());
  const auto figures = evaluate(problem, *orders);
  if (!figures) throw CLI::ValidationError("--from", "is an order that does not run to its end");
  if (!fits(problem, *figures)) {
    throw CLI::ValidationError(
        "--from", fmt::format("holds {}, and --memory is {}", figure(figures->highest_peak()),
                              figure(problem.memory_limit)));
  }
  return FromFile{.frame = problem.frame,
                  .start = {.name = request.from, .orders = *std::move(orders)}};
}

void refuse_what_megatron_lacks(const OptimiseRequest& request) {
  if (request.recipient != Recipient::Mcore) return;
  const char* flag = request.chooses()            ? "--recompute choose"
                     : !request.from.empty()      ? "--from"
                     : !request.bound_out.empty() ? "--bound-out"
                                                  : nullptr;
  if (flag == nullptr) return;
  throw CLI::ValidationError(
      flag, "has no use: Megatron-LM's own orders, which take no backward apart, are all tried");
}

// An order that places other stages than it has costs or recomputation for.
void refuse_misfit(const Problem& problem, const SimulationOptions& options) {
  const Schedule placed = schedule_of(problem, Orders(as_index(problem.frame.ranks)));
  if (const auto misfit = misfit_of(options.costs.settings, placed)) {
    throw CLI::ValidationError("--cost", *misfit);
  }
  refuse_recomputed(options.costs.recomputed, placed, options.costs.modules);
}

// A free placement is any, whatever is looked at first.
optimise::Frame frame_for_recipient(const OptimiseRequest& request, optimise::Frame frame) {
  if (request.free()) frame.topology = Topology::Custom;
  return frame;
}

}  // namespace

std::variant<AskedOrders, int> asked_orders(const OptimiseRequest& request) {
  const optimise::Frame frame = frame_of(request);
  if (request.chooses() && !request.bound_out.empty()) {
    throw CLI::ValidationError("--bound-out",
                               "has no use with --recompute choose: what it shows is about the "
                               "chunks that recompute in its orders");
  }
  if (const auto large = too_large({.chunks = frame.chunks, .microbatches = frame.microbatches},
                                   frame.ranks, 3, request.limits)) {
    return fail(*large);
  }
  auto options = options_of(request);
  if (!options) return refuse(options.error());
  refuse_undeclared(options->costs.modules, frame);
  auto problem = problem_of(frame, *options);
  if (!problem) throw CLI::ValidationError("optimise", problem.error());
  refuse_misfit(*problem, *options);
  if (const auto why = why_impossible(*problem)) return no_such_order(*why);
  refuse_what_megatron_lacks(request);
  AskedOrders asked{
      .problem = *std::move(problem), .options = *std::move(options), .given = std::nullopt};
  if (!request.from.empty()) {
    auto start = start_from(request, asked.problem, asked.options);
    if (const int* code = std::get_if<int>(&start)) return *code;
    asked.given = std::get<FromFile>(std::move(start));
  }
  if (const auto why = why_not_for(request.recipient, frame_for_recipient(request, frame))) {
    return no_such_order(*why);
  }
  return asked;
}

double seconds_of(const std::string& time) {
  constexpr std::pair<std::string_view, double> kUnits[]{
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  std::string_view number = time;
  double unit = 1;
  for (const auto& [word, seconds] : kUnits) {
    if (!number.ends_with(word)) continue;
    number.remove_suffix(word.size());
    unit = seconds;
    break;
  }
  const auto value = finite_number(number);
  if (!value || *value <= 0) {
    throw CLI::ValidationError(
        "--time", fmt::format("{} is no time above 0, such as 10s, 500ms or 2m", shown(time)));
  }
  return *value * unit;
}

int no_such_order(const std::string& why) {
  print_stderr(fmt::format("error: there is no such order: {}\n", why));
  return kFindings;
}

OptimiseFormat format_of(const OptimiseRequest& request) {
  if (request.format) return *request.format;
  switch (request.recipient) {
    case Recipient::Anybody:
      return OptimiseFormat::Text;
    case Recipient::Torch:
      return OptimiseFormat::Csv;
    case Recipient::Te:
    case Recipient::Mcore:
      break;
  }
  return OptimiseFormat::Te;
}

void add_optimise_options(CLI::App& command, OptimiseRequest& request) {
  const CLI::Range count(1, std::numeric_limits<std::int32_t>::max());
  command
      .add_option("--ranks,--pp,--pipeline-model-parallel-size", request.ranks, "Pipeline ranks")
      ->check(count);
  command
      .add_option("--microbatches,--num-microbatches", request.microbatches,
                  "Microbatches of the step; of both directions together")
      ->check(count);
  command
      .add_option("--chunks,--vp,--num-virtual-stages-per-pipeline-rank", request.chunks,
                  "Chunks of each rank; default: 1 in a loop, else 2")
      ->check(count);
  add_choice(command, "--placement", request.placement,
             {{"loop", SearchedPlacement::Loop},
              {"v", SearchedPlacement::V},
              {"bidirectional", SearchedPlacement::Bidirectional},
              {"free", SearchedPlacement::Free}},
             "Which chunk is which stage; free: whichever placement of one pipeline is best");
  command.add_option("--model", request.model,
                     "A model file, whose modules' times count where no flag says otherwise");
  command
      .add_option("--cost", request.costs,
                  "Times of one microbatch on one rank, whose chunks share them: "
                  "f=12,b=13,w=9,comm=1; with a scope r0:f=14 of a rank, c2:w=3 of a chunk, "
                  "r0-r1:comm=2 of a link. Repeatable, the last one wins; default: "
                  "f=1,b=1,w=1,comm=0")
      ->allow_extra_args(false);
  add_cost_per(command, request.cost_per);
  command.add_option("--mem", request.memory,
                     "What a microbatch of one rank takes and gives up: f=1,b=-0.5,w=-0.5; a chunk "
                     "has its share. Default: f=1,b=0,w=-1, all is held until the weight gradient "
                     "is done; keep=0 of f by chunks that recompute");
  CLI::Option* recompute = add_recompute(command, request.recompute);
  recompute->description(recompute->get_description() + "; choose: which do is searched");
  add_above_zero(command, "--memory", request.memory_limit,
                 "What a rank may hold, in the unit of --mem; default: no limit");
  command
      .add_option(
          "--fuse-w", request.fuse_w,
          "Weight gradients of a chunk that one call may take, where they stand next to each "
          "other: searched as `capo simulate --fuse-w` prices them, with --cost fuse=0.35 or "
          "a model file")
      ->check(CLI::Range(1, kMostFusedWeights))
      ->capture_default_str();
  add_choice(command, "--objective", request.objective,
             {{"makespan", Objective::Makespan}, {"span", Objective::Span}},
             "makespan: until the last task ends; span: the longest of the ranks' times from first "
             "to last task");
  add_choice(command, "--for", request.recipient,
             {{"anybody", Recipient::Anybody},
              {"te", Recipient::Te},
              {"torch", Recipient::Torch},
              {"mcore", Recipient::Mcore}},
             "Search what this program runs right, and print it in its form: te, every weight "
             "gradient directly behind its backward; torch; mcore, one of Megatron-LM's own");
  add_choice(command, "--format", request.format, optimise_formats(),
             "text or json: a report; order, csv (PyTorch's table), tokens or te (a list a rank): "
             "the order. Default: text, or the form of --for");
  command.add_option("--time", request.time, "How long to search, 10s, 500ms, 2m")
      ->capture_default_str();
  command
      .add_option("--moves", request.moves,
                  "How much to search; where this and not --time ends it, the same seed gives the "
                  "same order")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->capture_default_str();
  command.add_option("--seed", request.seed, "Of the numbers that are drawn")
      ->capture_default_str();
  command
      .add_option("--exhaustive", request.exhaustive,
                  "Tasks up to which all orders are searched as well, if a bound is not reached: a "
                  "proof that nothing is better. 0: none")
      ->check(CLI::Range(0U, optimise::kMostTasksOfExhaustion))
      ->capture_default_str();
  command.add_option("--threads", request.threads, "Threads; they change the speed alone")
      ->check(CLI::Range(1U, 1024U))
      ->default_str("one for each core");
  command.add_option("--from", request.from, "An order of these counts to begin with");
  command.add_option("-o,--output", request.output,
                     "Write the order here, as an .order file or as --format says; the report goes "
                     "to standard output");
  command.add_option("--bound-out", request.bound_out,
                     "Write what shows the bound here, with the order: tools/check_bound.py checks "
                     "it");
  add_size_limits(command, request.limits);
}

}  // namespace capo::cli

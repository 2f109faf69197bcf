// `capo optimise --ranks P --microbatches M`: the best order for given costs and memory, with a
// proof of how far it is from the best possible.
//
//   capo optimise --ranks 8 --microbatches 32 --cost f=10,b=12,w=8,comm=2 --memory 6 -o best.order
//
// Published schedules of these counts are made and simulated under the same constraints; those that
// have the same placement and fit are starts of the search. What is found is judged by the verifier
// and simulated before it is shown. Standard output holds the result only; what is better so far is
// told on standard error, at most once a second. Ctrl-C ends the search, and the best is printed.

#include "cli/commands/commands.h"
#include "cli/commands/optimised.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/environment_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/numbers.h"
#include "core/base/assert.h"
#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "optimise/bounds.h"
#include "optimise/exhaustive.h"
#include "optimise/search.h"
#include "optimise/variants.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

using optimise::Found;
using optimise::LowerBounds;
using optimise::Objective;
using optimise::Orders;
using optimise::Problem;
using optimise::Start;

enum class Placement { Loop, V, Bidirectional, Free };

struct OptimiseRequest {
  std::int32_t ranks = 0;
  std::int32_t microbatches = 0;
  std::optional<std::int32_t> chunks;
  Placement placement = Placement::Loop;
  std::string model;
  std::vector<std::string> costs;
  CostPer cost_per = CostPer::Rank;
  std::string memory;
  std::string recompute;  ///< "choose": which chunks do is searched
  std::optional<double> memory_limit;
  std::int32_t fuse_w = 1;
  Objective objective = Objective::Makespan;
  Recipient recipient = Recipient::Anybody;
  std::optional<OptimiseFormat> format;
  std::string time = "10s";
  std::uint64_t moves = 100'000'000;
  std::uint64_t seed = 1;
  std::uint32_t exhaustive = 150;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::string from;
  std::string output;
  std::string bound_out;
  Limits limits;

  [[nodiscard]] bool free() const { return placement == Placement::Free; }
  [[nodiscard]] bool chooses() const { return recompute == "choose"; }
};

// "90", "1.5s", "2m", "500ms".
double seconds_of(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[]{
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  std::string_view number = text;
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
        "--time", fmt::format("{} is no time above 0, such as 10s, 500ms or 2m", shown(text)));
  }
  return *value * unit;
}

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
    case Placement::Loop:
      frame.chunks = request.chunks.value_or(1);
      break;
    case Placement::V:
      frame.topology = Topology::V;
      frame.chunks = request.chunks.value_or(2);
      break;
    case Placement::Bidirectional:
      frame.topology = Topology::Bidirectional;
      frame.chunks = request.chunks.value_or(2);
      if (request.microbatches % 2 != 0) {
        throw CLI::ValidationError("--microbatches", "is odd, and two pipelines share them evenly");
      }
      frame.microbatches /= 2;
      break;
    case Placement::Free:  // the placement that is looked at first
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

// --- the search ---------------------------------------------------------------------------------

std::atomic<bool> was_interrupted = false;

extern "C" void end_search(int /*signal*/) {
  was_interrupted = true;
}

/// While an object of it lives, an interrupt ends the search and not the process.
class Interruptible {
 public:
  Interruptible() : before_(std::signal(SIGINT, end_search)) {}
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

/// A start of the search, and its placement.
struct FromFile {
  optimise::Frame frame;
  Start start;
};

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

// Bounds take a tenth of the time to search or so, and a few seconds at most.
std::uint64_t states_for(double seconds) {
  constexpr double kStatesOfSecond = 5e6;
  return static_cast<std::uint64_t>(std::clamp(kStatesOfSecond * seconds, 1e5, 2e8));
}

int no_such_order(const std::string& why) {
  print_stderr(fmt::format("error: there is no such order: {}\n", why));
  return kFindings;
}

// Whom it is for has a form of its own.
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

// The placements that have published schedules, and that of --from, are searched in full.
optimise::Variants variants_of(const OptimiseRequest& request, const optimise::Frame& frame,
                               const SimulationOptions& options,
                               const std::optional<FromFile>& given) {
  optimise::Variants variants{.frame = frame,
                              .options = options,
                              .places = request.free(),
                              .recomputes = request.chooses(),
                              .named = {},
                              .starts_of = {}};
  if (!request.free()) return variants;
  if (frame.chunks % 2 == 0) {
    variants.named.push_back(frame);
    variants.named.back().topology = Topology::V;
  }
  if (given) variants.named.push_back(given->frame);
  return variants;
}

int optimise_request(const OptimiseRequest& request) {
  const auto began = Telling::Clock::now();
  const double most_seconds = seconds_of(request.time);
  const optimise::Frame frame = frame_of(request);
  const bool varies = request.free() || request.chooses();
  if (request.chooses() && !request.bound_out.empty()) {
    throw CLI::ValidationError("--bound-out",
                               "has no use with --recompute choose: what it shows is about the "
                               "chunks that recompute in its orders");
  }
  if (const auto large = too_large({.chunks = frame.chunks, .microbatches = frame.microbatches},
                                   frame.ranks, 3, request.limits)) {
    return fail(*large);
  }
  const auto stated = options_of(request);
  if (!stated) return refuse(stated.error());
  const SimulationOptions& options = *stated;
  refuse_undeclared(options.costs.modules, frame);
  const auto problem = problem_of(frame, options);
  if (!problem) throw CLI::ValidationError("optimise", problem.error());
  const Schedule placed = schedule_of(*problem, Orders(as_index(frame.ranks)));
  if (const auto misfit = misfit_of(options.costs.settings, placed)) {
    throw CLI::ValidationError("--cost", *misfit);
  }
  refuse_recomputed(options.costs.recomputed, placed, options.costs.modules);
  if (const auto why = why_impossible(*problem)) return no_such_order(*why);
  refuse_what_megatron_lacks(request);
  std::optional<FromFile> given;
  if (!request.from.empty()) {
    auto start = start_from(request, *problem, options);
    if (const int* code = std::get_if<int>(&start)) return *code;
    given = std::get<FromFile>(std::move(start));
  }
  optimise::Frame asked = frame;
  if (request.free()) asked.topology = Topology::Custom;
  if (const auto why = why_not_for(request.recipient, asked)) return no_such_order(*why);
  const Interruptible interruptible;
  std::optional<std::vector<PublishedSchedule>> published;  // made when there are orders already
  optimise::Variants variants = variants_of(request, frame, options, given);
  const auto starts_of = [&](const Problem& of, const SimulationOptions& with) {
    auto made = published_schedules(of, with, request.limits, request.threads);
    std::vector<Start> starts;
    const bool whole = of.frame.microbatches == frame.microbatches;
    const bool own = given && whole && placement_of(given->frame) == placement_of(of.frame);
    if (own) starts.push_back(given->start);
    add_starts(made, request.recipient, starts);
    if (whole) published = std::move(made);
    return starts;
  };
  const auto stopped = [&] { return was_interrupted || seconds_since(began) > most_seconds; };
  const auto bounds_with = [&](std::uint64_t states) {
    return varies ? bounds_of_variants(variants, states, request.threads, stopped)
                  : lower_bounds(*problem, states, stopped);
  };
  // Those that are there at once, until there are orders.
  LowerBounds bounds = varies ? bounds_of_variants(variants)
                              : LowerBounds{.makespan = problem->closed_forms.makespan,
                                            .span = problem->closed_forms.span};
  const auto better_bound = [&] {
    bounds = bounds_with(states_for(most_seconds));
    return optimise::bound_of(bounds, request.objective).value;
  };
  const optimise::SearchOptions how{.objective = request.objective,
                                    .bound = optimise::bound_of(bounds, request.objective).value,
                                    .better_bound = better_bound,
                                    .seed = request.seed,
                                    .moves = request.moves,
                                    .threads = request.threads,
                                    .exhaustive_tasks = request.exhaustive,
                                    .stopped = stopped};
  const Telling telling(request.objective, bounds, began);
  variants.starts_of = starts_of;
  const auto made = request.recipient == Recipient::Mcore
                        ? made_by_megatron(*problem, options, how, request.limits)
                    : varies
                        ? searched_for(request.recipient, variants, how, telling)
                        : searched_for(
                              request.recipient, *problem,
                              [&] { return starts_of(*problem, options); }, how, telling, options);
  if (!made) return no_such_order(made.error());
  if (!*made) {
    if (was_interrupted) return kInterrupted;
    print_stderr("error: no order was found in time\n  help: give it more with --time\n");
    return kNoVerdict;
  }
  const Problem& of = (*made)->variant ? (*made)->variant->problem : *problem;
  const SimulationOptions& with = (*made)->variant ? (*made)->variant->options : options;
  // Published schedules come to other times with each choice of chunks that recompute.
  if (!published || request.chooses()) (void)starts_of(of, with);
  const Found& found = (*made)->found;
  const double value = value_of(found.figures, request.objective);
  const LowerBounds shown = bounds;  // without the search of all orders
  if (found.proves(request.objective)) raise_to(bounds, request.objective, value);
  const Bound& bound = optimise::bound_of(bounds, request.objective);
  const Optimised optimised{.schedule = (*made)->schedule,
                            .frame = of.frame,
                            .found = found,
                            .bounds = bounds,
                            .published = *std::move(published),
                            .objective = request.objective,
                            .memory_limit = request.memory_limit,
                            .recomputed = with.costs.recomputed,
                            .keep = options.memory.value_or(MemoryChange{}).keep,
                            .fuse_w = request.fuse_w,
                            .variants = varies ? (*made)->variant->tried : 0,
                            .places = request.free(),
                            .recomputes = request.chooses(),
                            .in_microseconds = options.costs.in_microseconds,
                            .seed = request.seed,
                            .seconds = seconds_since(began),
                            .gap = optimise::gap_of(value, bound.value),
                            .proved = optimise::reaches(value, bound.value)};
  if (!request.bound_out.empty()) {
    if (const auto failed = write_bound(of, options.costs, optimised, shown, request.bound_out)) {
      return fail(*failed);
    }
  }
  const int code = print(optimised, format_of(request), request.output);
  return code == kAccepted && was_interrupted ? kInterrupted : code;
}

}  // namespace

Run add_optimise(CLI::App& command) {
  command.footer(
      "Example: capo optimise --ranks 8 --microbatches 32 --cost f=10,b=12,w=8,comm=2 --memory 6 "
      "-o "
      "best.order");
  auto request = std::make_shared<OptimiseRequest>();
  const CLI::Range count(1, std::numeric_limits<std::int32_t>::max());
  command
      .add_option("--ranks,--pp,--pipeline-model-parallel-size", request->ranks, "Pipeline ranks")
      ->check(count);
  command
      .add_option("--microbatches,--num-microbatches", request->microbatches,
                  "Microbatches of the step; of both directions together")
      ->check(count);
  command
      .add_option("--chunks,--vp,--num-virtual-stages-per-pipeline-rank", request->chunks,
                  "Chunks of each rank; default: 1 in a loop, else 2")
      ->check(count);
  add_choice(command, "--placement", request->placement,
             {{"loop", Placement::Loop},
              {"v", Placement::V},
              {"bidirectional", Placement::Bidirectional},
              {"free", Placement::Free}},
             "Which chunk is which stage; free: whichever placement of one pipeline is best");
  command.add_option("--model", request->model,
                     "A model file, whose modules' times count where no flag says otherwise");
  command
      .add_option("--cost", request->costs,
                  "Times of one microbatch on one rank, whose chunks share them: "
                  "f=12,b=13,w=9,comm=1; with a scope r0:f=14 of a rank, c2:w=3 of a chunk, "
                  "r0-r1:comm=2 of a link. Repeatable, the last one wins; default: "
                  "f=1,b=1,w=1,comm=0")
      ->allow_extra_args(false);
  add_cost_per(command, request->cost_per);
  command.add_option("--mem", request->memory,
                     "What a microbatch of one rank takes and gives up: f=1,b=-0.5,w=-0.5; a chunk "
                     "has its share. Default: f=1,b=0,w=-1, all is held until the weight gradient "
                     "is done; keep=0 of f by chunks that recompute");
  CLI::Option* recompute = add_recompute(command, request->recompute);
  recompute->description(recompute->get_description() + "; choose: which do is searched");
  add_above_zero(command, "--memory", request->memory_limit,
                 "What a rank may hold, in the unit of --mem; default: no limit");
  command
      .add_option(
          "--fuse-w", request->fuse_w,
          "Weight gradients of a chunk that one call may take, where they stand next to each "
          "other: searched as `capo simulate --fuse-w` prices them, with --cost fuse=0.35 or "
          "a model file")
      ->check(CLI::Range(1, kMostFusedWeights))
      ->capture_default_str();
  add_choice(command, "--objective", request->objective,
             {{"makespan", Objective::Makespan}, {"span", Objective::Span}},
             "makespan: until the last task ends; span: the longest of the ranks' times from first "
             "to last task");
  add_choice(command, "--for", request->recipient,
             {{"anybody", Recipient::Anybody},
              {"te", Recipient::Te},
              {"torch", Recipient::Torch},
              {"mcore", Recipient::Mcore}},
             "Search what this program runs right, and print it in its form: te, every weight "
             "gradient directly behind its backward; torch; mcore, one of Megatron-LM's own");
  add_choice(command, "--format", request->format, optimise_formats(),
             "text or json: a report; order, csv (PyTorch's table), tokens or te (a list a rank): "
             "the order. Default: text, or the form of --for");
  command.add_option("--time", request->time, "How long to search, 10s, 500ms, 2m")
      ->capture_default_str();
  command
      .add_option("--moves", request->moves,
                  "How much to search; where this and not --time ends it, the same seed gives the "
                  "same order")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->capture_default_str();
  command.add_option("--seed", request->seed, "Of the numbers that are drawn")
      ->capture_default_str();
  command
      .add_option("--exhaustive", request->exhaustive,
                  "Tasks up to which all orders are searched as well, if a bound is not reached: a "
                  "proof that nothing is better. 0: none")
      ->check(CLI::Range(0U, optimise::kMostTasksOfExhaustion))
      ->capture_default_str();
  command.add_option("--threads", request->threads, "Threads; they change the speed alone")
      ->check(CLI::Range(1U, 1024U))
      ->default_str("one for each core");
  command.add_option("--from", request->from, "An order of these counts to begin with");
  command.add_option("-o,--output", request->output,
                     "Write the order here, as an .order file or as --format says; the report goes "
                     "to standard output");
  command.add_option("--bound-out", request->bound_out,
                     "Write what shows the bound here, with the order: tools/check_bound.py checks "
                     "it");
  add_size_limits(command, request->limits);
  return [request] { return optimise_request(*request); };
}

}  // namespace capo::cli

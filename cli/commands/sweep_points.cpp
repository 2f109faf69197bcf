// The points of a grid, and what each comes to: a published schedule or the best order that a
// search finds, simulated. A search has a number of moves and no clock, so that it finds the same
// on every machine; published orders of its placement are its starts.

#include "cli/commands/sweep.h"
#include "cli/options/cost_options.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/numbers.h"
#include "core/base/assert.h"
#include "optimise/bounds.h"
#include "optimise/search.h"
#include "sim/report.h"
#include "sim/simulation.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace capo::cli {

namespace {

double limit_of(const std::string& text) {
  if (std::string why = above_zero()(text); !why.empty()) {
    throw CLI::ValidationError("--memory", std::move(why));
  }
  return *finite_number(text);
}

// Reads "2..8" as 2, 3, 4 and so on, and "2..8:0.5" as 2, 2.5, 3.
void add_range(const std::string& text, std::size_t dots, std::uint64_t most,
               std::vector<std::optional<double>>& values) {
  const std::size_t colon = std::min(text.find(':', dots), text.size());
  const double first = limit_of(text.substr(0, dots));
  const double last = limit_of(text.substr(dots + 2, colon - dots - 2));
  const double step = colon == text.size() ? 1 : limit_of(text.substr(colon + 1));
  if (last < first) {
    throw CLI::ValidationError("--memory", fmt::format("{} ends before it begins", shown(text)));
  }
  if ((last - first) / step >= static_cast<double>(most)) {
    throw CLI::ValidationError(
        "--memory", fmt::format("{} are more limits than --max-runs, {}", shown(text), most));
  }
  for (std::uint64_t k = 0; first + static_cast<double>(k) * step <= last + 1e-9 * step; ++k) {
    values.emplace_back(first + static_cast<double>(k) * step);
  }
}

// Reads "1,1.5" as numbers above 0; an empty text is one limit that says nothing.
std::vector<std::optional<double>> limits_of(const std::string& text, std::uint64_t most) {
  if (text.empty()) return {std::nullopt};
  std::vector<std::optional<double>> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    if (const std::size_t dots = item.find(".."); dots != std::string::npos) {
      add_range(item, dots, most, values);
    } else {
      values.emplace_back(limit_of(item));
    }
    begin = end + 1;
  }
  return values;
}

std::vector<std::optional<std::int32_t>> chunks_of(const std::string& text) {
  if (text.empty()) return {std::nullopt};
  const auto numbers = number_list(text, "--chunks", 1);
  return {numbers.begin(), numbers.end()};
}

std::vector<CostSet> costs_of(const std::vector<std::string>& texts) {
  std::vector<CostSet> sets;
  for (const std::string& text : texts) {
    sets.push_back({.text = text, .settings = cost_settings({text})});
  }
  if (sets.empty()) sets.emplace_back();
  return sets;
}

// The name of a point of the grid, and the placement if it is searched for.
struct Called {
  std::string name;
  std::optional<Topology> searched;
};

std::vector<Called> called(const SweepRequest& request) {
  std::vector<Called> all;
  for (const std::string& name : with_all(request.names)) all.push_back({.name = name});
  if (!request.optimise) return all;
  const std::string& text = request.placements;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const Topology known[]{Topology::Loop, Topology::V, Topology::Bidirectional};
    const auto* const found = std::find_if(std::begin(known), std::end(known),
                                           [&](Topology each) { return word == name_of(each); });
    if (word == "free") {
      throw CLI::ValidationError("--placement",
                                 "free is searched point by point: capo optimise --placement free");
    }
    if (found == std::end(known)) {
      throw CLI::ValidationError(
          "--placement", fmt::format("{} is none of loop, v and bidirectional", shown(word)));
    }
    all.push_back({.name = "optimised-" + word, .searched = *found});
    begin = end + 1;
  }
  return all;
}

// For a limit and peaks to be of one unit, a search within it takes what `simulate` takes.
std::optional<schedules::Memory> memory_of(const std::string& name,
                                           const std::optional<double>& limit,
                                           const SweepRequest& request) {
  const auto change = memory_change(request.memory);
  if (change) return generator_memory(*change);
  const bool searches = limit && schedules::takes_memory_limit(name);
  return searches ? std::optional(generator_memory({})) : std::nullopt;
}

std::optional<double> limit_of_search(const std::string& name, const std::optional<double>& limit) {
  return schedules::takes_memory_limit(name) ? limit : std::nullopt;
}

}  // namespace

Result<std::vector<SweepPoint>> grid_of(const SweepRequest& request) {
  const auto ranks = number_list(request.ranks, "--ranks", 1);
  const auto microbatches = number_list(request.microbatches, "--microbatches", 1);
  const auto chunks = chunks_of(request.chunks);
  const auto memory_limits = limits_of(request.memory_limits, request.max_runs);
  const std::vector<CostSet> costs = costs_of(request.costs);
  const std::int32_t fewest_ranks = *std::min_element(ranks.begin(), ranks.end());
  for (const CostSet& set : costs) refuse_scopes(set.settings, fewest_ranks);

  std::vector<SweepPoint> points;
  for (const auto& [name, searched] : called(request)) {
    for (const std::int32_t rank_count : ranks) {
      for (const std::int32_t microbatch_count : microbatches) {
        for (const auto& chunk_count : chunks) {
          for (const auto& limit : memory_limits) {
            for (const CostSet& set : costs) {
              if (points.size() == request.max_runs) {
                return Error{
                    .kind = ErrorKind::Limit,
                    .message = fmt::format("the grid has more than {} points", request.max_runs),
                    .help = "raise the limit with --max-runs"};
              }
              points.push_back({.schedule = {.name = name,
                                             .ranks = rank_count,
                                             .microbatches = microbatch_count,
                                             .chunks = chunk_count,
                                             .memory = memory_of(name, limit, request),
                                             .memory_limit = limit_of_search(name, limit)},
                                .searched = searched,
                                .costs = set,
                                .memory_limit = limit});
            }
          }
        }
      }
    }
  }
  return points;
}

namespace {

void note_refusal(SweepOutcome& outcome, const NotMade& why) {
  const auto* limit = std::get_if<Error>(&why);
  outcome.beyond_limit = limit != nullptr;
  outcome.refused = limit != nullptr ? fmt::format("{}; {}", limit->message, limit->help)
                                     : std::get<std::string>(why);
}

SimulationOptions options_of(const SweepPoint& point, const SweepRequest& request) {
  SimulationOptions options{.memory = memory_change(request.memory),
                            .memory_limit = point.memory_limit};
  options.costs.per = request.cost_per;
  for (const CostSetting& setting : point.costs.settings) options.costs.set(setting);
  return options;
}

optimise::Frame frame_of(const SweepPoint& point) {
  const bool two_pipelines = point.searched == Topology::Bidirectional;
  const std::int32_t usual = point.searched == Topology::Loop ? 1 : 2;
  return {.ranks = point.schedule.ranks,
          .chunks = point.schedule.chunks.value_or(usual),
          .microbatches = point.schedule.microbatches / (two_pipelines ? 2 : 1),
          .topology = *point.searched};
}

// The published schedules of the grid that are orders of the problem, made for the same point.
std::vector<optimise::Start> starts_of(const optimise::Problem& problem, SweepPoint point,
                                       const SweepRequest& request) {
  std::vector<optimise::Start> starts;
  const std::optional<double> limit = point.memory_limit;
  for (const std::string& name : with_all(request.names)) {
    point.schedule.name = name;
    point.schedule.memory = memory_of(name, limit, request);
    point.schedule.memory_limit = limit_of_search(name, limit);
    const auto made =
        make_named(point.schedule, point.costs.settings, request.cost_per, request.limits);
    if (!made) continue;
    auto orders = optimise::orders_of(problem, *made);
    if (orders) starts.push_back({.name = name, .orders = *std::move(orders)});
  }
  return starts;
}

// Makes the best order that is found, and takes down the bounds below which there is none.
Result<Schedule, NotMade> searched(const SweepPoint& point, const SweepRequest& request,
                                   SweepOutcome& outcome) {
  const optimise::Frame frame = frame_of(point);
  if (point.searched == Topology::Bidirectional && point.schedule.microbatches % 2 != 0) {
    return NotMade{"two pipelines share microbatches evenly"};
  }
  if (auto large = too_large({.chunks = frame.chunks, .microbatches = frame.microbatches},
                             frame.ranks, 3, request.limits)) {
    return NotMade{*std::move(large)};
  }
  const auto problem = optimise::problem_of(frame, options_of(point, request));
  if (!problem) return NotMade{problem.error()};
  if (auto why = optimise::why_impossible(*problem)) return NotMade{*std::move(why)};
  const optimise::LowerBounds bounds = optimise::lower_bounds(*problem, 8 * request.moves);
  const bool of_span = request.sort == SortBy::Span;
  const auto found = optimise::search(
      *problem, [&] { return starts_of(*problem, point, request); },
      {.objective = of_span ? optimise::Objective::Span : optimise::Objective::Makespan,
       .bound = of_span ? bounds.span.value : bounds.makespan.value,
       .seed = request.seed,
       .moves = request.moves},
      [](const optimise::Found&) {});
  CAPO_ASSERT(found.has_value(), "one microbatch fits, and nothing stops the search");
  outcome.bound_makespan = bounds.makespan.value;
  outcome.bound_span = bounds.span.value;
  return optimise::schedule_of(*problem, found->orders);
}

}  // namespace

SweepOutcome outcome_of(const SweepPoint& point, const SweepRequest& request) {
  SweepOutcome outcome{.point = point};
  auto schedule = point.searched ? searched(point, request, outcome)
                                 : make_named(point.schedule, point.costs.settings,
                                              request.cost_per, request.limits);
  if (!schedule) {
    note_refusal(outcome, schedule.error());
    return outcome;
  }
  const Input input{.form = Form::OrderFile, .schedule = std::move(*schedule)};
  const SimulationOptions options = options_of(point, request);
  const auto simulation = simulation_of(input, options);
  if (!simulation) {
    outcome.refused = simulation.error().why;
    return outcome;
  }
  const Simulation& of = **simulation;
  outcome.makespan = of.makespan();
  outcome.span = of.span();
  outcome.bubble_rate = of.bubble_rate();
  outcome.bubble_rate_makespan = of.bubble_rate_of_makespan();
  outcome.peak = of.peak();
  outcome.bound_makespan = std::max(outcome.bound_makespan, of.bounds().makespan.value);
  outcome.bound_span = std::max(outcome.bound_span, of.bounds().span.value);
  outcome.tasks = of.graph().tasks.size();
  outcome.fits = choosable({{.name = {}, .simulation = &of}}, point.memory_limit).front().fits;
  return outcome;
}

}  // namespace capo::cli

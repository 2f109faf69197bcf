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

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/numbers.h"
#include "cli/options/progress.h"
#include "core/base/in_parallel.h"
#include "core/base/result.h"
#include "core/timeline/table.h"
#include "schedules/catalogue.h"
#include "sim/choice.h"
#include "sim/report.h"
#include "sim/simulation.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

struct SweepRequest {
  std::vector<std::string> names;
  std::string ranks;
  std::string microbatches;
  std::string chunks;
  std::string memory_limits;
  std::vector<std::string> costs;
  CostPer cost_per = CostPer::Rank;
  std::string memory;
  SortBy sort = SortBy::Given;
  TextOrJson format = TextOrJson::Text;
  std::string output = "-";
  std::uint64_t max_runs = 100'000;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  Limits limits;
};

/// The costs of one --cost.
struct CostSet {
  std::string text;  ///< as typed; empty: the default
  std::vector<CostSetting> settings;
};

struct Point {
  schedules::Request schedule;
  CostSet costs;
  std::optional<double> memory_limit;

  /// Schedules compete at points where this is the same.
  [[nodiscard]] auto competition() const {
    return std::tuple(schedule.ranks, schedule.microbatches, memory_limit, costs.text);
  }
};

struct Outcome {
  Point point;
  bool fits = true;
  bool best = false;
  std::string refused;        ///< why; the figures are then nothing
  bool beyond_limit = false;  ///< that is why
  double makespan = 0;
  double span = 0;
  double bubble_rate = 0;
  double bubble_rate_makespan = 0;
  double peak = 0;
  double bound_makespan = 0;
  double bound_span = 0;
  std::size_t tasks = 0;
};

// Reads "1,1.5" as numbers above 0; an empty text is one limit that says nothing.
std::vector<std::optional<double>> limits_of(const std::string& text) {
  if (text.empty()) return {std::nullopt};
  std::vector<std::optional<double>> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    if (std::string why = above_zero()(item); !why.empty()) {
      throw CLI::ValidationError("--memory", std::move(why));
    }
    values.push_back(finite_number(item));
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

std::optional<double> limit_of_search(const std::string& name, const std::optional<double>& limit) {
  return schedules::takes_memory_limit(name) ? limit : std::nullopt;
}

Result<std::vector<Point>> grid_of(const SweepRequest& request) {
  const auto ranks = number_list(request.ranks, "--ranks", 1);
  const auto microbatches = number_list(request.microbatches, "--microbatches", 1);
  const auto chunks = chunks_of(request.chunks);
  const auto memory_limits = limits_of(request.memory_limits);
  const std::vector<CostSet> costs = costs_of(request.costs);
  std::optional<schedules::Memory> memory;
  if (const auto change = memory_change(request.memory)) memory = generator_memory(*change);
  const auto within = [&](const std::string& name, const std::optional<double>& limit) {
    const bool searches = limit && schedules::takes_memory_limit(name);
    return searches ? memory.value_or(generator_memory({})) : memory;
  };
  const std::int32_t fewest_ranks = *std::min_element(ranks.begin(), ranks.end());
  for (const CostSet& set : costs) refuse_scopes(set.settings, fewest_ranks);

  std::vector<Point> points;
  for (const std::string& name : with_all(request.names)) {
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
                                             .memory = within(name, limit),
                                             .memory_limit = limit_of_search(name, limit)},
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

void note_refusal(Outcome& outcome, const NotMade& why) {
  const auto* limit = std::get_if<Error>(&why);
  outcome.beyond_limit = limit != nullptr;
  outcome.refused = limit != nullptr ? fmt::format("{}; {}", limit->message, limit->help)
                                     : std::get<std::string>(why);
}

Outcome run(const Point& point, const SweepRequest& request) {
  Outcome outcome{.point = point};
  auto schedule =
      make_named(point.schedule, point.costs.settings, request.cost_per, request.limits);
  if (!schedule) {
    note_refusal(outcome, schedule.error());
    return outcome;
  }
  const Input input{.form = Form::OrderFile, .schedule = std::move(*schedule)};
  SimulationOptions options{.memory = memory_change(request.memory),
                            .memory_limit = point.memory_limit};
  options.costs.per = request.cost_per;
  for (const CostSetting& setting : point.costs.settings) options.costs.set(setting);
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
  outcome.bound_makespan = of.bounds().makespan.value;
  outcome.bound_span = of.bounds().span.value;
  outcome.tasks = of.graph().tasks.size();
  outcome.fits = choosable({{.name = {}, .simulation = &of}}, point.memory_limit).front().fits;
  return outcome;
}

using Places = std::vector<std::size_t>;

// Marks the best of the outcomes at these places, which compete; returns the places as they are to
// be listed, what was refused last, since it has no figure.
Places chosen(std::vector<Outcome>& outcomes, const Places& places, SortBy by) {
  Places made;
  Places refused;
  std::vector<Choosable> figures;
  for (const std::size_t at : places) {
    const Outcome& each = outcomes[at];
    if (!each.refused.empty()) {
      refused.push_back(at);
      continue;
    }
    made.push_back(at);
    figures.push_back({.makespan = each.makespan,
                       .span = each.span,
                       .bubble = each.bubble_rate_makespan,
                       .peak = each.peak,
                       .fits = each.fits});
  }
  const std::vector<bool> marked = best(figures, by);
  Places listed;
  for (const std::size_t i : sorted(figures, by)) {
    outcomes[made[i]].best = marked[i];
    listed.push_back(made[i]);
  }
  listed.insert(listed.end(), refused.begin(), refused.end());
  return listed;
}

// Competitions are listed one after the other, in the order in which the first of each stands in
// the grid; unsorted outcomes stay where they are.
void choose(std::vector<Outcome>& outcomes, SortBy by) {
  std::map<decltype(Point().competition()), std::size_t> number;
  std::vector<Places> competitions;
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    const auto [known, first] =
        number.emplace(outcomes[at].point.competition(), competitions.size());
    if (first) competitions.emplace_back();
    competitions[known->second].push_back(at);
  }
  std::vector<Outcome> listed;
  for (const Places& places : competitions) {
    for (const std::size_t at : chosen(outcomes, places, by)) listed.push_back(outcomes[at]);
  }
  if (by != SortBy::Given) outcomes = std::move(listed);
}

std::string to_json(const std::vector<Outcome>& outcomes, const SweepRequest& request) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  std::string text =
      fmt::format("{{\"schema\": 1, \"cost_per\": \"{}\", \"runs\": [", name_of(request.cost_per));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& each = outcomes[i];
    Json json{{"name", each.point.schedule.name},
              {"ranks", each.point.schedule.ranks},
              {"microbatches", each.point.schedule.microbatches},
              {"chunks", or_null(each.point.schedule.chunks)},
              {"memory_limit", or_null(each.point.memory_limit)},
              {"cost", each.point.costs.text}};
    if (!each.refused.empty()) {
      json["refused"] = each.refused;
    } else {
      json.update({{"makespan", each.makespan},
                   {"span", each.span},
                   {"bubble_rate", each.bubble_rate},
                   {"bubble_rate_makespan", each.bubble_rate_makespan},
                   {"peak_activations", each.peak},
                   {"lower_bound", {{"makespan", each.bound_makespan}, {"span", each.bound_span}}},
                   {"tasks", each.tasks},
                   {"fits", each.point.memory_limit ? Json(each.fits) : Json()},
                   {"best", each.best}});
    }
    text += (i == 0 ? "\n" : ",\n") + json.dump();
  }
  return text + "\n]}\n";
}

std::string to_text(const std::vector<Outcome>& outcomes) {
  std::string text =
      fmt::format("{:<20} {:>5} {:>5} {:>6} {:>10} {:>10} {:>8} {:>8} {:>8}  {}\n", "schedule",
                  "ranks", "mb", "chunks", "makespan", "span", "bubble", "of span", "peak", "cost");
  for (const Outcome& each : outcomes) {
    const schedules::Request& schedule = each.point.schedule;
    const std::string chunks = schedule.chunks ? std::to_string(*schedule.chunks) : "";
    std::string line = fmt::format("{:<20} {:>5} {:>5} {:>6} ", schedule.name, schedule.ranks,
                                   schedule.microbatches, chunks);
    if (!each.refused.empty()) {
      line += "refused: " + each.refused;
    } else {
      line += fmt::format("{:>10} {:>10} {:>8} {:>8} {:>8}  {}", figure(each.makespan),
                          figure(each.span), percent(each.bubble_rate_makespan),
                          percent(each.bubble_rate), figure(each.peak), each.point.costs.text);
      if (!each.fits) line += fmt::format("  exceeds {}", figure(*each.point.memory_limit));
      if (each.best) line += "  best";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

int sweep(const SweepRequest& request) {
  if (request.names.empty()) throw CLI::RequiredError("the name of a schedule");
  if (request.ranks.empty()) throw CLI::RequiredError("--ranks");
  if (request.microbatches.empty()) throw CLI::RequiredError("--microbatches");
  for (const std::string& name : with_all(request.names)) {
    if (const auto why = schedules::unknown_name(name)) throw CLI::ValidationError("NAME", *why);
  }
  const auto points = grid_of(request);
  if (!points) return fail(points.error());
  std::vector<Outcome> outcomes(points->size());
  {
    Progress progress("sweep", points->size());
    std::atomic<std::uint64_t> done{0};
    in_parallel(points->size(), request.threads, [&](std::size_t i) {
      outcomes[i] = run((*points)[i], request);
      progress.set(++done);
    });
  }
  choose(outcomes, request.sort);
  const std::string text =
      request.format == TextOrJson::Json ? to_json(outcomes, request) : to_text(outcomes);
  if (const auto failed = write_output(request.output, text)) return fail(*failed);
  const bool all_within = std::none_of(outcomes.begin(), outcomes.end(),
                                       [](const Outcome& each) { return each.beyond_limit; });
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
                     "Limits of what a rank may hold, `4,6.5`, in the unit of --mem: searches keep "
                     "to them, and what exceeds them is not chosen");
  command
      .add_option("--cost", request->costs,
                  "Times of one microbatch on one rank, f=12,b=13,w=9,comm=1; given again, "
                  "another set")
      ->allow_extra_args(false);
  add_cost_per(command, request->cost_per);
  command.add_option("--mem", request->memory,
                     "What a microbatch of one rank takes and gives up, f=1,b=-0.5,w=-0.5");
  add_sort(command, request->sort);
  add_format(command, request->format);
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

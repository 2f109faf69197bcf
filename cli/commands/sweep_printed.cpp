// Shows what the points of a grid come to: the best of each competition marked, as a table, as
// JSON, or as a picture of what less memory costs.

#include "cli/commands/sweep.h"
#include "cli/options/files.h"
#include "core/base/index.h"
#include "core/timeline/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace capo::cli {

namespace {

using Places = std::vector<std::size_t>;

// Marks the best of the outcomes at these places, which compete; returns the places as they are to
// be listed, what was refused last, since it has no figure.
Places chosen(std::vector<SweepOutcome>& outcomes, const Places& places, SortBy by) {
  Places made;
  Places refused;
  std::vector<Choosable> figures;
  for (const std::size_t at : places) {
    const SweepOutcome& each = outcomes[at];
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

}  // namespace

// Competitions are listed one after the other, in the order in which the first of each stands in
// the grid; unsorted outcomes stay where they are.
void choose(std::vector<SweepOutcome>& outcomes, SortBy by) {
  std::map<decltype(SweepPoint().competition()), std::size_t> number;
  std::vector<Places> competitions;
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    const auto [known, first] =
        number.emplace(outcomes[at].point.competition(), competitions.size());
    if (first) competitions.emplace_back();
    competitions[known->second].push_back(at);
  }
  std::vector<SweepOutcome> listed;
  for (const Places& places : competitions) {
    for (const std::size_t at : chosen(outcomes, places, by)) listed.push_back(outcomes[at]);
  }
  if (by != SortBy::Given) outcomes = std::move(listed);
}

namespace {

std::string to_json(const std::vector<SweepOutcome>& outcomes, const SweepRequest& request) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  std::string text =
      fmt::format("{{\"schema\": 1, \"cost_per\": \"{}\", \"runs\": [", name_of(request.cost_per));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SweepOutcome& each = outcomes[i];
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

std::string to_text(const std::vector<SweepOutcome>& outcomes) {
  std::string text =
      fmt::format("{:<20} {:>5} {:>5} {:>6} {:>10} {:>10} {:>8} {:>8} {:>8}  {}\n", "schedule",
                  "ranks", "mb", "chunks", "makespan", "span", "bubble", "of span", "peak", "cost");
  for (const SweepOutcome& each : outcomes) {
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

void add_to(TradeOff& picture, const SweepOutcome& each, bool of_span) {
  const double value = of_span ? each.span : each.makespan;
  const SweepPoint& point = each.point;
  const std::string& name = point.schedule.name;
  if (!point.searched) {
    picture.others.push_back({.x = each.peak, .y = value, .name = name});
    return;
  }
  auto line = std::find_if(picture.lines.begin(), picture.lines.end(),
                           [&](const TradeOff::Line& of) { return of.name == name; });
  if (line == picture.lines.end()) {
    picture.lines.push_back({.name = name});
    line = picture.lines.end() - 1;
  }
  const double bound = of_span ? each.bound_span : each.bound_makespan;
  line->found.push_back({.x = each.peak,
                         .y = value,
                         .name = fmt::format("{}: {} with {}, at least {}", name, figure(value),
                                             figure(each.peak), figure(bound))});
  if (point.memory_limit) line->bounds.push_back({.x = *point.memory_limit, .y = bound});
}

// A picture for each competition of all memory limits: what less memory costs.
std::string to_svg(const std::vector<SweepOutcome>& outcomes, const SweepRequest& request) {
  const bool of_span = request.sort == SortBy::Span;
  std::vector<TradeOff> pictures;
  std::vector<std::tuple<std::int32_t, std::int32_t, std::string>> keys;
  for (const SweepOutcome& each : outcomes) {
    const SweepPoint& point = each.point;
    const std::tuple key(point.schedule.ranks, point.schedule.microbatches, point.costs.text);
    const auto at = std::find(keys.begin(), keys.end(), key) - keys.begin();
    if (as_index(at) == keys.size()) {
      keys.push_back(key);
      pictures.push_back(
          {.title = fmt::format("{} ranks, {} microbatches{}{}", point.schedule.ranks,
                                point.schedule.microbatches, point.costs.text.empty() ? "" : ", ",
                                point.costs.text),
           .across = "memory of the fullest rank, in the unit of --mem",
           .upwards = of_span ? "span" : "makespan"});
    }
    if (each.refused.empty()) add_to(pictures[as_index(at)], each, of_span);
  }
  return trade_off_svg(pictures);
}

SweepFormat format_of(const SweepRequest& request) {
  if (request.format) return *request.format;
  return ending_of(request.output) == "svg" ? SweepFormat::Svg : SweepFormat::Text;
}

}  // namespace

std::optional<Error> write_sweep(const std::vector<SweepOutcome>& outcomes,
                                 const SweepRequest& request) {
  switch (format_of(request)) {
    case SweepFormat::Json:
      return write_output(request.output, to_json(outcomes, request));
    case SweepFormat::Text:
      return write_output(request.output, to_text(outcomes));
    case SweepFormat::Svg:
      break;
  }
  if (auto failed = write_output(request.output, to_svg(outcomes, request))) return failed;
  return request.output == "-" ? std::nullopt : write_stdout(to_text(outcomes));
}

}  // namespace capo::cli

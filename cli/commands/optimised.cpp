#include "cli/commands/optimised.h"

#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/plural.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/text/order_text.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "sim/report.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace capo::cli {

namespace {

using optimise::Objective;

const char* word_of(Objective objective) {
  return objective == Objective::Makespan ? "makespan" : "span";
}

// The calls that `capo simulate --fuse-w` makes of the order.
FusedWeights calls_of(const Optimised& of) {
  Schedule fused = of.schedule;
  return fuse_weights(fused, of.fuse_w);
}

nlohmann::ordered_json placement_json(const optimise::Frame& frame) {
  if (frame.topology != Topology::Custom) return std::string(name_of(frame.topology));
  return frame.stages;
}

std::string report_json(const Optimised& of) {
  using Json = nlohmann::ordered_json;
  Json named = Json::array();
  for (const PublishedSchedule& each : of.published) {
    named.push_back(Json{{"name", each.name},
                         {"makespan", each.makespan},
                         {"span", each.span},
                         {"fits", each.fits}});
  }
  const optimise::Figures& figures = of.found.figures;
  Json json{{"schema", 1}, {"makespan", figures.makespan}, {"span", figures.span}};
  json["lower_bound"] = {{"makespan", of.bounds.makespan.value}, {"span", of.bounds.span.value}};
  json["gap"] = of.gap;
  json["peak_memory"] = figures.peaks;
  json["named"] = named;
  json["seconds"] = of.seconds;
  json["proved"] = of.proved;
  json["objective"] = word_of(of.objective);
  json["rests_on"] = optimise::words_for(optimise::bound_of(of.bounds, of.objective));
  json["from"] = of.found.from;
  json["seed"] = of.seed;
  json["moves"] = of.found.moves;
  json["ended"] = name_of(of.found.ended);
  json["time_unit"] = of.in_microseconds ? "microsecond" : "cost";
  const FusedWeights fused = calls_of(of);
  json["fuse_w"] = {{"most", of.fuse_w}, {"gradients", fused.gradients}, {"calls", fused.calls}};
  json["exhaustive_nodes"] = of.found.nodes;
  json["recomputed"] = of.recomputed.any() ? Json(to_text(of.recomputed)) : Json();
  json["placement"] = placement_json(of.frame);
  return json.dump() + "\n";
}

std::string line_of(const char* name, double value, const Bound& bound) {
  const double above = optimise::gap_of(value, bound.value);
  const std::string how = optimise::reaches(value, bound.value)
                              ? "the best possible"
                              : fmt::format("at most {} above the best possible", percent(above));
  return fmt::format("{:<9} {}, {}: at least {} by {}\n", name, figure(value), how,
                     figure(bound.value), optimise::words_for(bound));
}

// A schedule of other stages may be better than the best possible of these.
const char* words_if_below(const PublishedSchedule& each, const optimise::LowerBounds& bounds) {
  const auto below = [](double value, const Bound& bound) {
    return !optimise::reaches(bound.value, value);
  };
  return below(each.makespan, bounds.makespan) || below(each.span, bounds.span)
             ? "placed otherwise, which the bounds are not about"
             : "";
}

std::string report_text(const Optimised& of) {
  const optimise::Figures& figures = of.found.figures;
  std::string text = line_of("makespan", figures.makespan, of.bounds.makespan) +
                     line_of("span", figures.span, of.bounds.span);
  text += fmt::format("memory    {} on the fullest rank", figure(figures.highest_peak()));
  if (of.memory_limit) text += fmt::format(", within {}", figure(*of.memory_limit));
  if (of.recomputed.any()) text += "\nrecompute " + recomputed_in_words(of.recomputed, of.keep);
  if (of.in_microseconds) text += "\ntimes     in microseconds";
  if (of.recomputes && !of.recomputed.any()) text += "\nrecompute none";
  if (of.places) text += "\nplaced    " + words_for(of.frame);
  if (of.variants > 0) {
    text +=
        fmt::format("\nlooked at {} of {}", counted(of.variants, "variant"),
                    of.places && of.recomputes ? "the placement and of the chunks that recompute"
                    : of.places                ? "the placement"
                                               : "the chunks that recompute");
  }
  if (of.fuse_w > 1) {
    const FusedWeights fused = calls_of(of);
    text += fmt::format("\nfused     {} into {}, as --fuse-w {} makes of the order",
                        counted(fused.gradients, "weight gradient"), counted(fused.calls, "call"),
                        of.fuse_w);
  }
  text += fmt::format("\nfound     in {:.1f} s from {}; ended by {}, seed {}, {} moves\n\n",
                      of.seconds, of.found.from, name_of(of.found.ended), of.seed, of.found.moves);
  if (of.found.nodes > 0) {
    text.pop_back();
    text += fmt::format("searched  all orders, with {} nodes\n\n", of.found.nodes);
  }
  std::vector<std::vector<std::string>> rows{{"order", "makespan", "span", "peak", ""}};
  rows.push_back({"this one", figure(figures.makespan), figure(figures.span),
                  figure(figures.highest_peak()), ""});
  for (const PublishedSchedule& each : of.published) {
    rows.push_back({each.name, figure(each.makespan), figure(each.span), figure(each.peak),
                    each.fits ? words_if_below(each, of.bounds) : "exceeds the memory"});
  }
  return text + table(rows, 4);
}

// Each rank's list is a line, in the order of ranks.
Result<std::string, Inexpressible> te_lists_of(const Schedule& schedule) {
  std::string text;
  for (const RankOrder& rank : schedule.ranks) {
    const auto list = to_te_list(rank, rank.order);
    if (!list) return list.error();
    text += print_te_list(*list);
  }
  return text;
}

Result<std::string, Inexpressible> order_text(const Schedule& schedule, OptimiseFormat format) {
  switch (format) {
    case OptimiseFormat::Csv:
      return print_torch_csv(schedule);
    case OptimiseFormat::Tokens:
      return print_tokens(schedule);
    case OptimiseFormat::Te:
      return te_lists_of(schedule);
    case OptimiseFormat::Text:
    case OptimiseFormat::Json:
    case OptimiseFormat::Order:
      break;
  }
  return print_order_file(schedule);
}

}  // namespace

const Words<OptimiseFormat>& optimise_formats() {
  static const Words<OptimiseFormat> words{
      {"text", OptimiseFormat::Text},     {"json", OptimiseFormat::Json},
      {"order", OptimiseFormat::Order},   {"csv", OptimiseFormat::Csv},
      {"tokens", OptimiseFormat::Tokens}, {"te", OptimiseFormat::Te}};
  return words;
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void Telling::operator()(const optimise::Found& found) {
  const double now = seconds_since(began_);
  if (now < next_) return;
  next_ = now + 1;
  const double value = optimise::value_of(found.figures, objective_);
  const double bound = optimise::bound_of(bounds_, objective_).value;
  const std::string how =
      optimise::reaches(value, bound)
          ? "the best possible"
          : percent(optimise::gap_of(value, bound)) + " above the best possible at most";
  print_stderr(
      fmt::format("capo: {:.1f} s: {} {}, {}\n", now, word_of(objective_), figure(value), how));
}

std::optional<Error> write_bound(const optimise::Problem& problem, const Costs& costs,
                                 const Optimised& of, const optimise::LowerBounds& bounds,
                                 const std::string& file) {
  const auto any = of.places ? std::optional(least_costs_of(problem, costs)) : std::nullopt;
  const optimise::Certificate certificate =
      certificate_of(problem, of.objective, bounds, of.found.orders, of.found.figures,
                     of.found.proves(of.objective) ? of.found.nodes : 0, any ? &*any : nullptr);
  const double bound = optimise::bound_of(of.bounds, of.objective).value;
  if (certificate.shown < bound * (1 - 1e-9)) {
    print_stderr(fmt::format("note: {} shows at least {}, and the bound is {}\n", shown(file),
                             figure(certificate.shown), figure(bound)));
  }
  return write_output(file, certificate.text);
}

int print(const Optimised& of, OptimiseFormat format, const std::string& output) {
  const bool says_stages = format != OptimiseFormat::Te && format != OptimiseFormat::Tokens;
  if (of.frame.topology == Topology::Custom && !says_stages) {
    print_stderr(fmt::format("note: {} does not say the placement: {}\n",
                             word_for(format, optimise_formats()), words_for(of.frame)));
  }
  const bool reports = format == OptimiseFormat::Text || format == OptimiseFormat::Json;
  if (!reports || !output.empty()) {
    const auto order = order_text(of.schedule, format);
    if (!order) {
      throw CLI::ValidationError(
          "--format", fmt::format("{} cannot say it: {}", word_for(format, optimise_formats()),
                                  order.error().reason));
    }
    if (output.empty()) return exit_code_after(write_stdout(*order));
    if (const auto failed = write_output(output, *order)) return fail(*failed);
    if (output == "-") return kAccepted;
  }
  return exit_code_after(
      write_stdout(format == OptimiseFormat::Json ? report_json(of) : report_text(of)));
}

}  // namespace capo::cli

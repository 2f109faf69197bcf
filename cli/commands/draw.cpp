// `capo draw FILE -o out.svg`: when each task runs, as a picture that carries its verdict.
//
// An order that cannot run is drawn as far as it goes, each entry at its index with the findings at
// their places.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "cli/options/pdf.h"
#include "core/base/assert.h"
#include "core/draw/picture_of.h"
#include "core/rules/check.h"
#include "core/timeline/picture.h"
#include "core/timeline/table.h"
#include "core/timeline/timeline.h"
#include "sim/simulation.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

enum class DrawFormat { Svg, Pdf, Html, Pftrace, Json, Txt };

const Words<DrawFormat>& draw_formats() {
  static const Words<DrawFormat> kAll{{"svg", DrawFormat::Svg},   {"pdf", DrawFormat::Pdf},
                                      {"html", DrawFormat::Html}, {"pftrace", DrawFormat::Pftrace},
                                      {"json", DrawFormat::Json}, {"txt", DrawFormat::Txt}};
  return kAll;
}

struct DrawRequest : InputRequest {
  CostOptions costs;
  std::optional<DrawFormat> format;  ///< nullopt: by the ending of `output`
  std::string output;
  std::string against;  ///< another file to draw below the first; empty: none
  std::size_t max_tasks = 200'000;
  bool paper = false;
  bool no_path = false;
};

// The format that a flag names, else that of the file's ending.
DrawFormat format_of(const DrawRequest& request) {
  if (request.format) return *request.format;
  const std::size_t dot = request.output.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : request.output.substr(dot + 1);
  const std::vector<std::string> known = texts_of(draw_formats());
  if (std::find(known.begin(), known.end(), ending) == known.end()) {
    throw CLI::ValidationError(
        "--output", fmt::format("{} says no format by its ending; there are .{}, or --format",
                                request.output, fmt::join(known, ", .")));
  }
  return value_for(ending, draw_formats());
}

void refuse_misfits(const DrawRequest& request, DrawFormat format) {
  const bool drawn = format == DrawFormat::Svg || format == DrawFormat::Pdf;
  if (request.paper && !drawn) throw CLI::ValidationError("--paper", "is for svg and pdf");
  if (request.no_path && !drawn) throw CLI::ValidationError("--no-path", "is for svg and pdf");
  if (!request.against.empty() && !drawn && format != DrawFormat::Html) {
    throw CLI::ValidationError("--against", "is for svg, pdf and html");
  }
}

std::string times_in_words(const Simulation& simulation) {
  return fmt::format("predicted: makespan {}, the busiest rank is idle {} of its span, links {}",
                     figure(simulation.makespan()), percent(simulation.bubble_rate()),
                     name_of(simulation.subject().links));
}

// An input with all that its picture refers to, which stays where it is.
struct Drawn {
  JudgedInput judged;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;  ///< nullptr: the input has no times
  Picture picture;
  ExitCode code = kAccepted;
};

// The picture of a timeline that was written before; nullopt if the file is none. A pipe is read
// once, so it is taken for an order.
Result<std::optional<Picture>, CommandError> timeline_in(const InputOptions& input) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(input.file, ignored)) return std::optional<Picture>();
  auto source = read_source(input.file, input.limits.bytes);
  if (!source) return CommandError(source.error());
  if (!is_timeline(source->text)) return std::optional<Picture>();
  auto picture = read_timeline(source->text, input.limits);
  if (!picture) {
    return CommandError(
        RefusedInput{.source = std::move(*source), .refusal = std::move(picture.error())});
  }
  return std::optional<Picture>(std::move(*picture));
}

void draw(const DrawRequest& request, DrawFormat format, Drawn& drawn) {
  const Input& input = drawn.judged.input;
  drawn.options = request.costs.resolve(drawn.judged.model);
  drawn.options.memory_plan = drawn.judged.model.plan;
  request.costs.refuse_misfits(input.schedule, drawn.options.costs);

  const Report report = report_of(input, check(input, drawn.judged.check_options()), {});
  drawn.code = exit_code_of(report.verdict);
  auto simulation = simulation_of(input, drawn.options);
  if (!simulation) {
    drawn.picture = picture_of(input, report, listed(input), simulation.error().why);
    return;
  }
  drawn.simulation = std::move(*simulation);
  Timeline timeline = timeline_of(*drawn.simulation);
  if (format == DrawFormat::Html || format == DrawFormat::Pftrace)
    add_causes(*drawn.simulation, timeline);
  drawn.picture = picture_of(input, report, std::move(timeline), "");
  drawn.picture.setting.push_back(times_in_words(*drawn.simulation));
}

Result<std::unique_ptr<Drawn>, CommandError> drawn_of(const DrawRequest& request,
                                                      DrawFormat format) {
  auto timeline = timeline_in(request.input);
  if (!timeline) return std::move(timeline.error());
  if (*timeline) {
    const ExitCode code = (*timeline)->accepted ? kAccepted : kFindings;
    return std::make_unique<Drawn>(Drawn{.picture = std::move(**timeline), .code = code});
  }
  auto judged = judged_input(request);
  if (!judged) return std::move(judged.error());
  auto drawn = std::make_unique<Drawn>(Drawn{.judged = std::move(*judged)});
  draw(request, format, *drawn);
  return drawn;
}

std::string grid_with_verdict(const Picture& picture) {
  std::string text = text_grid(picture.timeline);
  for (const Alarm& alarm : picture.alarms) text += alarm.words + "\n";
  text += picture.verdict + "\n";
  for (const std::string& line : picture.setting) text += "  " + line + "\n";
  return text;
}

Result<std::string> rendered(const std::vector<Picture>& pictures, const DrawRequest& request,
                             DrawFormat format) {
  const Picture& picture = pictures.front();
  const SvgOptions svg_options{.page = request.paper ? Page::Column : Page::Screen,
                               .path = !request.no_path};
  switch (format) {
    case DrawFormat::Svg:
      return svg(pictures, svg_options);
    case DrawFormat::Pdf:
      return pdf_of(svg(pictures, svg_options));
    case DrawFormat::Html:
      return html(pictures);
    case DrawFormat::Pftrace:
      return perfetto_trace(picture);
    case DrawFormat::Json:
      return chrome_trace(picture);
    case DrawFormat::Txt:
      return grid_with_verdict(picture);
  }
  CAPO_UNREACHABLE();
}

Error too_many(std::size_t tasks, std::size_t most) {
  return Error{.kind = ErrorKind::Limit,
               .message = fmt::format("the picture has {} tasks, and {} is the limit", tasks, most),
               .help = "raise the limit with --max-tasks"};
}

int write_pictures(const std::vector<Picture>& pictures, const DrawRequest& request,
                   DrawFormat format, ExitCode code) {
  std::size_t tasks = 0;
  for (const Picture& picture : pictures) tasks += picture.timeline.tasks.size();
  if (tasks > request.max_tasks) return fail(too_many(tasks, request.max_tasks));
  const auto text = rendered(pictures, request, format);
  if (!text) return fail(text.error());
  return exit_code_after(write_output(request.output, *text), code);
}

// The request for the file that is drawn below the first.
DrawRequest request_against(const DrawRequest& request) {
  DrawRequest other = request;
  other.input.file = request.against;
  other.input.order.reset();
  return other;
}

int draw_files(const DrawRequest& request) {
  const DrawFormat format = format_of(request);
  refuse_misfits(request, format);
  std::vector<DrawRequest> requests{request};
  if (!request.against.empty()) requests.push_back(request_against(request));
  std::vector<std::unique_ptr<Drawn>> kept;
  std::vector<Picture> pictures;
  ExitCode code = kAccepted;
  for (const DrawRequest& each : requests) {
    auto drawn = drawn_of(each, format);
    if (!drawn) return refuse(drawn.error());
    kept.push_back(std::move(*drawn));
    pictures.push_back(std::move(kept.back()->picture));
    code = std::max(code, kept.back()->code);
  }
  return write_pictures(pictures, request, format, code);
}

}  // namespace

Run add_draw(CLI::App& app) {
  auto* command = app.add_subcommand(
      "draw", "Draw when each task runs, with the verdict and what is wrong in red");
  command->footer("Example: capo draw schedule.order --cost f=12,b=13,w=9,comm=1 -o step.svg");
  auto request = std::make_shared<DrawRequest>();
  request->input.add_to(*command);
  request->environment.add_to(*command);
  request->environment.overlaps_anyway = true;  // every layer is taken apart
  request->plan.emplace().add_to(*command);
  request->costs.add_to(*command);
  command
      ->add_option("-o,--output", request->output,
                   "Where to write: FILE.svg, .pdf, .html, .pftrace (for Perfetto), .json (for "
                   "chrome://tracing) or .txt; - is standard output, with --format")
      ->required();
  add_choice(*command, "--format", request->format, draw_formats(),
             "svg, pdf, html, pftrace, json or txt; default: as the file ends");
  command->add_option(
      "--against", request->against,
      "Draw this order, or timeline of `capo run -o`, below the first on one axis of "
      "time");
  command->add_flag("--paper", request->paper,
                    "A column of a paper wide, in greys and small print");
  command->add_flag("--no-path", request->no_path, "Without the arrows of the critical path");
  command
      ->add_option("--max-tasks", request->max_tasks,
                   "Tasks beyond which there is no picture (exit code 4)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str();
  return [request] { return draw_files(*request); };
}

}  // namespace capo::cli

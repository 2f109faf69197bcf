// `capo draw FILE -o out.svg`: when each task runs, as a picture that carries its verdict.

#include "cli/commands/commands.h"
#include "cli/commands/drawn.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/grid_flags.h"
#include "core/base/assert.h"
#include "core/timeline/picture.h"
#include "core/timeline/timeline.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

struct DrawRequest : DrawnRequest {
  std::optional<DrawFormat> format;  ///< nullopt: by the ending of `output`
  std::string output;
  /// One file to draw below the first, or traces of torch, a rank each; empty: nothing.
  std::vector<std::string> against;
  std::size_t max_tasks = 200'000;
  bool paper = false;
  bool no_path = false;
  bool fold = false;
  GridFlags grid;
};

// The format that a flag names, else that of the file's ending.
DrawFormat format_of(const DrawRequest& request) {
  if (request.format) return *request.format;
  const std::string ending = ending_of(request.output);
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
  if (request.fold && !drawn) throw CLI::ValidationError("--fold", "is for svg and pdf");
  if (!request.task.empty() && !drawn) throw CLI::ValidationError("--task", "is for svg and pdf");
  const bool text = format == DrawFormat::Txt;
  if (request.grid.width && !text) throw CLI::ValidationError("--width", "is for txt");
  if (request.grid.colour != ColourChoice::Auto && !text) {
    throw CLI::ValidationError("--color", "is for txt");
  }
  if (!request.against.empty() && !drawn && format != DrawFormat::Html) {
    throw CLI::ValidationError("--against", "is for svg, pdf and html");
  }
}

std::string grid_with_verdict(const Picture& picture, const GridOptions& grid) {
  std::string text = text_grid(picture.timeline, grid);
  for (const Alarm& alarm : picture.alarms) text += alarm.words + "\n";
  text += picture.verdict + "\n";
  for (const std::string& line : picture.setting) text += "  " + line + "\n";
  return text;
}

Result<std::string> rendered(const std::vector<Picture>& pictures, const DrawRequest& request,
                             DrawFormat format) {
  const Picture& picture = pictures.front();
  const SvgOptions svg_options{.page = request.paper ? Page::Column : Page::Screen,
                               .path = !request.no_path,
                               .fold = request.fold};
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
      return grid_with_verdict(picture, request.grid.options_for(request.output));
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
  other.input.file = request.against.front();
  if (request.against.size() > 1) other.traces = request.against;
  other.input.order.reset();
  other.task.clear();
  return other;
}

int draw_files(const DrawRequest& request) {
  const DrawFormat format = format_of(request);
  refuse_misfits(request, format);
  std::vector<DrawRequest> requests{request};
  requests.front().causes =
      format == DrawFormat::Html || format == DrawFormat::Pftrace || !request.task.empty();
  if (!request.against.empty()) requests.push_back(request_against(requests.front()));
  std::vector<std::unique_ptr<Drawn>> kept;
  std::vector<Picture> pictures;
  ExitCode code = kAccepted;
  for (DrawRequest& each : requests) {
    each.order = kept.empty() ? nullptr : &kept.front()->judged.input;
    auto drawn = drawn_of(each);
    if (!drawn) return refuse(drawn.error());
    kept.push_back(std::move(*drawn));
    pictures.push_back(std::move(kept.back()->picture));
    code = std::max(code, kept.back()->code);
  }
  return write_pictures(pictures, request, format, code);
}

}  // namespace

Run add_draw(CLI::App& command) {
  command.footer("Example: capo draw schedule.order --cost f=12,b=13,w=9,comm=1 -o step.svg");
  auto request = std::make_shared<DrawRequest>();
  request->input.add_to(command);
  request->environment.add_to(command);
  request->environment.overlaps_anyway = true;  // every layer is taken apart
  request->plan.emplace().add_to(command);
  request->fuse.add_to(command);
  request->costs.add_to(command);
  command
      .add_option("-o,--output", request->output,
                  "Where to write: FILE.svg, .pdf, .html, .pftrace (for Perfetto), .json (for "
                  "chrome://tracing) or .txt; - is standard output, with --format")
      ->required();
  add_choice(command, "--format", request->format, draw_formats(),
             "svg, pdf, html, pftrace, json or txt; default: as the file ends");
  command
      .add_option("--against", request->against,
                  "Draw this order, timeline of `capo run -o` or trace of torch.profiler below the "
                  "first on one axis of time; again for each rank that has a trace of its own")
      ->allow_extra_args(false);
  command.add_flag("--paper", request->paper, "A column of a paper wide, in greys and small print");
  command.add_flag("--no-path", request->no_path, "Without the arrows of the critical path");
  command.add_flag("--fold", request->fold,
                   "Fold a long step into lines, no wider than a screen (with --paper, a column)");
  command.add_option("--task", request->task,
                     "Draw what this task waits for and who waits for it: \"rank 2 B1.3\"");
  command.add_flag("--all", request->all,
                   "Draw each finding, also those that follow from one slip");
  request->grid.add_to(command);
  command
      .add_option("--max-tasks", request->max_tasks,
                  "Tasks beyond which there is no picture (exit code 4)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str();
  return [request] { return draw_files(*request); };
}

}  // namespace capo::cli

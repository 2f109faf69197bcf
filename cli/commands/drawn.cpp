#include "cli/commands/drawn.h"

#include "cli/commands/cured.h"
#include "cli/options/files.h"
#include "core/cures/cures.h"
#include "core/draw/picture_of.h"
#include "core/rules/check.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "core/timeline/timeline.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace capo::cli {

namespace {

std::string times_in_words(const Simulation& simulation) {
  return fmt::format("predicted: makespan {}, the busiest rank is idle {} of its span, links {}",
                     figure(simulation.makespan()), percent(simulation.bubble_rate()),
                     name_of(simulation.subject().links));
}

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

// The findings that are drawn: a slip stands for all that follow from it, as in text.
CheckResult findings_of(const DrawnRequest& request, const JudgedInput& judged) {
  const JudgeInput judge = [](const JudgedInput& each) {
    return check(each.input, each.check_options());
  };
  CheckResult result = judge(judged);
  if (request.all || !request.replay.empty()) return result;
  auto slip = find_slip(result, judged.input, judge_under(request, judged, judge));
  if (slip) replace_by_slip(result, std::move(slip->finding));
  return result;
}

void draw(const DrawnRequest& request, Drawn& drawn) {
  const Input& input = drawn.judged.input;
  drawn.options = request.costs.resolve(drawn.judged.model);
  drawn.options.memory_plan = drawn.judged.model.plan;
  request.costs.refuse_misfits(input.schedule, drawn.options.costs);

  const Report report = report_of(input, findings_of(request, drawn.judged), {});
  drawn.code = exit_code_of(report.verdict);
  auto simulation = simulation_of(input, drawn.options);
  if (!simulation) {
    drawn.picture = picture_of(input, report, listed(input), simulation.error().why);
    return;
  }
  drawn.simulation = std::move(*simulation);
  Timeline timeline = timeline_of(*drawn.simulation);
  if (request.causes) add_causes(*drawn.simulation, timeline);
  drawn.picture = picture_of(input, report, std::move(timeline), "");
  drawn.picture.setting.push_back(times_in_words(*drawn.simulation));
}

// A task as a reader names it: "rank 2 B1.3", and "B1.3" means rank 0.
struct TaskName {
  std::int32_t rank = 0;
  std::string_view label;
};

TaskName task_name(std::string_view words) {
  constexpr std::string_view kRank = "rank ";
  TaskName name{.label = words};
  if (!words.starts_with(kRank)) return name;
  words.remove_prefix(kRank.size());
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), name.rank);
  if (error != std::errc{}) return name;
  words.remove_prefix(static_cast<std::size_t>(end - words.data()));
  name.label = words.substr(std::min(words.find_first_not_of(' '), words.size()));
  return name;
}

void choose_task(const std::string& words, Picture& picture) {
  const Timeline& timeline = picture.timeline;
  const TaskName wanted = task_name(words);
  for (std::uint32_t at = 0; at < timeline.tasks.size(); ++at) {
    const TimedTask& task = timeline.tasks[at];
    if (timeline.lanes[task.lane].rank != wanted.rank) continue;
    if (timeline.label(task.id) != wanted.label) continue;
    picture.chosen = at;
    picture.chosen_words = fmt::format("waits of {} of rank {}", wanted.label, wanted.rank);
    return;
  }
  throw CLI::ValidationError(
      "--task", fmt::format("rank {} has no task {}; \"rank 1 B1.0\" names one", wanted.rank,
                            shown(wanted.label)));
}

}  // namespace

Result<std::unique_ptr<Drawn>, CommandError> drawn_of(const DrawnRequest& request) {
  auto timeline = timeline_in(request.input);
  if (!timeline) return std::move(timeline.error());
  auto drawn = std::make_unique<Drawn>();
  if (*timeline) {
    if (!request.task.empty()) {
      throw CLI::ValidationError("--task", "is for orders; a timeline does not say what waits");
    }
    drawn->picture = std::move(**timeline);
    drawn->code = drawn->picture.accepted ? kAccepted : kFindings;
  } else {
    auto judged = judged_input(request);
    if (!judged) return std::move(judged.error());
    drawn->judged = std::move(*judged);
    draw(request, *drawn);
  }
  if (!request.task.empty()) choose_task(request.task, drawn->picture);
  return drawn;
}

}  // namespace capo::cli

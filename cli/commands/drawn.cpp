#include "cli/commands/drawn.h"

#include "cli/commands/cured.h"
#include "cli/options/files.h"
#include "core/cures/cures.h"
#include "core/draw/picture_of.h"
#include "core/frameworks/torch/trace.h"
#include "core/rules/check.h"
#include "core/text/action_token.h"
#include "core/text/printable.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "core/timeline/timeline.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

std::string times_in_words(const Simulation& simulation) {
  return fmt::format("predicted: makespan {}, the busiest rank is idle {} of its span, links {}",
                     figure(simulation.makespan()), percent(simulation.bubble_rate()),
                     name_of(simulation.subject().links));
}

// The lane of a rank for what computes or for what does not.
std::uint32_t lane_of(const TracedAction& action, Timeline& timeline) {
  const std::string name = is_compute(action.kind) ? "compute" : "p2p";
  const auto found =
      std::find_if(timeline.lanes.begin(), timeline.lanes.end(),
                   [&](const Lane& lane) { return lane.rank == action.rank && lane.name == name; });
  const auto at = static_cast<std::uint32_t>(found - timeline.lanes.begin());
  if (found == timeline.lanes.end()) timeline.lanes.push_back({.rank = action.rank, .name = name});
  return at;
}

// A trace holds several steps, of which the last one is drawn: the last time that a rank did each
// of its actions.
std::vector<TracedAction> last_step(const TorchTrace& trace) {
  std::map<std::tuple<std::int32_t, std::int32_t, Kind, std::int32_t>, TracedAction> last;
  for (const TracedAction& action : trace.actions) {
    last[{action.rank, action.chunk, action.kind, action.microbatch}] = action;
  }
  std::vector<TracedAction> actions;
  for (const auto& [key, action] : last) actions.push_back(action);
  std::stable_sort(actions.begin(), actions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.begin, a.member) < std::tie(b.rank, b.begin, b.member);
  });
  return actions;
}

Timeline timeline_of(const TorchTrace& trace) {
  Timeline timeline{.origin = Timeline::Origin::Measured,
                    .unit = Timeline::Unit::Microseconds,
                    .one_chunk = true};
  auto labels = std::make_shared<std::vector<std::string>>();
  const std::vector<TracedAction> actions = last_step(trace);
  double first = actions.front().begin;
  for (const TracedAction& action : actions) first = std::min(first, action.begin);
  for (const TracedAction& action : actions) {
    timeline.tasks.push_back({.begin = action.begin - first,
                              .end = action.end - first,
                              .lane = lane_of(action, timeline),
                              .id = static_cast<std::uint32_t>(labels->size()),
                              .stage = action.stage,
                              .microbatch = action.microbatch,
                              .kind = action.kind,
                              .member = action.member,
                              .members = action.members,
                              .chunk = action.chunk});
    labels->push_back(
        to_token({.kind = action.kind, .chunk = action.chunk, .microbatch = action.microbatch},
                 Naming::Named));
    timeline.ranks = std::max(timeline.ranks, RankId(action.rank).index() + 1);
    timeline.makespan = std::max(timeline.makespan, action.end - first);
    timeline.one_chunk = timeline.one_chunk && action.chunk == 1;
  }
  timeline.label = [labels](std::uint32_t id) { return (*labels)[id]; };
  return timeline;
}

// The picture of a trace of torch, which has times and no verdict.
Read<Picture> picture_of_trace(const Source& source, const Limits& limits) {
  auto trace = read_torch_trace(source.text, limits);
  if (!trace) return std::move(trace.error());
  return Picture{
      .timeline = timeline_of(*trace),
      .title = printable(source.name),
      .verdict = "measured by torch, not judged",
      .accepted = true,
      .setting = {trace->on_device ? "times of kernels on the device, the last step of the trace"
                                   : "times at which the processor launched work, no kernels"}};
}

// The picture of a timeline that was written before, by capo or by torch's profiler; nullopt if the
// file is none. A pipe is read once, so it is taken for an order.
Result<std::optional<Picture>, CommandError> timeline_in(const InputOptions& input) {
  std::error_code failed;
  const auto type = std::filesystem::status(input.file, failed).type();
  const bool is_pipe =
      type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character;
  if (is_pipe || type == std::filesystem::file_type::not_found) return std::optional<Picture>();
  auto source = read_source(input.file, input.limits.bytes);
  if (!source) return CommandError(source.error());
  const bool own = is_timeline(source->text);
  if (!own && !is_torch_trace(source->text)) return std::optional<Picture>();
  auto picture =
      own ? read_timeline(source->text, input.limits) : picture_of_trace(*source, input.limits);
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
  // Bars without a length would all lie upon each other.
  if ((*simulation)->makespan() <= 0) {
    drawn.picture = picture_of(input, report, listed(input), "no task takes any time");
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

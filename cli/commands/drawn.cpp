#include "cli/commands/drawn.h"

#include "cli/commands/cured.h"
#include "cli/options/files.h"
#include "core/base/plural.h"
#include "core/cures/cures.h"
#include "core/draw/picture_of.h"
#include "core/frameworks/torch/trace.h"
#include "core/rules/check.h"
#include "core/text/action_token.h"
#include "core/text/printable.h"
#include "core/text/scan.h"
#include "core/timeline/table.h"
#include "core/timeline/timeline.h"
#include "sim/report.h"

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
#include <vector>

namespace capo::cli {

namespace {

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

Timeline timeline_of(const TorchTrace& trace) {
  Timeline timeline{.origin = Timeline::Origin::Measured,
                    .unit = Timeline::Unit::Microseconds,
                    .one_chunk = true};
  auto labels = std::make_shared<std::vector<std::string>>();
  for (const TracedAction& action : trace.actions) {
    timeline.tasks.push_back({.begin = action.begin,
                              .end = action.end,
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
    timeline.makespan = std::max(timeline.makespan, action.end);
    timeline.one_chunk = timeline.one_chunk && action.chunk == 1;
  }
  timeline.label = [labels](std::uint32_t id) { return (*labels)[id]; };
  return timeline;
}

// Ranks below the last one that no trace is of: a row without bars would say that they were idle.
std::string missing_ranks(const TorchTrace& trace, std::size_t ranks) {
  std::vector<bool> seen(ranks, false);
  for (const TracedAction& action : trace.actions) seen[RankId(action.rank).index()] = true;
  std::vector<std::string> missing;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!seen[rank]) missing.push_back(std::to_string(rank));
  }
  return missing.empty() ? "" : fmt::format("no trace of rank {}", fmt::join(missing, ", "));
}

// The picture of a step as torch traced it, which has times and no verdict.
Picture picture_of_traces(std::vector<TorchTrace> traces, const std::string& title) {
  for (TorchTrace& trace : traces) trace = last_step_of(trace);
  const JoinedTraces joined = join_traces(std::move(traces));
  Picture picture{.timeline = timeline_of(joined.trace),
                  .title = title,
                  .verdict = "measured by torch, not judged",
                  .accepted = true};
  picture.setting = {joined.trace.on_device
                         ? "times of kernels on the device, the last step of the trace"
                         : "times at which the processor launched work, no kernels"};
  for (const std::string& words :
       {joined.clocks, missing_ranks(joined.trace, picture.timeline.ranks)}) {
    if (!words.empty()) picture.setting.push_back(words);
  }
  return picture;
}

// A trace below an order is of ranks that the order has.
void refuse_other_ranks(const DrawnRequest& request, const TorchTrace& trace,
                        const std::string& file) {
  const std::size_t ranks = request.order == nullptr ? 0 : request.order->schedule.ranks.size();
  const RankId last(trace.actions.back().rank);
  if (ranks == 0 || last.index() < ranks) return;
  throw CLI::ValidationError(
      "--against", fmt::format("{} is of rank {}, and {} has {}", file, std::int32_t{last},
                               request.order->source.name, counted(ranks, "rank")));
}

Read<Picture> picture_of_trace(const DrawnRequest& request, const Source& source) {
  auto trace = read_torch_trace(source.text, request.input.limits);
  if (!trace) return std::move(trace.error());
  refuse_other_ranks(request, *trace, source.name);
  return picture_of_traces({std::move(*trace)}, printable(source.name));
}

std::int32_t rank_of(const TorchTrace& trace) {
  return trace.actions.front().rank;
}

void refuse_a_second(const std::vector<TorchTrace>& traces, const TorchTrace& next,
                     const std::vector<std::string>& files) {
  for (std::size_t at = 0; at < traces.size(); ++at) {
    if (rank_of(traces[at]) != rank_of(next)) continue;
    const bool said = traces[at].says_rank && next.says_rank;
    throw CLI::ValidationError(
        "--against",
        fmt::format("{} and {} are both of rank {}{}", files[at], files[traces.size()],
                    rank_of(next),
                    said ? "" : ", where a file says none and its place in the list does"));
  }
}

// The picture of several traces, a rank each.
Result<Picture, CommandError> picture_of_ranks(const DrawnRequest& request) {
  std::vector<TorchTrace> traces;
  for (const std::string& file : request.traces) {
    auto source = read_source(file, request.input.limits.bytes);
    if (!source) return CommandError(source.error());
    if (is_timeline(source->text) || !is_torch_trace(source->text)) {
      throw CLI::ValidationError(
          "--against",
          fmt::format(
              "{} is no trace of torch.profiler; several files are such traces, a rank each",
              file));
    }
    auto trace = read_torch_trace(source->text, request.input.limits,
                                  static_cast<std::int32_t>(traces.size()));
    if (!trace) {
      return CommandError(
          RefusedInput{.source = std::move(*source), .refusal = std::move(trace.error())});
    }
    refuse_a_second(traces, *trace, request.traces);
    refuse_other_ranks(request, *trace, file);
    traces.push_back(std::move(*trace));
  }
  std::string title = printable(request.traces.front());
  title += fmt::format(" and {}", counted(traces.size() - 1, "other trace"));
  return picture_of_traces(std::move(traces), title);
}

// The picture of a timeline that was written before, by capo or by torch's profiler; nullopt if the
// file is none. A pipe is read once, so it is taken for an order.
Result<std::optional<Picture>, CommandError> timeline_in(const DrawnRequest& request) {
  const InputOptions& input = request.input;
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
      own ? read_timeline(source->text, input.limits) : picture_of_trace(request, *source);
  if (!picture) {
    return CommandError(
        RefusedInput{.source = std::move(*source), .refusal = std::move(picture.error())});
  }
  return std::optional<Picture>(std::move(*picture));
}

// A timeline in place of an order; nullopt: the input is an order.
Result<std::optional<Picture>, CommandError> measured_picture(const DrawnRequest& request) {
  if (request.traces.empty()) return timeline_in(request);
  auto picture = picture_of_ranks(request);
  if (!picture) return std::move(picture.error());
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
  request.costs.refuse_misfits(input.schedule, drawn.options);

  const Report report = report_of(input, findings_of(request, drawn.judged), {});
  drawn.code = exit_code_of(report.verdict);
  auto simulation = simulation_of(input, drawn.options);
  if (const std::string why = why_untimed(simulation); !why.empty()) {
    drawn.picture = picture_of(input, report, listed(input), why);
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
  auto timeline = measured_picture(request);
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

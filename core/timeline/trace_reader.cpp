// A Chrome trace that capo wrote, as a picture again. What a trace does not say, such as the causes
// of idle time or where a finding ends, the picture does not have.

#include "core/text/action_token.h"
#include "core/text/json_fields.h"
#include "core/text/json_value.h"
#include "core/timeline/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace capo {

namespace {

// Times of any size, but none that arithmetic on them would lose.
constexpr double kLatest = 1e300;

class TraceReading {
 public:
  explicit TraceReading(const Limits& limits) : limits_(limits) {}

  Read<Picture> run(const JsonValue& root) {
    if (auto refused = read_head(root)) return *std::move(refused);
    const auto events = root.find("traceEvents");
    if (!events || events->type() != JsonValue::Type::Array) {
      return malformed(root.span(), "the timeline has no list `traceEvents`");
    }
    for (auto event = events->first(); event; event = event->next()) {
      if (event->type() != JsonValue::Type::Object) return wrong_type(*event, "event", "an object");
      if (auto refused = read_event(*event)) return *std::move(refused);
    }
    finish();
    return std::move(picture_);
  }

 private:
  using Refused = std::optional<Refusal>;

  [[nodiscard]] static std::string text_of(const JsonValue& object, std::string_view key) {
    const auto found = object.find(key);
    return found && found->type() == JsonValue::Type::String ? found->string() : "";
  }

  Refused read_head(const JsonValue& root) {
    Timeline& timeline = picture_.timeline;
    for (const auto origin :
         {Timeline::Origin::Predicted, Timeline::Origin::Measured, Timeline::Origin::Listed}) {
      if (text_of(root, "origin") == name_of(origin)) timeline.origin = origin;
    }
    timeline.unit =
        text_of(root, "unit") == "costs" ? Timeline::Unit::Costs : Timeline::Unit::Microseconds;
    const auto about = root.find("otherData");
    if (!about || about->type() != JsonValue::Type::Object) {
      return malformed(root.span(), "the timeline has no `otherData` with its verdict");
    }
    picture_.title = text_of(*about, "title");
    picture_.verdict = text_of(*about, "verdict");
    picture_.accepted = picture_.verdict.starts_with("accepted");
    const auto setting = about->find("setting");
    if (!setting || setting->type() != JsonValue::Type::Array) return std::nullopt;
    for (auto line = setting->first(); line; line = line->next()) {
      if (line->type() == JsonValue::Type::String) picture_.setting.push_back(line->string());
    }
    return std::nullopt;
  }

  Refused read_event(const JsonValue& event) {
    const std::string phase = text_of(event, "ph");
    if (phase == "X" && text_of(event, "cat") == kQuantization) return read_quantizing(event);
    if (phase == "X") return read_task(event);
    if (phase == "C") return read_memory(event);
    if (phase == "i") return read_finding(event);
    if (phase == "M" && text_of(event, "name") == "thread_name") return read_lane_name(event);
    return std::nullopt;
  }

  // A member that is a number, into `out`.
  static Refused read_number(const JsonValue& object, std::string_view key, double least,
                             double& out) {
    const auto found = object.find(key);
    if (!found) return malformed(object.span(), fmt::format("the event has no `{}`", key));
    auto number = read_real(*found, key, least, kLatest);
    if (!number) return std::move(number.error());
    out = *number;
    return std::nullopt;
  }

  Refused read_rank(const JsonValue& event, std::int32_t& rank) {
    double number = 0;
    if (auto refused = read_number(event, "pid", 0, number)) return refused;
    if (number >= static_cast<double>(limits_.ranks)) {
      return over_limit(event.span(),
                        fmt::format("the timeline has more than {} ranks", limits_.ranks),
                        "--max-ranks");
    }
    rank = static_cast<std::int32_t>(number);
    picture_.timeline.ranks = std::max(picture_.timeline.ranks, RankId(rank).index() + 1);
    return std::nullopt;
  }

  Refused read_lane(const JsonValue& event, std::uint32_t& lane) {
    std::int32_t rank = 0;
    double thread = 0;
    if (auto refused = read_rank(event, rank)) return refused;
    if (auto refused = read_number(event, "tid", 0, thread)) return refused;
    auto& lanes = picture_.timeline.lanes;
    const auto [at, is_new] =
        lane_of_.try_emplace({rank, thread}, static_cast<std::uint32_t>(lanes.size()));
    if (is_new) lanes.push_back({.rank = rank});
    lane = at->second;
    return std::nullopt;
  }

  Refused read_lane_name(const JsonValue& event) {
    std::uint32_t lane = 0;
    if (auto refused = read_lane(event, lane)) return refused;
    const auto arguments = event.find("args");
    if (arguments) picture_.timeline.lanes[lane].name = text_of(*arguments, "name");
    return std::nullopt;
  }

  Refused read_task(const JsonValue& event) {
    TimedTask task;
    double duration = 0;
    if (auto refused = read_lane(event, task.lane)) return refused;
    if (auto refused = read_number(event, "ts", 0, task.begin)) return refused;
    if (auto refused = read_number(event, "dur", 0, duration)) return refused;
    task.end = task.begin + duration;
    task.id = static_cast<std::uint32_t>(labels_->size());
    labels_->push_back(text_of(event, "name"));
    name_action(labels_->back(), task);
    picture_.timeline.makespan = std::max(picture_.timeline.makespan, task.end);
    picture_.timeline.tasks.push_back(task);
    return std::nullopt;
  }

  // A part of the task in front of it.
  Refused read_quantizing(const JsonValue& event) {
    auto& tasks = picture_.timeline.tasks;
    if (tasks.empty()) return malformed(event.span(), "there is no task that it is a part of");
    TimedTask& task = tasks.back();
    if (auto refused = read_number(event, "dur", 0, task.quantizing)) return refused;
    task.quantizing = std::min(task.quantizing, task.end - task.begin);
    return std::nullopt;
  }

  // Labels begin with an action, "F1.0 experts", or with what a transfer does, "send-F"; others are
  // counted as communication of a group.
  void name_action(const std::string& label, TimedTask& task) const {
    const std::string word = label.substr(0, label.find_first_of(" &"));
    const auto action = read_action_token(word);
    task.kind = action ? action->kind : Kind::ReduceGradient;
    if (!action) {
      const auto of_some_chunk = read_action_token(word + "1");
      if (of_some_chunk && is_transfer(of_some_chunk->kind)) task.kind = of_some_chunk->kind;
      return;
    }
    if (action->chunk < limits_.counts) task.chunk = static_cast<std::int32_t>(action->chunk);
    if (action->microbatch && *action->microbatch < limits_.counts) {
      task.microbatch = static_cast<std::int32_t>(*action->microbatch);
    }
  }

  Refused read_memory(const JsonValue& event) {
    std::int32_t rank = 0;
    HeldMemory moment;
    const auto arguments = event.find("args");
    if (!arguments) return malformed(event.span(), "the event has no `args`");
    if (auto refused = read_rank(event, rank)) return refused;
    if (auto refused = read_number(event, "ts", 0, moment.time)) return refused;
    if (auto refused = read_number(*arguments, "activations", -kLatest, moment.held))
      return refused;
    auto& memory = picture_.timeline.memory;
    memory.resize(std::max(memory.size(), RankId(rank).index() + 1));
    memory[RankId(rank).index()].push_back(moment);
    return std::nullopt;
  }

  Refused read_finding(const JsonValue& event) {
    Spot spot;
    if (auto refused = read_lane(event, spot.lane)) return refused;
    if (auto refused = read_number(event, "ts", 0, spot.begin)) return refused;
    spot.end = spot.begin;
    const auto arguments = event.find("args");
    const std::string words = arguments ? text_of(*arguments, "finding") : "";
    auto& alarms = picture_.alarms;
    auto alarm = std::find_if(alarms.begin(), alarms.end(),
                              [&](const Alarm& each) { return each.words == words; });
    if (alarm == alarms.end()) {
      alarm = alarms.insert(alarm, {.rule = text_of(event, "name"), .words = words});
    }
    alarm->places.push_back(spot);
    return std::nullopt;
  }

  void finish() {
    Timeline& timeline = picture_.timeline;
    timeline.one_chunk = std::all_of(timeline.tasks.begin(), timeline.tasks.end(),
                                     [](const TimedTask& task) { return task.chunk <= 1; });
    if (!timeline.memory.empty()) timeline.memory.resize(timeline.ranks);
    timeline.label = [labels = labels_](std::uint32_t id) { return (*labels)[id]; };
  }

  const Limits& limits_;
  Picture picture_;
  std::map<std::pair<std::int32_t, double>, std::uint32_t> lane_of_;
  std::shared_ptr<std::vector<std::string>> labels_ = std::make_shared<std::vector<std::string>>();
};

}  // namespace

bool is_timeline(std::string_view text) {
  return text.starts_with('{') && text.find(kTimelineSchema) != std::string_view::npos;
}

Read<Picture> read_timeline(std::string_view text, const Limits& limits) {
  auto document = JsonDocument::parse(text, limits);
  if (!document) return std::move(document.error());
  const JsonValue root = document->root();
  if (root.type() != JsonValue::Type::Object) return wrong_type(root, "timeline", "an object");
  return TraceReading(limits).run(root);
}

}  // namespace capo

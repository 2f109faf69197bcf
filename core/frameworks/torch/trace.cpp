#include "core/frameworks/torch/trace.h"

#include "core/base/index.h"
#include "core/frameworks/torch/table.h"
#include "core/text/json_fields.h"
#include "core/text/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace capo {

namespace {

// Microseconds since 1970 are 2e15; nothing is later than a double can tell apart.
constexpr double kLatestTime = 1e18;

// The microbatch of "Forward 1"; nullopt if the name is not that of such an action.
std::optional<std::int64_t> numbered(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  name.remove_prefix(word.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc{} && end == name.data() + name.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

// The actions that a name says; empty if it says none. A stage of -1 is that of the rank.
std::vector<TorchAction> actions_of(std::string_view name) {
  constexpr std::string_view kRuntime = "PP:";
  if (name.starts_with(kRuntime)) {
    name.remove_prefix(kRuntime.size());
    TorchCell cell = read_as_torch(name);
    // torch reads the beginning of a text, and here all of it has to be an action.
    return cell.repr == name ? std::move(cell.actions) : std::vector<TorchAction>{};
  }
  if (const auto at = numbered(name, "Forward ")) {
    return {{.type = TorchType::Forward, .microbatch = *at}};
  }
  if (const auto at = numbered(name, "Backward ")) {
    return {{.type = TorchType::FullBackward, .microbatch = *at}};
  }
  return {};
}

std::string text_of(const JsonValue& object, std::string_view key) {
  const auto found = object.find(key);
  return found && found->type() == JsonValue::Type::String ? found->string() : "";
}

// A span of the trace that has the name of actions.
struct Marked {
  double process = 0;
  std::string name;
  double begin = 0;
  double end = 0;
};

// A call that launches a kernel, and a kernel; their correlation is the same.
struct Launch {
  double process = 0;
  double at = 0;
};
struct Kernel {
  double correlation = 0;
  double begin = 0;
  double end = 0;
};

class TorchTraceReading {
 public:
  TorchTraceReading(const Limits& limits, std::optional<std::int32_t> rank)
      : limits_(limits), place_(rank) {}

  Read<TorchTrace> run(const JsonValue& root) {
    const auto events = root.find("traceEvents");
    if (!events || events->type() != JsonValue::Type::Array) {
      return malformed(root.span(), "the trace has no list `traceEvents`");
    }
    if (auto refused = read_rank(root)) return *std::move(refused);
    if (auto refused = read_base(root)) return *std::move(refused);
    for (auto event = events->first(); event; event = event->next()) {
      if (event->type() != JsonValue::Type::Object) return wrong_type(*event, "event", "an object");
      if (auto refused = read_event(*event)) return *std::move(refused);
    }
    join_marked_kernels();
    if (marked_.empty()) join_launched_kernels();
    trace_.on_device = !device_.empty();
    if (auto refused = add_actions(root, trace_.on_device ? device_ : processor_)) {
      return *std::move(refused);
    }
    finish();
    return std::move(trace_);
  }

 private:
  using Refused = std::optional<Refusal>;

  // The rank of the file, if it says one.
  Refused read_rank(const JsonValue& root) {
    const auto info = root.find("distributedInfo");
    const auto rank = info && info->type() == JsonValue::Type::Object ? info->find("rank")
                                                                      : std::optional<JsonValue>();
    if (!rank) return std::nullopt;
    const auto number = read_whole(*rank, "rank", 0, static_cast<std::int64_t>(limits_.ranks) - 1);
    if (!number) return number.error();
    rank_ = static_cast<std::int32_t>(*number);
    trace_.says_rank = true;
    return std::nullopt;
  }

  Refused read_base(const JsonValue& root) {
    constexpr std::string_view kBase = "baseTimeNanoseconds";
    const auto base = root.find(kBase);
    if (!base) return std::nullopt;
    const auto number = read_whole(*base, kBase, 0, std::int64_t{1} << 62);
    if (!number) return number.error();
    trace_.base = *number;
    return std::nullopt;
  }

  Refused read_event(const JsonValue& event) {
    if (text_of(event, "ph") != "X") return std::nullopt;
    const std::string category = text_of(event, "cat");
    if (category == "user_annotation") return read_span(event, text_of(event, "name"), processor_);
    if (category == "gpu_user_annotation") return read_span(event, text_of(event, "name"), device_);
    const auto arguments = event.find("args");
    if (!arguments || arguments->type() != JsonValue::Type::Object) return std::nullopt;
    const std::string mark = text_of(*arguments, "str");
    if (auto refused = mark.empty() ? std::nullopt : read_span(event, mark, marked_)) {
      return refused;
    }
    return arguments->find("correlation") ? read_correlated(event, *arguments, category)
                                          : std::nullopt;
  }

  Refused read_correlated(const JsonValue& event, const JsonValue& arguments,
                          std::string_view category) {
    const bool launches = category == "cuda_runtime" || category == "cuda_driver";
    const bool runs = category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
    if (!launches && !runs) return std::nullopt;
    double correlation = 0;
    if (auto refused = read_number(arguments, "correlation", correlation)) return refused;
    Marked span;
    if (auto refused = read_times(event, span)) return refused;
    if (launches) {
      launches_[correlation] = {.process = span.process, .at = span.begin};
    } else {
      ran_.push_back({.correlation = correlation, .begin = span.begin, .end = span.end});
    }
    return std::nullopt;
  }

  static Refused read_number(const JsonValue& object, std::string_view key, double& out) {
    const auto found = object.find(key);
    if (!found) return malformed(object.span(), fmt::format("the event has no `{}`", key));
    auto value = read_real(*found, key, 0, kLatestTime);
    if (!value) return std::move(value.error());
    out = *value;
    return std::nullopt;
  }

  static Refused read_times(const JsonValue& event, Marked& span) {
    double duration = 0;
    if (auto refused = read_number(event, "pid", span.process)) return refused;
    if (auto refused = read_number(event, "ts", span.begin)) return refused;
    if (auto refused = read_number(event, "dur", duration)) return refused;
    span.end = span.begin + duration;
    return std::nullopt;
  }

  Refused read_span(const JsonValue& event, const std::string& name, std::vector<Marked>& spans) {
    if (actions_of(name).empty()) return std::nullopt;
    Marked span{.name = name};
    if (auto refused = read_times(event, span)) return refused;
    spans.push_back(std::move(span));
    return std::nullopt;
  }

  // Kernels that follow each other under one name are one action.
  void join_marked_kernels() {
    std::stable_sort(marked_.begin(), marked_.end(), [](const Marked& a, const Marked& b) {
      return std::tie(a.process, a.begin) < std::tie(b.process, b.begin);
    });
    if (!marked_.empty()) device_.clear();
    for (const Marked& kernel : marked_) {
      const bool goes_on = !device_.empty() && device_.back().process == kernel.process &&
                           device_.back().name == kernel.name;
      if (goes_on) {
        device_.back().end = std::max(device_.back().end, kernel.end);
      } else {
        device_.push_back(kernel);
      }
    }
  }

  // Actions of the processor with the times of what was launched in them. One that launched nothing
  // takes no time, behind the one before it: the input half of the first stage has nothing to do.
  void join_launched_kernels() {
    std::multimap<std::pair<double, double>, Kernel>
        by_launch;  // by process and time of the launch
    for (const Kernel& kernel : ran_) {
      const auto launch = launches_.find(kernel.correlation);
      if (launch == launches_.end()) continue;
      by_launch.emplace(std::pair(launch->second.process, launch->second.at), kernel);
    }
    if (by_launch.empty()) return;
    std::stable_sort(processor_.begin(), processor_.end(), [](const Marked& a, const Marked& b) {
      return std::tie(a.process, a.begin) < std::tie(b.process, b.begin);
    });
    std::vector<Marked> joined;
    for (const Marked& action : processor_) {
      Marked span{.process = action.process, .name = action.name, .begin = kLatestTime, .end = 0};
      const auto last = by_launch.upper_bound({action.process, action.end});
      for (auto at = by_launch.lower_bound({action.process, action.begin}); at != last; ++at) {
        span.begin = std::min(span.begin, at->second.begin);
        span.end = std::max(span.end, at->second.end);
      }
      const bool follows = !joined.empty() && joined.back().process == action.process;
      if (span.begin >= span.end) {
        if (!follows) continue;
        span.begin = span.end = joined.back().end;
      }
      joined.push_back(std::move(span));
    }
    if (!joined.empty()) device_ = std::move(joined);
  }

  Refused add_actions(const JsonValue& root, const std::vector<Marked>& spans) {
    if (spans.empty()) {
      return malformed(root.span(), "the trace names no action of a pipeline",
                       "capo reads `PP:0F1`, `Forward 1` and their like, which "
                       "torch.distributed.pipelining records");
    }
    std::set<double> processes;
    for (const Marked& span : spans) processes.insert(span.process);
    if (!rank_ && place_) {
      if (processes.size() > 1) {
        return malformed(
            root.span(),
            fmt::format("the trace has {} processes and says no rank", processes.size()),
            "several traces are a rank each; give one of several ranks alone");
      }
      rank_ = place_;
    }
    for (const Marked& span : spans) {
      const auto own = std::distance(processes.begin(), processes.find(span.process));
      if (auto refused = add_span(root, span, rank_.value_or(static_cast<std::int32_t>(own)))) {
        return refused;
      }
    }
    return std::nullopt;
  }

  Refused add_span(const JsonValue& root, const Marked& span, std::int32_t rank) {
    const std::vector<TorchAction> actions = actions_of(span.name);
    for (std::size_t at = 0; at < actions.size(); ++at) {
      const TorchAction& action = actions[at];
      const std::optional<Kind> kind = kind_of(action.type);
      if (!kind) continue;
      if (std::max(action.stage, action.microbatch) >= static_cast<std::int64_t>(limits_.counts)) {
        return over_limit(root.span(), fmt::format("`{}` counts too far", span.name),
                          "--max-count");
      }
      trace_.actions.push_back(
          {.rank = rank,
           .stage = action.stage < 0 ? rank : static_cast<std::int32_t>(action.stage),
           .microbatch = action.microbatch < 0
                             ? kNoMicrobatch
                             : MicrobatchId(static_cast<std::int32_t>(action.microbatch)),
           .kind = *kind,
           .begin = span.begin,
           .end = span.end,
           .member = static_cast<std::uint8_t>(at),
           .members = static_cast<std::uint8_t>(actions.size())});
    }
    return std::nullopt;
  }

  // Counts times from the first action on, and chunks by the stages of each rank.
  void finish() {
    auto& actions = trace_.actions;
    std::stable_sort(actions.begin(), actions.end(),
                     [](const TracedAction& a, const TracedAction& b) {
                       return std::tie(a.rank, a.begin) < std::tie(b.rank, b.begin);
                     });
    std::map<std::int32_t, std::set<std::int32_t>> stages;
    double first = kLatestTime;
    for (const TracedAction& action : actions) {
      stages[action.rank].insert(action.stage);
      first = std::min(first, action.begin);
    }
    trace_.first = first;
    for (TracedAction& action : actions) {
      const auto& own = stages[action.rank];
      const auto before = std::distance(own.begin(), own.find(action.stage));
      action.chunk = static_cast<std::int32_t>(before) + 1;
      action.begin -= first;
      action.end -= first;
    }
  }

  const Limits& limits_;
  std::optional<std::int32_t> place_;  // of the file in a list of them
  std::optional<std::int32_t> rank_;
  std::vector<Marked> processor_;
  std::vector<Marked> device_;
  std::vector<Marked> marked_;         // kernels that name their action
  std::map<double, Launch> launches_;  // by correlation
  std::vector<Kernel> ran_;
  TorchTrace trace_;
};

}  // namespace

bool is_torch_trace(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"traceEvents\"") != std::string_view::npos;
}

Read<TorchTrace> read_torch_trace(std::string_view text, const Limits& limits,
                                  std::optional<std::int32_t> rank) {
  auto document = JsonDocument::parse(text, limits);
  if (!document) return std::move(document.error());
  const JsonValue root = document->root();
  if (root.type() != JsonValue::Type::Object) return wrong_type(root, "trace", "an object");
  return TorchTraceReading(limits, rank).run(root);
}

}  // namespace capo

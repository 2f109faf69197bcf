// Traces of ranks on one axis of time (trace.h).
//
//   rank 0  [F0]                    F0 of stage 1 cannot begin before F0 of stage 0 has ended, so
//   rank 1   [F0]  ->    [F0]       the clock of rank 1 is late by at least what they share

#include "core/frameworks/torch/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {

namespace {

// Shorter overlaps are no error of a clock, in microseconds: nanoseconds since 1970 are read to a
// quarter of one.
constexpr double kExact = 0.5;

// The clock of rank `on` has to be behind that of rank `of` by `least` at least, as they are.
struct Lag {
  std::int32_t of = 0;
  std::int32_t on = 0;
  double least = 0;
};

// A backward that another stage waits for: its input half, if it has halves.
std::optional<Kind> passed_on(Kind kind) {
  if (kind == Kind::Forward) return Kind::Forward;
  const bool backward = kind == Kind::Backward || kind == Kind::BackwardInput;
  return backward ? std::optional(Kind::Backward) : std::nullopt;
}

// A stage waits for the one before it in forwards and for the one behind it in backwards; those on
// other ranks make lags.
std::vector<Lag> lags_of(const std::vector<TracedAction>& actions) {
  std::map<std::tuple<Kind, std::int32_t, std::int32_t>, const TracedAction*> by_stage;
  for (const TracedAction& action : actions) {
    const auto kind = passed_on(action.kind);
    if (kind) by_stage[{*kind, action.stage, action.microbatch}] = &action;
  }
  std::vector<Lag> lags;
  for (const auto& [key, action] : by_stage) {
    const auto& [kind, stage, microbatch] = key;
    const auto before = by_stage.find({kind, stage + (kind == Kind::Forward ? -1 : 1), microbatch});
    if (before == by_stage.end() || before->second->rank == action->rank) continue;
    lags.push_back({.of = before->second->rank,
                    .on = action->rank,
                    .least = before->second->end - action->begin});
  }
  return lags;
}

// The least that each clock has to go back, so that nothing begins before what it waits for has
// ended: longest ways over the lags. nullopt if no clocks do that.
std::optional<std::map<std::int32_t, double>> corrections(const std::vector<Lag>& lags) {
  std::map<std::int32_t, double> back;
  for (const Lag& lag : lags) back[lag.of] = back[lag.on] = 0;
  for (std::size_t round = 0; round <= back.size(); ++round) {
    bool changed = false;
    for (const Lag& lag : lags) {
      const double wanted = back[lag.of] + lag.least;
      if (wanted <= back[lag.on] + kExact) continue;
      back[lag.on] = wanted;
      changed = true;
    }
    if (!changed) return back;
  }
  return std::nullopt;
}

double length_of(const TorchTrace& trace) {
  double end = 0;
  for (const TracedAction& action : trace.actions) end = std::max(end, action.end);
  return end;
}

// Whether clocks can be compared: all files say what theirs counts from, or none does, and there is
// a moment at which all ranks are in the step.
bool share_a_clock(const std::vector<TorchTrace>& traces, const std::vector<double>& begins) {
  double last_begin = 0;
  double first_end = std::numeric_limits<double>::max();
  for (std::size_t at = 0; at < traces.size(); ++at) {
    if ((traces[at].base == 0) != (traces[0].base == 0)) return false;
    last_begin = std::max(last_begin, begins[at]);
    first_end = std::min(first_end, begins[at] + length_of(traces[at]));
  }
  return last_begin <= first_end;
}

// When each file's first action begins, from the earliest one on. Differences of whole nanoseconds
// are exact where sums would not be.
std::vector<double> begins_of(const std::vector<TorchTrace>& traces) {
  std::vector<double> begins;
  for (const TorchTrace& trace : traces) {
    const auto base = static_cast<double>(trace.base - traces[0].base) / 1000;
    begins.push_back(base + (trace.first - traces[0].first));
  }
  const double first = *std::min_element(begins.begin(), begins.end());
  for (double& begin : begins) begin -= first;
  return begins;
}

void move_back(std::vector<TracedAction>& actions, const std::map<std::int32_t, double>& back) {
  double first = std::numeric_limits<double>::max();
  for (TracedAction& action : actions) {
    const auto own = back.find(action.rank);
    const double by = own == back.end() ? 0 : own->second;
    action.begin += by;
    action.end += by;
    first = std::min(first, action.begin);
  }
  for (TracedAction& action : actions) {
    action.begin -= first;
    action.end -= first;
  }
}

std::string words_of(const std::map<std::int32_t, double>& back) {
  std::vector<std::string> moved;
  for (const auto& [rank, by] : back) {
    if (by > kExact) moved.push_back(fmt::format("rank {} by {:.1f} us", rank, by));
  }
  if (moved.empty()) return "";
  return fmt::format("moved later, so that nothing runs before what it waits for: {}",
                     fmt::join(moved, ", "));
}

// Moves the clocks of ranks apart where kernels show that they are wrong. Returns what was done, in
// words.
std::string correct(TorchTrace& trace) {
  if (!trace.on_device) return "not corrected, since times of the processor show no waiting";
  const auto back = corrections(lags_of(trace.actions));
  if (!back) return "not corrected, since no clocks let each action wait for what it needs";
  move_back(trace.actions, *back);
  return words_of(*back);
}

}  // namespace

TorchTrace last_step_of(const TorchTrace& trace) {
  std::map<std::tuple<std::int32_t, std::int32_t, Kind, std::int32_t>, TracedAction> last;
  for (const TracedAction& action : trace.actions) {
    last[{action.rank, action.chunk, action.kind, action.microbatch}] = action;
  }
  TorchTrace step = trace;
  step.actions.clear();
  double first = std::numeric_limits<double>::max();
  for (const auto& [key, action] : last) first = std::min(first, action.begin);
  for (auto [key, action] : last) {
    action.begin -= first;
    action.end -= first;
    step.actions.push_back(action);
  }
  step.first += first;
  std::stable_sort(step.actions.begin(), step.actions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.begin, a.member) < std::tie(b.rank, b.begin, b.member);
  });
  return step;
}

JoinedTraces join_traces(std::vector<TorchTrace> traces) {
  if (traces.size() == 1) return {.trace = std::move(traces[0]), .clocks = ""};
  const std::vector<double> begins = begins_of(traces);
  const bool shared = share_a_clock(traces, begins);
  JoinedTraces joined{.trace = {.on_device = true}};
  for (std::size_t at = 0; at < traces.size(); ++at) {
    joined.trace.on_device = joined.trace.on_device && traces[at].on_device;
    for (TracedAction action : traces[at].actions) {
      action.begin += shared ? begins[at] : 0;
      action.end += shared ? begins[at] : 0;
      joined.trace.actions.push_back(action);
    }
  }
  joined.clocks = shared ? "clocks of the files" : "the files share no clock: each begins at 0";
  const std::string done = correct(joined.trace);
  if (!done.empty()) joined.clocks += "; " + done;
  return joined;
}

}  // namespace capo

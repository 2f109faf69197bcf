// `capo measure --trace kineto.json`: what the actions of torch's traces took, as flags for
// `simulate`, `compare` and `draw`.
//
//   --cost r0.c1:f=1204.5,b=1310,w=905
//
// Each number is the median of an action's times in a chunk of a rank, in microseconds. Actions
// that ran together are left out, since no trace says what either took. Tested by
// tests/cli/measure_test.cpp.

#include "cli/commands/commands.h"
#include "cli/options/command_error.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/median.h"
#include "core/base/plural.h"
#include "core/frameworks/torch/trace.h"
#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace capo::cli {

namespace {

using Place = std::pair<std::int32_t, std::int32_t>;  // rank and chunk
using Times = std::map<Kind, std::vector<double>>;

// The settings of one chunk: "f=12,b=13,w=9". Of whole backwards nobody knows how their halves
// share the time, and each is given one half of it.
std::string settings_of(const Times& times) {
  std::vector<std::string> settings;
  const auto add = [&](const char* key, Kind kind) {
    const auto found = times.find(kind);
    if (found == times.end()) return false;
    settings.push_back(fmt::format("{}={}", key, figure(median(found->second))));
    return true;
  };
  add("f", Kind::Forward);
  const bool halves = add("b", Kind::BackwardInput);
  add("w", Kind::BackwardWeight);
  if (const auto whole = times.find(Kind::Backward); !halves && whole != times.end()) {
    const std::string half = figure(median(whole->second) / 2);
    settings.push_back(fmt::format("b={},w={}", half, half));
  }
  add("unshard", Kind::Unshard);
  add("reshard", Kind::Reshard);
  add("reduce", Kind::ReduceGradient);
  return fmt::format("{}", fmt::join(settings, ","));
}

struct Seen {
  std::map<Place, Times> times;
  std::size_t actions = 0;
  std::size_t composites = 0;
  bool whole_backwards = false;
  bool on_device = true;
};

void add(const TorchTrace& trace, Seen& seen) {
  seen.on_device = seen.on_device && trace.on_device;
  for (const TracedAction& action : trace.actions) {
    if (action.members > 1) {
      seen.composites += action.member == 0 ? 1 : 0;
      continue;
    }
    ++seen.actions;
    seen.whole_backwards = seen.whole_backwards || action.kind == Kind::Backward;
    seen.times[{action.rank, action.chunk}][action.kind].push_back(action.end - action.begin);
  }
}

std::string words_of(const Seen& seen) {
  std::string words =
      fmt::format("{} {}, medians in microseconds\n", counted(seen.actions, "action"),
                  seen.on_device ? "on the device" : "as the processor launched them");
  if (seen.composites > 0) {
    words += fmt::format("left out: {} that ran together\n",
                         counted(seen.composites, "group of actions", "groups of actions"));
  }
  if (seen.whole_backwards) words += "whole backwards are divided evenly between b and w\n";
  return words;
}

}  // namespace

int measure_traces(const std::vector<std::string>& files, const std::string& output,
                   const Limits& limits) {
  Seen seen;
  const bool of_ranks = files.size() > 1;
  for (std::size_t at = 0; at < files.size(); ++at) {
    const std::string& file = files[at];
    const auto place = static_cast<std::int32_t>(at);
    auto source = read_source(file, limits.bytes);
    if (!source) return fail(source.error());
    auto trace =
        read_torch_trace(source->text, limits, of_ranks ? std::optional(place) : std::nullopt);
    if (!trace) {
      return refuse(
          RefusedInput{.source = std::move(*source), .refusal = std::move(trace.error())});
    }
    add(*trace, seen);
  }
  std::string text;
  for (const auto& [place, times] : seen.times) {
    const std::string settings = settings_of(times);
    if (settings.empty()) continue;  // it only sends and receives
    text += fmt::format("--cost r{}.c{}:{}\n", place.first, place.second, settings);
  }
  if (const auto failed = write_output(output, text)) return fail(*failed);
  print_stderr(words_of(seen));
  return kAccepted;
}

}  // namespace capo::cli

// stuck_state() of run.h.

#include "run/run.h"

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"
#include "run/processes/walk_all.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace capo::run {

namespace {

bool has_task_graph(const Wiring& wiring) {
  if (!wiring.transfers_matter() || !wiring.executable()) return false;
  return !wiring.by_megatron() || wiring.megatron().faults.empty();
}

std::string_view stream_kind(const Stream& stream) {
  switch (stream.runs) {
    case Stream::Runs::Computations:
      return "computes";
    case Stream::Runs::Transfers:
      return "transfers";
    case Stream::Runs::Collectives:
      return "exchanges";
  }
  CAPO_UNREACHABLE();
}

class StuckState {
 public:
  StuckState(const Context& context, const Wiring& wiring)
      : context_(context),
        wiring_(wiring),
        graph_(wiring.transfers().graph),
        execution_(wiring.execution()),
        waits_(graph_.task_of.size()) {
    graph_.for_each_task_edge([&](const TaskEdge& edge) {
      if (!execution_.ran[edge.from] && !waits_[edge.to]) waits_[edge.to] = edge;
    });
  }

  [[nodiscard]] std::string text() const {
    std::vector<TaskId> first_waiting(graph_.streams.size(), kNoTask);
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      TaskId& first = first_waiting[graph_.tasks[task].stream];
      if (first == kNoTask && !execution_.ran[graph_.end(task)]) first = task;
    }
    std::string out = "the step was taken as far as it goes, and stays there:\n";
    for (const TaskId task : first_waiting) {
      if (task == kNoTask) continue;
      const Stream& stream = graph_.streams[graph_.tasks[task].stream];
      out += fmt::format("  rank {} {}: {} {}\n", stream.rank, stream_kind(stream),
                         name(task, stream.rank), why(task, stream.rank));
    }
    return out;
  }

 private:
  [[nodiscard]] std::string name(TaskId task, std::int32_t seen_from) const {
    return words::task_name(context_, wiring_, graph_, task, seen_from);
  }

  // Whatever one member of a composite or fused group waits for, all of them wait for. A task at
  // the point where the members of a collective meet waits for one that is not there yet.
  [[nodiscard]] std::string why(TaskId task, std::int32_t rank) const {
    const bool begun = graph_.tasks[task].split && execution_.ran[graph_.start(task)];
    const std::string_view state = begun ? "has begun and waits" : "waits";
    auto edge = waits_[begun ? graph_.end(task) : graph_.start(task)];
    if (edge && graph_.is_meeting(edge->from)) edge = waits_[edge->from];
    if (!edge || edge->before == task) {
      return graph_.tasks[task].never || begun ? fmt::format("{} for what never comes", state)
                                               : "waits behind it";
    }
    const bool with =
        edge->after != task && !TaskGraph::of_all(edge->kind) && !graph_.is_meeting(edge->to);
    if (!with) return fmt::format("{} for {}", state, name(edge->before, rank));
    return fmt::format("{} with {} for {}", state, name(edge->after, rank),
                       name(edge->before, rank));
  }

  const Context& context_;
  const Wiring& wiring_;
  const TaskGraph& graph_;
  const Execution& execution_;
  std::vector<std::optional<TaskEdge>> waits_;  // by vertex: an edge from one that has not run
};

WalkedRanks walked_with(Processes& processes, const WalkMessages& messages, const Walkable& of) {
  if (!messages.make) return walk_all(processes, of);
  const auto made = messages.make(of.environment.layout(), communicators_used(of));
  WalkedRanks walked = observe(
      processes, *made, of, {.on_the_way = processes.timeout(), .at_its_end = processes.timeout()});
  if (std::string error = error_of_any(processes, *made); !error.empty()) {
    walked.silent = std::move(error);
  }
  return walked;
}

// Says what processes did that were to walk the step, beside what it should be.
std::string walked_over(Processes& processes, const WalkMessages& messages, const Wiring& wiring) {
  const Walkable of = walkable(wiring);
  // Collectives are told apart by their tags, and NCCL has none.
  if (!can_be_walked(of, messages.make ? Meetings::AreNot : Meetings::AreWalked)) {
    return fmt::format(
        "  it was not walked over processes: transfers without a partner{} and channels that hold "
        "so many bytes are not\n",
        messages.make ? ", collectives of several ranks" : "");
  }
  const WalkedRanks walked = walked_with(processes, messages, of);
  const std::string differs = difference(of, walked);
  if (!differs.empty()) {
    return fmt::format("  over {} it was otherwise: {}\n", messages.name, differs);
  }
  const std::size_t others = mismatches(of.graph, walked);
  return fmt::format("  {} came as far over {} and no further{}\n",
                     counted(processes.size(), "process", "processes"), messages.name,
                     others == 0
                         ? ""
                         : fmt::format(", and {} met the receive of another, as predicted",
                                       counted(static_cast<std::int64_t>(others), "message")));
}

}  // namespace

std::string stuck_state(const Input& input, const CheckOptions& options, Processes* processes,
                        const WalkMessages& messages) {
  const Context context(input, options);
  if (!orders_are_clean(context)) return "";
  const Wiring* finished = nullptr;
  const auto walked = [&](const Wiring& wiring) {
    return processes == nullptr ? "" : walked_over(*processes, messages, wiring);
  };
  for (const auto& wiring : context.wirings()) {
    if (!has_task_graph(*wiring)) continue;
    if (!wiring->execution().finishes()) {
      return StuckState(context, *wiring).text() + walked(*wiring);
    }
    finished = wiring.get();
  }
  if (finished == nullptr) return "";
  return "the step was taken to its end: in this course nothing waits for ever, and what the "
         "finding "
         "says goes wrong all the same\n" +
         walked(*finished);
}

}  // namespace capo::run

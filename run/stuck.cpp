#include <capo/run/stuck.h>

#include <capo/core/base/assert.h>
#include <capo/core/rules/check.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/task_words.h>
#include <capo/core/rules/wiring.h>

#include <fmt/format.h>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/range/iterator_range.hpp>

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
        waits_for_(graph_.task_of.size(), kNoTask) {
    for (Vertex vertex = 0; vertex < graph_.task_of.size(); ++vertex) {
      if (execution_.ran[vertex]) continue;
      for (const auto out : boost::make_iterator_range(out_edges(vertex, graph_.edges))) {
        const auto next = static_cast<Vertex>(target(out, graph_.edges));
        if (waits_for_[next] == kNoTask) waits_for_[next] = graph_.task_of[vertex];
      }
    }
  }

  [[nodiscard]] std::string text() const {
    std::string out = "the step was taken as far as it goes, and stays there:\n";
    for (std::uint32_t stream = 0; stream < graph_.streams.size(); ++stream) {
      const auto task = first_waiting(stream);
      if (!task) continue;
      out += fmt::format("  rank {} {}: {} {}\n", graph_.streams[stream].rank,
                         stream_kind(graph_.streams[stream]), name(*task), why(*task));
    }
    return out;
  }

 private:
  [[nodiscard]] std::optional<TaskId> first_waiting(std::uint32_t stream) const {
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (graph_.tasks[task].stream == stream && !execution_.ran[graph_.end(task)]) return task;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string name(TaskId task) const {
    return words::task_name(context_, wiring_, graph_, task, graph_.tasks[task].rank);
  }

  [[nodiscard]] std::string why(TaskId task) const {
    const bool begun = graph_.tasks[task].split && execution_.ran[graph_.start(task)];
    const TaskId other = waits_for_[begun ? graph_.end(task) : graph_.start(task)];
    const std::string_view state = begun ? "has begun and waits for" : "waits for";
    if (other != kNoTask && other != task) {
      return fmt::format("{} {}", state, words::task_name(context_, wiring_, graph_, other));
    }
    return graph_.tasks[task].never || begun ? fmt::format("{} what nobody makes", state)
                                             : "waits behind it";
  }

  const Context& context_;
  const Wiring& wiring_;
  const TaskGraph& graph_;
  const Execution& execution_;
  std::vector<TaskId> waits_for_;  // by vertex: one that has not run
};

}  // namespace

std::string stuck_state(const Input& input, const CheckOptions& options) {
  const Context context(input, options);
  if (!orders_are_clean(context)) return "";
  bool taken = false;
  for (const auto& wiring : context.wirings()) {
    if (!has_task_graph(*wiring)) continue;
    if (!wiring->execution().finishes()) return StuckState(context, *wiring).text();
    taken = true;
  }
  return taken
             ? "the step was taken to its end: in this course nothing waits for ever, and what the "
               "finding says goes wrong all the same\n"
             : "";
}

}  // namespace capo::run

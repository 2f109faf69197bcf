#include "core/base/index.h"
#include "core/draw/draw.h"

#include "core/base/assert.h"
#include "core/draw/drawing.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace capo {

namespace {

constexpr std::size_t kClasses = as_index(EdgeClass::Witness);

EdgeClass class_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::Stream:
    case EdgeKind::Queue:
      return EdgeClass::Order;
    case EdgeKind::Data:
    case EdgeKind::Span:
      return EdgeClass::Data;
    case EdgeKind::Message:
    case EdgeKind::Rendezvous:
      return EdgeClass::Message;
    case EdgeKind::Issue:
      return EdgeClass::Issue;
    case EdgeKind::Wait:
      return EdgeClass::Wait;
    case EdgeKind::Event:
      return EdgeClass::Event;
    case EdgeKind::Collective:
      return EdgeClass::Collective;
  }
  CAPO_UNREACHABLE();
}

std::string_view word_for(EdgeKind kind) {
  constexpr std::array<std::string_view, kClasses> kWords{"order", "data",  "message",   "issue",
                                                          "wait",  "event", "collective"};
  return kind == EdgeKind::Rendezvous ? "rendezvous" : kWords[as_index(class_of(kind))];
}

// A choice says which parts of a graph are drawn.
class Choice {
 public:
  Choice(const TaskGraph& graph, const Lowered& lowered, const Marks& marks,
         const DotOptions& options)
      : graph_(graph),
        lowered_(lowered),
        marks_(marks),
        options_(options),
        red_(marks.tasks.begin(), marks.tasks.end()) {
    choose_nodes();
  }

  [[nodiscard]] std::size_t nodes() const { return tasks_.size(); }

  Drawing draw(const std::string& title) {
    out_.title = title;
    for (std::size_t n = 0; n < tasks_.size(); ++n) add_node(n);
    collect_edges();
    collect_witness();
    for (std::size_t c = 0; c < kClasses; ++c) draw_class(static_cast<EdgeClass>(c));
    for (const auto& [ends, words] : witness_) {
      out_.lines.push_back({.from = ends.first,
                            .to = ends.second,
                            .of = EdgeClass::Witness,
                            .waits = said_.contains(ends),
                            .words = words});
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] Step step_of(const Task& task) const { return capo::step_of(lowered_, task); }

  [[nodiscard]] bool in_view(const Task& task) const {
    if (options_.collapse && is_transfer(task.kind)) return false;
    const auto& ranks = options_.ranks;
    if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), task.rank) == ranks.end()) {
      return false;
    }
    const auto& window = options_.window;
    return !window || (task.step >= window->first && task.step < window->second);
  }

  void choose_nodes() {
    node_of_.assign(graph_.tasks.size(), kNoTask);
    for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
      // Every option leaves the witness in view.
      if (!in_view(graph_.tasks[id]) && !red_.contains(id)) continue;
      node_of_[id] = static_cast<TaskId>(tasks_.size());
      tasks_.push_back(id);
    }
    name_nodes();
  }

  // A node is named by rank, chunk, microbatch and kind; a task that occurs again gets a number.
  void name_nodes() {
    std::map<std::string, int> seen;
    for (const TaskId id : tasks_) {
      const Task& task = graph_.tasks[id];
      const Step& step = step_of(task);
      std::string name = fmt::format("r{}_c{}", task.rank, step.chunk);
      if (has_microbatch(step.kind)) name += fmt::format("_m{}", step.microbatch);
      name += "_" + std::string(word_of(step.kind));
      std::replace(name.begin(), name.end(), '-', '_');
      if (step.part != Part::Whole || is_exchange(step.kind))
        name += fmt::format("_l{}", step.layer);
      if (step.part == Part::PreDispatch) name += "_pre";
      if (step.part == Part::Experts) name += "_experts";
      if (step.part == Part::PostProcess) name += "_post";
      const int before = seen[name]++;
      if (before > 0) name += fmt::format("_again{}", before);
      names_.push_back(std::move(name));
    }
  }

  void add_node(std::size_t n) {
    const Task& task = graph_.tasks[tasks_[n]];
    const Step& step = step_of(task);
    const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
    out_.nodes.push_back(
        {.name = names_[n],
         .label = to_token(action, Naming::Named),
         .tooltip = fmt::format("rank {}, stage {}, step {}", task.rank, task.stage, task.step),
         .rank = task.rank,
         .stream = task.stream,
         .kind = step.kind,
         .red = red_.contains(tasks_[n])});
  }

  // The two nodes of the picture that an edge of the graph joins.
  void collect_edges() {
    graph_.for_each_task_edge([&](const TaskEdge& edge) {
      // A rendezvous is a message seen from its other end, and what comes behind the point where a
      // collective's members meet is joined with them before it.
      if (edge.kind == EdgeKind::Span || edge.kind == EdgeKind::Rendezvous) return;
      if (graph_.is_meeting(edge.from)) return;
      add(class_of(edge.kind), node_of_[edge.before], node_of_[edge.after]);
    });
    if (options_.collapse) add_collapsed_messages();
  }

  void add(EdgeClass edge_class, TaskId from, TaskId to) {
    if (from == kNoTask || to == kNoTask || from == to) return;
    edges_[as_index(edge_class)].emplace_back(from, to);
  }

  // An edge leads from the task that makes what a send carries to the task that reads it.
  void add_collapsed_messages() {
    std::vector<TaskId> makers(graph_.tasks.size(), kNoTask);  // by send
    std::vector<TaskId> sender(graph_.tasks.size(), kNoTask);  // by receive
    graph_.for_each_task_edge([&](const TaskEdge& edge) {
      const bool carried = edge.kind == EdgeKind::Data && is_send(graph_.tasks[edge.after].kind);
      if (carried) makers[edge.after] = edge.before;
      if (edge.kind == EdgeKind::Message) sender[edge.after] = edge.before;
    });
    graph_.for_each_task_edge([&](const TaskEdge& edge) {
      const bool brought =
          edge.kind == EdgeKind::Data && is_receive(graph_.tasks[edge.before].kind);
      if (!brought || sender[edge.before] == kNoTask) return;
      const TaskId maker = makers[sender[edge.before]];
      if (maker != kNoTask) add(EdgeClass::Message, node_of_[maker], node_of_[edge.after]);
    });
  }

  void collect_witness() {
    const auto add_red = [&](TaskId from, TaskId to, std::string_view label) {
      const DrawnEdge ends{node_of_[from], node_of_[to]};
      if (ends.first != kNoTask && ends.second != kNoTask) witness_.emplace(ends, label);
    };
    for (std::size_t i = 0; i < marks_.cycle.size(); ++i) {
      const WaitEdge& wait = marks_.cycle[i];
      add_red(wait.waited, wait.task, word_for(wait.kind));
      // One member of a group waits, and another is waited for.
      const TaskId next = marks_.cycle[(i + 1) % marks_.cycle.size()].task;
      if (next != wait.waited) add_red(next, wait.waited, "together");
    }
    for (const auto& [from, to] : marks_.pairs) add_red(from, to, "meets");
    for (const ToldEdge& edge : marks_.told) add_red(edge.from, edge.to, edge.words);
  }

  // A red edge is drawn already, and an issue says no more than the data beside it.
  void draw_class(EdgeClass edge_class) {
    auto& edges = edges_[as_index(edge_class)];
    for (const DrawnEdge& edge :
         transitively_reduced(std::move(edges), static_cast<std::uint32_t>(tasks_.size()))) {
      if (edge_class == EdgeClass::Data) data_.insert(edge);
      if (edge_class == EdgeClass::Issue && data_.contains(edge)) continue;
      // A rendezvous in red is the message, seen from its other end.
      const bool told = witness_.contains({edge.second, edge.first});
      if (edge_class == EdgeClass::Message && told) continue;
      const bool waits = edge_class != EdgeClass::Collective;
      if (witness_.contains(edge)) {
        if (waits) said_.insert(edge);
        continue;
      }
      out_.lines.push_back(
          {.from = edge.first, .to = edge.second, .of = edge_class, .waits = waits, .words = ""});
    }
  }

  const TaskGraph& graph_;
  const Lowered& lowered_;
  const Marks& marks_;
  const DotOptions& options_;
  std::set<TaskId> red_;
  std::vector<TaskId> node_of_;  // by task; kNoTask: not drawn
  std::vector<TaskId> tasks_;    // by node
  std::vector<std::string> names_;
  std::array<std::vector<DrawnEdge>, kClasses> edges_;
  std::set<DrawnEdge> said_;                  // edges of the graph that are red
  std::set<DrawnEdge> data_;                  // drawn
  std::map<DrawnEdge, std::string> witness_;  // with what each is
  Drawing out_;
};

Error too_many(std::size_t nodes, const DotOptions& options) {
  return {.kind = ErrorKind::Limit,
          .message = fmt::format("the picture would have {} nodes, more than the {} that a reader "
                                 "could follow",
                                 nodes, options.max_nodes),
          .help =
              "--ranks 0,1 draws some ranks, --window 0:40 the first steps of each, "
              "--collapse leaves transfers out; --max-nodes raises the limit"};
}

}  // namespace

Result<std::string> to_dot(const TaskGraph& graph, const Lowered& lowered, const Marks& marks,
                           const std::string& title, const DotOptions& options) {
  Choice choice(graph, lowered, marks, options);
  // The edges of a picture that is refused need not be found.
  if (choice.nodes() > options.max_nodes) return too_many(choice.nodes(), options);
  return dot_text(choice.draw(title), options.columns);
}

Result<std::string> to_dot(const Drawing& drawing, const DotOptions& options) {
  if (drawing.nodes.size() > options.max_nodes) return too_many(drawing.nodes.size(), options);
  return dot_text(drawing, options.columns);
}

}  // namespace capo

#include "core/base/index.h"
#include "core/draw/draw.h"

#include "core/base/assert.h"
#include "core/draw/reduction.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace capo {

namespace {

// The ways to draw an edge. Kinds that mean the same to a reader share a class.
enum class EdgeClass : std::uint8_t { Order, Data, Message, Issue, Wait, Event, Collective };
constexpr std::size_t kClasses = 7;

struct Style {
  std::string_view name;
  std::string_view attributes;
};

// Edges differ in style as well as in colour, for grey print and for those who see colours
// otherwise.
constexpr std::array<Style, kClasses> kStyles{{
    {"order", "color=\"#b0b0b0\", weight=10, arrowsize=0.5"},
    {"data", "color=\"#1f4e8c\", style=solid"},
    {"message", "color=\"#0b6e4f\", style=bold, penwidth=2"},
    {"issue", "color=\"#7f7f7f\", style=dotted, constraint=false"},
    {"wait", "color=\"#8c6d1f\", style=dotted, penwidth=1.5"},
    {"event", "color=\"#6a3d9a\", style=dashed"},
    {"collective", "color=\"#0b6e4f\", style=\"dashed,bold\", dir=none, constraint=false"},
}};

constexpr std::string_view kRed = "color=\"#d00000\", penwidth=2.5, fontcolor=\"#d00000\"";

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
  switch (kind) {
    case EdgeKind::Stream:
    case EdgeKind::Queue:
      return "order";
    case EdgeKind::Rendezvous:
      return "rendezvous";
    default:
      return kStyles[as_index(class_of(kind))].name;
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

class DotText {
 public:
  DotText(const TaskGraph& graph, const Lowered& lowered, const Marks& marks,
          const DotOptions& options)
      : graph_(graph),
        lowered_(lowered),
        marks_(marks),
        options_(options),
        red_(marks.tasks.begin(), marks.tasks.end()) {
    choose_nodes();
  }

  [[nodiscard]] std::size_t nodes() const { return tasks_.size(); }

  std::string draw(const std::string& title) {
    out_ += "digraph capo {\n";
    out_ += "  graph [rankdir=LR, newrank=true, compound=true, fontname=\"Helvetica\", ";
    out_ += fmt::format("labelloc=b, label=\"{}\"];\n", escaped(title));
    out_ +=
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n";
    out_ += "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    draw_ranks();
    collect_edges();
    collect_witness();
    for (std::size_t c = 0; c < kClasses; ++c) draw_class(static_cast<EdgeClass>(c));
    for (const auto& [ends, label] : witness_) draw_witness(ends, label);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Step& step_of(const Task& task) const {
    return capo::step_of(lowered_, task);
  }

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

  void draw_ranks() {
    std::int32_t open = -1;
    for (std::size_t n = 0; n < tasks_.size(); ++n) {
      const Task& task = graph_.tasks[tasks_[n]];
      if (task.rank != open) {
        if (open >= 0) out_ += "  }\n";
        open = task.rank;
        out_ += fmt::format("  subgraph cluster_rank{} {{\n", open);
        out_ += fmt::format(
            "    label=\"rank {}\"; labelloc=t; labeljust=l; style=filled; color=\"#f4f4f4\";\n",
            open);
      }
      const Step& step = step_of(task);
      const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
      const std::string tooltip =
          fmt::format("rank {}, stage {}, step {}", task.rank, task.stage, task.step);
      out_ += fmt::format("    {} [label=\"{}\", group=\"s{}\", tooltip=\"{}\"{}{}];\n", names_[n],
                          escaped(to_token(action, Naming::Named)), task.stream, tooltip,
                          is_transfer(step.kind) ? ", shape=ellipse, fontsize=10" : "",
                          red_.contains(tasks_[n]) ? fmt::format(", {}", kRed) : "");
    }
    if (open >= 0) out_ += "  }\n";
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
  }

  // A red edge is drawn already, and an issue says no more than the data beside it.
  void draw_class(EdgeClass edge_class) {
    auto& edges = edges_[as_index(edge_class)];
    const Style& style = kStyles[as_index(edge_class)];
    for (const DrawnEdge& edge :
         transitively_reduced(std::move(edges), static_cast<std::uint32_t>(tasks_.size()))) {
      if (edge_class == EdgeClass::Data) data_.insert(edge);
      const bool said = edge_class == EdgeClass::Issue && data_.contains(edge);
      if (said || witness_.contains(edge)) continue;
      out_ += fmt::format("  {} -> {} [class={}, {}];\n", names_[edge.first], names_[edge.second],
                          style.name, style.attributes);
    }
  }

  void draw_witness(const DrawnEdge& ends, std::string_view label) {
    out_ += fmt::format("  {} -> {} [class=witness, {}, constraint=false, label=\"{}\"];\n",
                        names_[ends.first], names_[ends.second], kRed, label);
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
  std::set<DrawnEdge> data_;                       // drawn
  std::map<DrawnEdge, std::string_view> witness_;  // with what each is
  std::string out_;
};

}  // namespace

Result<std::string> to_dot(const TaskGraph& graph, const Lowered& lowered, const Marks& marks,
                           const std::string& title, const DotOptions& options) {
  DotText picture(graph, lowered, marks, options);
  if (picture.nodes() > options.max_nodes) {
    return Error{.kind = ErrorKind::Limit,
                 .message = fmt::format("the picture would have {} nodes, more than the {} that "
                                        "Graphviz lays out in reasonable time",
                                        picture.nodes(), options.max_nodes),
                 .help =
                     "--ranks 0,1 draws some ranks, --window 0:40 the first steps of each, "
                     "--collapse leaves transfers out; --max-nodes raises the limit"};
  }
  return picture.draw(title);
}

}  // namespace capo

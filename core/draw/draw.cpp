#include "core/draw/draw.h"

#include "core/base/plural.h"
#include "core/draw/drawing.h"
#include "core/draw/picture_of.h"

#include "core/report/report.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/rule.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"
#include "core/text/printable.h"
#include "core/text/stated_transfers.h"
#include "core/timeline/svg_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

bool holds(const Wiring& wiring, Span place) {
  const auto& ranks = wiring.schedule().ranks;
  return std::any_of(ranks.begin(), ranks.end(), [&](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [&](const Entry& entry) { return entry.span() == place; });
  });
}

// The orders to draw: those that are replayed, since they are what runs, unless the finding has a
// place that is captured alone and none that is replayed alone.
const Wiring& wiring_of(const Context& context, const Diagnostic* finding) {
  const Wiring& captured = *context.wirings().front();
  const Wiring& replayed = *context.wirings().back();
  if (&captured == &replayed || finding == nullptr) return replayed;
  const auto alone_in = [&](const Wiring& one, const Wiring& other) {
    return std::any_of(finding->labels.begin(), finding->labels.end(), [&](const Label& label) {
      return holds(one, label.span) && !holds(other, label.span);
    });
  };
  const bool of_capture = alone_in(captured, replayed) && !alone_in(replayed, captured);
  return of_capture ? captured : replayed;
}

std::string title_of(const CheckResult& result, const Context& context, const Wiring& wiring) {
  std::string title = fmt::format("capo: {}", name_of(result.verdict));
  std::string_view last;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.rule == last) continue;
    last = finding.rule;
    title += fmt::format(", {} {}", finding.rule, find_rule(finding.rule)->name);
  }
  title += fmt::format("\n{}, {} microbatches", name_of(wiring.schedule().topology),
                       result.microbatches);
  if (replays_otherwise(context.input().schedule)) {
    title += wiring.replay() ? ", as replayed" : ", as captured";
  }
  if (wiring.map().wired() && wiring.schedule().ranks.size() > 1) {
    const Environment& environment = wiring.environment();
    title += fmt::format(", communicators {}, transfers {}", name_of(environment.layout()),
                         transfers_text(environment));
    if (environment.p2p) title += fmt::format(", Megatron's calls ({})", name_of(*environment.p2p));
  }
  return title;
}

std::vector<TaskId> tasks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                             const WitnessEntry& entry) {
  const OrderView& order = context.order_of(wiring, entry.rank);
  const Lowered& lowered = wiring.lowered_for(graph);
  const auto rank = RankId(entry.rank).index();
  std::vector<TaskId> tasks;
  for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
    const Step& step = step_of(lowered, graph.tasks[id]);
    if (words::index_of(order, step.entry) != entry.index) continue;
    const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
    if (action_name(action) == entry.action) tasks.push_back(id);
  }
  return tasks;
}

// Two waits that make a cycle: the reader waits for what it reads, which its rank lists later and
// which therefore waits for the reader.
std::vector<WaitEdge> against_the_order(TaskId reader, TaskId made, const TaskGraph& graph) {
  std::vector<WaitEdge> cycle{{.task = reader, .kind = EdgeKind::Data, .waited = made}};
  const bool together = graph.start(reader) == graph.start(made);
  if (!together) cycle.push_back({.task = made, .kind = EdgeKind::Stream, .waited = reader});
  return cycle;
}

// Finds the words of a finding about a task's entry; the rule's name stands in if it has none.
std::string words_at(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                     const Diagnostic& finding, TaskId task) {
  const OrderView& order = context.order_of(wiring, graph.tasks[task].rank);
  const Step& step = step_of(wiring.lowered_for(graph), graph.tasks[task]);
  const Span place = order.entries[step.entry].span();
  const auto label = std::find_if(finding.labels.begin(), finding.labels.end(),
                                  [&](const Label& each) { return each.span == place; });
  const bool told = label != finding.labels.end() && !label->text.empty();
  return told ? printable(label->text, 60) : std::string(find_rule(finding.rule)->name);
}

// From each task of a witness to the next, with what happens to the latter: who wrote a buffer, who
// overwrites it, who reads it then.
void tell(const Context& context, const Wiring& wiring, const TaskGraph& graph,
          const Diagnostic& finding, Marks& marks) {
  for (std::size_t at = 1; at < marks.tasks.size(); ++at) {
    const TaskId to = marks.tasks[at];
    marks.told.push_back({.from = marks.tasks[at - 1],
                          .to = to,
                          .words = words_at(context, wiring, graph, finding, to)});
  }
}

// The finding's witness in a graph of the wiring: a circle of waits with all that lies between, two
// ends that should not meet, or tasks alone. A witness names entries of orders, a picture has
// tasks. An entry may be several, if its layers are taken apart, and a transfer that was added is
// found by the entry that it was added for.
Marks marks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
               const Diagnostic& finding) {
  Marks marks;
  for (const WitnessEntry& entry : finding.witness.tasks) {
    const auto tasks = tasks_of(context, wiring, graph, entry);
    marks.tasks.insert(marks.tasks.end(), tasks.begin(), tasks.end());
  }
  const bool two = marks.tasks.size() == 2;
  const bool swapped = finding.witness.kind == WitnessKind::Mismatch && two;
  if (swapped) marks.pairs.emplace_back(marks.tasks.front(), marks.tasks.back());
  switch (swapped ? DrawnCycle::None : find_rule(finding.rule)->draws) {
    case DrawnCycle::None:
      if (!swapped) tell(context, wiring, graph, finding, marks);
      break;
    case DrawnCycle::AgainstTheOrder:
      if (two) marks.cycle = against_the_order(marks.tasks.front(), marks.tasks.back(), graph);
      break;
    case DrawnCycle::OfComputations:
      marks.cycle = shortest_cycle(graph, wiring.direct_execution());
      break;
    case DrawnCycle::OfTransfers:
      marks.cycle = shortest_cycle(graph, wiring.execution());
      break;
  }
  for (const WaitEdge& wait : marks.cycle) {
    marks.tasks.insert(marks.tasks.end(), {wait.task, wait.waited});
  }
  return marks;
}

// --- orders with errors of their own
// ---------------------------------------------------------------

// A name says rank and index, since there is no telling which task an entry is.
DrawnNode node_of(const Timeline& timeline, const TimedTask& task) {
  const std::int32_t rank = timeline.lanes[task.lane].rank;
  return {.name = fmt::format("r{}_i{}_{}", rank, task.begin, task.member),
          .label = timeline.label(task.id),
          .tooltip = fmt::format("rank {}, index {}", rank, task.begin),
          .rank = rank,
          .kind = task.kind};
}

// The node that stands at a spot; kNoPosition if none does.
std::uint32_t node_at(const Timeline& timeline, const Spot& spot) {
  const auto& tasks = timeline.tasks;
  const auto task = std::find_if(tasks.begin(), tasks.end(), [&](const TimedTask& each) {
    return each.lane == spot.lane && each.begin == spot.begin;
  });
  return task == tasks.end() ? kNoPosition : static_cast<std::uint32_t>(task - tasks.begin());
}

void mark(const Alarm& alarm, const Timeline& timeline, Drawing& drawing) {
  for (const Spot& spot : alarm.places) {
    const std::uint32_t node = node_at(timeline, spot);
    if (node == kNoPosition) continue;
    drawing.nodes[node].red = true;
    drawing.nodes[node].note = alarm.rule;
  }
  for (const AlarmArrow& arrow : alarm.arrows) {
    const std::uint32_t from = node_at(timeline, arrow.from);
    const std::uint32_t to = node_at(timeline, arrow.to);
    if (from == kNoPosition || to == kNoPosition) continue;
    drawing.lines.push_back(
        {.from = from, .to = to, .of = EdgeClass::Witness, .words = printable(arrow.words, 60)});
  }
}

// The entries in their order, which is all that is known of them, with each finding at its place
// and below.
Drawing drawing_of_entries(const Input& input, const Report& report) {
  const Timeline timeline = listed(input);
  Drawing drawing{.title = fmt::format("capo: {}", name_of(report.verdict))};
  for (const TimedTask& task : timeline.tasks) {
    const auto at = static_cast<std::uint32_t>(drawing.nodes.size());
    drawing.nodes.push_back(node_of(timeline, task));
    const bool first = at == 0 || drawing.nodes[at - 1].rank != drawing.nodes[at].rank;
    if (!first) drawing.lines.push_back({.from = at - 1, .to = at, .words = ""});
  }
  for (const Alarm& alarm : alarms_of(input, report, timeline)) {
    mark(alarm, timeline, drawing);
    for (const std::string& line : wrapped(alarm.words, 100)) drawing.title += "\n" + line;
  }
  return drawing;
}

}  // namespace

Result<std::string> draw(const Input& input, const CheckOptions& options, const DotOptions& dot) {
  const Context context(input, options);
  const CheckResult result = check(context);
  if (!result.orders_clean || context.wirings().empty()) {
    return to_dot(drawing_of_entries(input, report_of(input, result, {})), dot);
  }
  const Diagnostic* finding = result.diagnostics.foremost();
  const Wiring& wiring = wiring_of(context, finding);
  const TaskGraph& graph = wiring.judged();
  const Marks marks = finding == nullptr ? Marks{} : marks_of(context, wiring, graph, *finding);
  return to_dot(graph, wiring.lowered_for(graph), marks, title_of(result, context, wiring), dot);
}

}  // namespace capo

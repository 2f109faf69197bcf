// The ranks of a group perform the same collectives in the same order, whatever their streams do.
//
//   group 0,1:  rank 0: dispatch-F1.0 combine-B1.0      rank 0 waits in the one for rank 1,
//               rank 1: combine-B1.0 dispatch-F1.0      which waits in the other for rank 0
//
// Groups are declared in model.json. Two findings: members whose sequences differ, and a member on
// which two collectives run on different streams with nothing between them, so that either may be
// first. The first of each group is reported. Tested by collective_order_test.cpp and
// tests/corpus/rules/T10/.

#include "core/diag/diagnostics.h"
#include "core/graph/collective_races.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/judged_before.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

void report_order(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                  const TransferFault& fault, Diagnostics& out) {
  if (!out.wants("T10")) return;
  const std::string& group = wiring.groups()[fault.group].name;
  const std::string task = words::task_placed(context, wiring, graph, fault.task);
  Diagnostic finding{.rule = "T10", .family = Family::Transfers};
  finding.labels = {{words::task_span(context, wiring, graph, fault.task), ""}};
  if (fault.other == kNoTask) {
    finding.message = fmt::format(
        "{} has no partner: another member of group {} performs fewer collectives", task, group);
    finding.witness = witness_of(context, wiring, graph, WitnessKind::Mismatch, {fault.task});
  } else {
    const std::string other = words::task_name(context, wiring, graph, fault.other);
    finding.message = fmt::format(
        "{} meets {}: the members of group {} do not perform the same collectives in "
        "the same order",
        task, other, group);
    finding.labels.push_back(
        {words::task_span(context, wiring, graph, fault.other), "performed at the same point"});
    finding.witness =
        witness_of(context, wiring, graph, WitnessKind::Mismatch, {fault.other, fault.task});
  }
  finding.help.text = "give all members of the group the same sequence of collectives";
  out.keep(std::move(finding));
}

void report_race(const Context& context, const Wiring& wiring, const CollectiveRace& race,
                 Diagnostics& out) {
  if (!out.wants("T10")) return;
  const TaskGraph& graph = wiring.transfers().graph;
  const Task& task = graph.tasks[race.earlier];
  const std::string earlier = words::task_name(context, wiring, graph, race.earlier, task.rank);
  const std::string later = words::task_name(context, wiring, graph, race.later, task.rank);
  out.keep({.rule = "T10",
            .family = Family::Transfers,
            .message = fmt::format(
                "nothing orders {} and {}{}, which run on the streams {} and {}: "
                "the members of group {} may perform them either way round",
                earlier, later, words::on_order(context, context.order_of(wiring, task.rank)),
                graph.streams[task.stream].name, graph.streams[graph.tasks[race.later].stream].name,
                wiring.groups()[race.group].name),
            .labels = {{words::task_span(context, wiring, graph, race.later), "may start first"},
                       {words::task_span(context, wiring, graph, race.earlier), "or this"}},
            .help = {.text = "give them one stream, or an event from the one to the other"},
            .witness = witness_of(context, wiring, graph, WitnessKind::Mismatch,
                                  {race.earlier, race.later})});
}

}  // namespace

void collective_order(const Context& context, Diagnostics& out) {
  for (const auto& wiring : context.wirings()) {
    if (wiring->groups().empty()) continue;
    const WiredTransfers& wired = wiring->transfers();
    const auto concerns = [&](std::uint32_t group) {
      return !judged_before(context, *wiring, wiring->groups()[group].members);
    };
    for (const TransferFault& fault : wired.faults) {
      const bool of_order = fault.kind == TransferFault::Kind::CollectiveOrder;
      if (of_order && concerns(fault.group))
        report_order(context, *wiring, wired.graph, fault, out);
    }
    if (!wiring->execution().finishes()) continue;
    for (const CollectiveRace& race : collective_races(wired.graph, wiring->groups())) {
      if (concerns(race.group)) report_race(context, *wiring, race, out);
    }
  }
}

}  // namespace capo::rules

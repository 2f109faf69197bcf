// The rules about all transfers and collectives together: that they finish, and meet.
//
//   rank 0: send-F1.1 recv-B1.0         under rendezvous each waits for the other to receive: T09
//   rank 1: send-B1.0 recv-F1.1
//
// Transfers without a partner and the like are for transfers.cpp. Tested by deadlock_test.cpp and
// tests/corpus/rules/T09, T10 and T14.

#include "core/base/assert.h"
#include "core/graph/meetings.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

bool all_have_their_ends(const std::vector<TransferFault>& faults) {
  return std::all_of(faults.begin(), faults.end(), [](const TransferFault& fault) {
    return fault.kind == TransferFault::Kind::Mismatch;
  });
}

// The environments nearest to this one under which the transfers finish, in words.
std::vector<std::string> ways_out(const Context& context, const Wiring& wiring) {
  std::vector<std::string> ways;
  const Environment& given = wiring.environment();
  for (const Communicators layout : {Communicators::PerPair, Communicators::PerEdge}) {
    const bool ordered = given.layout() <= Communicators::PerEdge;
    if (ordered && layout <= given.layout()) continue;
    Environment other = given;
    other.communicators = layout;
    if (!wiring.finishes_under(other)) continue;
    ways.push_back(layout == Communicators::PerPair
                       ? "with one communicator for each pair of ranks it finishes"
                       : "with one communicator for each direction between two ranks it finishes");
    break;
  }
  if (!given.buffered()) {
    Environment other = given;
    other.transfers = TransferMode::Buffered;
    if (wiring.finishes_under(other)) ways.push_back("if sends were buffered it would finish");
  } else if (given.channel_bytes) {
    Environment other = given;
    other.channel_bytes.reset();
    if (wiring.finishes_under(other)) ways.push_back("if channels held more it would finish");
  }
  if (wiring.by_megatron() && given.p2p == MegatronCalls::Flush) {
    Environment other = given;
    other.p2p = MegatronCalls::Overlap;
    const Wiring called(wiring.schedule(), other, wiring.groups(), context.microbatches(), false);
    CAPO_ASSERT(called.megatron().faults.empty(), "what flushed calls route, those without do");
    if (called.execution().finishes()) ways.emplace_back("with --p2p overlap it finishes");
  }
  return ways;
}

// A finding about a circle stands at its first transfer or collective, rank by rank, or at its
// first task if it has none.
TaskId first_of(const TaskGraph& graph, const std::vector<WaitEdge>& cycle) {
  const auto place = [&](TaskId task) {
    return std::pair(is_compute(graph.tasks[task].kind), task);
  };
  return std::min_element(
             cycle.begin(), cycle.end(),
             [&](const WaitEdge& a, const WaitEdge& b) { return place(a.task) < place(b.task); })
      ->task;
}

// The transfers finish: no rank waits, around some corner, for itself.
//
//   rank 0: send-F1.1 recv-B1.0         under rendezvous each waits for the other to receive
//   rank 1: send-B1.0 recv-F1.1
//
// The verdict is relative to the communicators and to whether a send waits for its receive; if
// another layout, buffered sends, or another of Megatron's ways of calling would finish, a note
// says which. The witness is the shortest cycle of waits, and the finding stands at its first
// transfer: what comes before that and is never over either may only wait for those in the cycle.
// No time-out is involved. Transfers without a partner and the like have rules of their own, and
// are then the reason that a schedule waits.
void deadlock(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_in_doubt() || wiring->execution().finishes()) continue;
    const WiredTransfers& wired = wiring->transfers();
    if (!all_have_their_ends(wired.faults)) continue;
    const auto cycle = shortest_cycle(wired.graph, wiring->execution());
    const std::vector<std::int32_t> ranks = ranks_of(wired.graph, cycle);
    if (cycle.empty() || context.judged_before(*wiring, ranks)) continue;
    const TaskId first = first_of(wired.graph, cycle);
    const auto place = [&] { return words::task_span(context, *wiring, wired.graph, first); };
    if (!out.found_at(place)) continue;
    Diagnostic finding;
    // One rank alone waits for nothing that it lists later but a send whose wait it has written
    // before it: D02, D03 and D06 have seen to the rest.
    const bool alone = ranks.size() == 1;
    const std::string_view when = wiring->replay() ? " when replayed" : "";
    finding.message = alone
                          ? fmt::format("deadlock{}: rank {} waits for a send that it issues later",
                                        when, ranks.front())
                          : fmt::format("deadlock{}: {} wait for each other for ever", when,
                                        words::list_of(ranks));
    finding.witness.kind = WitnessKind::WaitCycle;
    words::describe_waits(context, *wiring, wired.graph, cycle, first, finding);
    for (std::string& way : ways_out(context, *wiring)) {
      finding.notes.push_back({.text = std::move(way), .span = std::nullopt});
    }
    finding.help.text =
        alone ? "move the wait behind its send"
        : wiring->by_megatron()
            ? "Megatron makes these calls itself: choose other communicators or other calls"
            : "let the two ends of each transfer come at the same point of both orders";
    out.report(std::move(finding));
  }
}

constexpr const char* kMadeAtFirstUse =
    "communicators are made at their first use (--comm-init lazy), by all their members at once";

void report_absence(const Context& context, const Wiring& wiring, FirstUses::Absence absence,
                    Findings& out) {
  if (!out.found()) return;
  const TaskGraph& graph = wiring.first_uses().graph;
  out.report(
      {.message = fmt::format(
           "{} waits for ever: it is the first use of a communicator that rank {} never uses",
           words::task_placed(context, wiring, graph, absence.task), absence.member),
       .labels = {{words::task_span(context, wiring, graph, absence.task), ""}},
       .notes = {{.text = kMadeAtFirstUse, .span = std::nullopt}},
       .help = {.text = "make the communicators before the step (--comm-init eager)"},
       .witness =
           words::task_witness(context, wiring, graph, WitnessKind::Entries, {absence.task})});
}

void report_circle_of_uses(const Context& context, const Wiring& wiring, Findings& out) {
  const TaskGraph& graph = wiring.first_uses().graph;
  const auto cycle = shortest_cycle(graph, wiring.making());
  if (cycle.empty()) return;
  const std::vector<std::int32_t> ranks = ranks_of(graph, cycle);
  if (context.judged_before(wiring, ranks)) return;
  const TaskId first = first_of(graph, cycle);
  if (!out.found_at([&] { return words::task_span(context, wiring, graph, first); })) return;
  Diagnostic finding;
  finding.message =
      fmt::format("{} wait for each other for ever to make communicators", words::list_of(ranks));
  finding.witness.kind = WitnessKind::WaitCycle;
  words::describe_waits(context, wiring, graph, cycle, first, finding);
  finding.notes.push_back({.text = kMadeAtFirstUse, .span = std::nullopt});
  if (wiring.execution().finishes()) {
    finding.notes.push_back(
        {.text = "with communicators that are there already it finishes", .span = std::nullopt});
  }
  finding.help.text = "make the communicators before the step, in one order on all ranks";
  out.report(std::move(finding));
}

// Communicators that are made at their first use are used first in orders that fit.
//
//   rank 0: recv-B1.0 send-F1.0     with a communicator for each direction rank 0 makes the one
//   rank 1: recv-F1.0 send-B1.0     from rank 1 first, which makes the other one: neither comes
//
// All members of a communicator make it together, and a rank's host issues nothing before that, so
// a circle of such waits hangs whatever the transfers themselves would do. So does a communicator
// of all ranks that one of them never uses. It is found only where --comm-init lazy is declared.
void first_use(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->environment().made_lazily() || !wiring->transfers_in_doubt()) continue;
    if (!all_have_their_ends(wiring->transfers().faults) || wiring->making().finishes()) continue;
    const FirstUses& uses = wiring->first_uses();
    for (const FirstUses::Absence& absence : uses.absences) {
      if (!context.judged_before(*wiring, {uses.graph.tasks[absence.task].rank, absence.member}))
        report_absence(context, *wiring, absence, out);
    }
    report_circle_of_uses(context, *wiring, out);
  }
}

void report_order(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                  const TransferFault& fault, Findings& out) {
  if (!out.found()) return;
  const std::string& group = wiring.groups()[fault.group].name;
  const std::string task = words::task_placed(context, wiring, graph, fault.task);
  Diagnostic finding;
  finding.labels = {{words::task_span(context, wiring, graph, fault.task), ""}};
  if (fault.other == kNoTask) {
    finding.message = fmt::format(
        "{} has no partner: another member of group {} performs fewer collectives", task, group);
    finding.witness =
        words::task_witness(context, wiring, graph, WitnessKind::Mismatch, {fault.task});
  } else {
    const std::string other = words::task_name(context, wiring, graph, fault.other);
    finding.message = fmt::format(
        "{} meets {}: the members of group {} do not perform the same collectives in "
        "the same order",
        task, other, group);
    finding.labels.push_back(
        {words::task_span(context, wiring, graph, fault.other), "performed at the same point"});
    finding.witness = words::task_witness(context, wiring, graph, WitnessKind::Mismatch,
                                          {fault.other, fault.task});
  }
  finding.help.text = "give all members of the group the same sequence of collectives";
  out.report(std::move(finding));
}

void report_race(const Context& context, const Wiring& wiring, const CollectiveRace& race,
                 Findings& out) {
  if (!out.found()) return;
  const TaskGraph& graph = wiring.transfers().graph;
  const Task& task = graph.tasks[race.earlier];
  const std::string earlier = words::task_name(context, wiring, graph, race.earlier, task.rank);
  const std::string later = words::task_name(context, wiring, graph, race.later, task.rank);
  out.report(
      {.message = fmt::format(
           "nothing orders {} and {}{}, which run on the streams {} and {}: "
           "the members of group {} may perform them either way round",
           earlier, later, words::on_order(context, context.order_of(wiring, task.rank)),
           graph.streams[task.stream].name, graph.streams[graph.tasks[race.later].stream].name,
           wiring.groups()[race.group].name),
       .labels = {{words::task_span(context, wiring, graph, race.later), "may start first"},
                  {words::task_span(context, wiring, graph, race.earlier), "or this"}},
       .help = {.text = "give them one stream, or an event from the one to the other"},
       .witness = words::task_witness(context, wiring, graph, WitnessKind::Mismatch,
                                      {race.earlier, race.later})});
}

// The ranks of a group perform the same collectives in the same order, whatever their streams do.
//
//   group 0,1:  rank 0: dispatch-F1.0 combine-B1.0      rank 0 waits in the one for rank 1,
//               rank 1: combine-B1.0 dispatch-F1.0      which waits in the other for rank 0
//
// Groups are declared in model.json. A finding is either members whose sequences differ, or a
// member that runs two collectives on different streams with nothing between them, so that either
// may be first. The first finding of each group is reported.
void collective_order(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (wiring->groups().empty()) continue;
    const WiredTransfers& wired = wiring->transfers();
    const auto concerns = [&](std::uint32_t group) {
      return !context.judged_before(*wiring, wiring->groups()[group].members);
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

constexpr Rule kDeadlockRules[] = {
    {.id = "T09",
     .name = "deadlock",
     .title = "ranks that wait for each other for ever",
     .family = Family::Transfers,
     .pass = Pass::Transfers,
     .check = deadlock,
     .draws = DrawnCycle::OfTransfers},
    {"T10", "collective-order", "collectives that do not meet", Family::Transfers, Pass::Transfers,
     collective_order},
    {"T14", "first-use", "communicators that are never made", Family::Transfers, Pass::Transfers,
     first_use},
};

}  // namespace

std::span<const Rule> deadlock_rules() {
  return kDeadlockRules;
}

}  // namespace capo::rules

// The transfers finish: no rank waits, around some corner, for itself.
//
//   rank 0: send-F1.1 recv-B1.0         under rendezvous each waits for the other to receive
//   rank 1: send-B1.0 recv-F1.1
//
// Relative to the communicators and to whether a send waits for its receive; where another layout,
// buffered sends, or another of Megatron's ways of calling would finish, a note says which. The
// finding stands at the first transfer that is never over, the witness is the shortest cycle of
// waits. Nothing here comes of a time-out. Transfers without a
// partner and the like have rules of their own, and are what a schedule waits for then. Tested by
// deadlock_test.cpp and tests/corpus/rules/T09/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/judged_before.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace capo::rules {

namespace {

// In words, the environments nearest to this one under which the transfers finish.
std::vector<std::string> ways_out(const Context& context, const Wiring& wiring) {
  std::vector<std::string> ways;
  const Environment& given = wiring.environment();
  for (const Communicators layout : {Communicators::PerPair, Communicators::PerEdge}) {
    if (layout <= given.layout()) continue;
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

}  // namespace

void deadlock(const Context& context, Diagnostics& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_matter() || wiring->execution().finishes()) continue;
    const WiredTransfers& wired = wiring->transfers();
    const bool explained = std::any_of(
        wired.faults.begin(), wired.faults.end(),
        [](const TransferFault& fault) { return fault.kind != TransferFault::Kind::Mismatch; });
    if (explained) continue;
    const auto cycle = shortest_cycle(wired.graph, wiring->execution());
    const std::vector<std::int32_t> ranks = words::ranks_of(wired.graph, cycle);
    if (cycle.empty() || judged_before(context, *wiring, ranks)) continue;
    const TaskId first = words::first_stuck(wired.graph, wiring->execution());
    const auto place = [&] { return words::task_span(context, *wiring, wired.graph, first); };
    if (!out.wants_at("T09", place)) continue;
    Diagnostic finding{.rule = "T09", .family = Family::Transfers};
    // One rank alone waits for nothing that it lists later: D02, D03 and D06 have seen to that.
    CAPO_ASSERT(ranks.size() > 1, "a circle of waits goes around several ranks");
    finding.message = fmt::format("deadlock{}: {} wait for each other for ever",
                                  wiring->replay() ? " when replayed" : "", words::list_of(ranks));
    finding.witness.kind = WitnessKind::WaitCycle;
    words::describe_waits(context, *wiring, wired.graph, cycle, first, finding);
    for (std::string& way : ways_out(context, *wiring)) {
      finding.notes.push_back({.text = std::move(way), .span = std::nullopt});
    }
    finding.help.text =
        wiring->by_megatron()
            ? "Megatron makes these calls itself: choose other communicators or other calls"
            : "let the two ends of each transfer come at the same point of both orders";
    out.keep(std::move(finding));
  }
}

}  // namespace capo::rules

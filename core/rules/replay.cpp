// The rule about replay orders that are not the order of capture.
//
// Tested by replay_test.cpp and tests/corpus/rules/Y01.

#include "core/base/index.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/hazard_words.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace capo::rules {

namespace {

// The first position at which capture and replay differ; nullopt if they do not.
std::optional<std::size_t> divergence(const RankOrder& rank) {
  if (!rank.replay) return std::nullopt;
  const auto [captured, replayed] =
      std::mismatch(rank.order.begin(), rank.order.end(), rank.replay->begin(), rank.replay->end(),
                    [](const Entry& a, const Entry& b) { return a.action() == b.action(); });
  if (captured == rank.order.end() || replayed == rank.replay->end()) return std::nullopt;
  return as_index(captured - rank.order.begin());
}

Diagnostic divergence_finding(const Context& context, std::int32_t rank, std::size_t at,
                              Severity severity) {
  const OrderView& captured = context.order_of(*context.wirings().front(), rank);
  const OrderView& replayed = context.order_of(*context.wirings().back(), rank);
  Diagnostic finding{.severity = severity};
  const std::string of =
      context.schedule().ranks.size() > 1 ? fmt::format(" of rank {}", rank) : "";
  finding.message = fmt::format(
      "the replay{} leaves the order of capture at index {}: {} comes "
      "where {} was captured",
      of, words::index_of(replayed, at), words::quoted(context, replayed.entries[at]),
      words::quoted(context, captured.entries[at]));
  finding.labels.push_back({replayed.entries[at].span(), "replayed here"});
  finding.labels.push_back({captured.entries[at].span(), "captured here"});
  finding.witness = words::entries(context, replayed, {at});
  return finding;
}

// A replay in another order than the capture's finds all memory as its readers expect it.
//
//   captured  1 -1 -1.5 1 -1 -1.5      the second forward was given the input that the first freed
//   replayed  1 1 -1 -1.5 -1 -1.5      now it overwrites it before the first backward
//
// A difference is no error by itself: entries that changed places may share no memory. The finding
// is a warning then, and says so. If memory is read after it was taken over, and would not be in
// the order of capture, it is an error, and the witness is the first read that is wrong for
// certain. Entries that only one of the orders has are for the rules of shape.
void replay_order(const Context& context, Findings& out) {
  const PlanView& view = context.plan_view();
  const auto& ranks = context.schedule().ranks;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto at = divergence(ranks[r]);
    if (!at) continue;
    const auto rank = static_cast<std::int32_t>(r);
    std::vector<const JudgedHazard*> caused;
    for (const JudgedHazard& hazard : view.hazards()) {
      if (hazard.by_replay && hazard.hazard.reader.rank == rank) caused.push_back(&hazard);
    }
    const bool error = std::any_of(caused.begin(), caused.end(), [&](const JudgedHazard* hazard) {
      return severity_of(context.options().plan, view, *hazard) == Severity::Error;
    });
    const Severity severity = error ? Severity::Error : Severity::Warning;
    if (!out.found(severity)) continue;
    Diagnostic finding = divergence_finding(context, rank, *at, severity);
    if (caused.empty()) {
      finding.message += "; it does no harm";
      finding.notes.push_back(
          {.text = fmt::format("under plan {} every buffer is still read before its memory is "
                               "taken over",
                               name_of(view.kind())),
           .span = std::nullopt});
    } else {
      // A read that is wrong for certain, if there is one.
      const auto certain = std::find_if(caused.begin(), caused.end(),
                                        [](const auto* hazard) { return !hazard->possible; });
      const JudgedHazard& first = certain == caused.end() ? *caused.front() : **certain;
      const Wiring& wiring = *first.wiring;
      finding.notes.push_back(
          {.text = fmt::format(
               "then {} reads {}, which {} {} overwritten{}",
               memory_user_name(context, wiring, first.hazard.reader),
               buffer_name(context, view, first.hazard.victim),
               memory_user_name(context, wiring, first.hazard.writer),
               first.possible ? "may have" : "has",
               caused.size() == 1 ? "" : fmt::format("; {} such reads in all", caused.size())),
           .span = memory_user_span(context, wiring, first.hazard.reader)});
      finding.witness.kind = WitnessKind::Replay;
      finding.witness.tasks.push_back(memory_user_reference(context, wiring, first.hazard.writer));
      finding.witness.tasks.push_back(memory_user_reference(context, wiring, first.hazard.reader));
      finding.help.text = "replay in the order of capture, or capture in the order of replay";
    }
    if (!view.declared()) {
      finding.notes.push_back(
          {.text = "no plan is declared; this is under TransformerEngine's reuse of buffers",
           .span = std::nullopt});
    }
    out.report(std::move(finding));
  }
}

constexpr Rule kReplayRules[] = {
    {"Y01", "replay-order", "a replay that is not in the order of capture", Family::Replay,
     Pass::Buffers, replay_order},
};

}  // namespace

std::span<const Rule> replay_rules() {
  return kReplayRules;
}

}  // namespace capo::rules

// The rules about replay orders that are not the order of capture: what memory it hurts, and what
// a paged stash reloads for somebody else.
//
// Tested by replay_test.cpp, tests/corpus/rules/Y01 and Y06.

#include "core/base/index.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/hazard_words.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

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

std::vector<const Entry*> graphs_of(const std::vector<Entry>& order) {
  std::vector<const Entry*> graphs;
  for (const Entry& entry : order) {
    if (is_compute(entry.kind)) graphs.push_back(&entry);
  }
  return graphs;
}

// A graph that another one follows than at capture: where they stand, each by its order.
struct Stranger {
  std::size_t graph = 0;                // in the replay
  std::optional<std::size_t> followed;  // in the capture, if anything did
  std::optional<std::size_t> follower;  // in the replay, if anything does
};

// The first graph of a rank's replay that has another neighbour than at capture.
std::optional<Stranger> first_stranger(const RankOrder& rank) {
  if (!rank.replay) return std::nullopt;
  const auto captured = graphs_of(rank.order);
  const auto replayed = graphs_of(*rank.replay);
  const auto place = [](const std::vector<const Entry*>& graphs, std::size_t at,
                        const std::vector<Entry>& order) {
    return at < graphs.size() ? std::optional(as_index(graphs[at] - order.data())) : std::nullopt;
  };
  std::map<std::tuple<Kind, std::int32_t, std::int32_t>, std::size_t> at;  // by action
  const auto key = [](const Entry& entry) {
    return std::tuple(entry.kind, std::int32_t{entry.chunk}, entry.microbatch);
  };
  for (std::size_t k = 0; k < captured.size(); ++k) at.emplace(key(*captured[k]), k);
  for (std::size_t k = 0; k < replayed.size(); ++k) {
    const auto own = at.find(key(*replayed[k]));
    if (own == at.end()) continue;  // the rules of shape tell
    const bool ends = own->second + 1 == captured.size();
    const bool alike = k + 1 == replayed.size()
                           ? ends
                           : !ends && key(*captured[own->second + 1]) == key(*replayed[k + 1]);
    if (alike) continue;
    return Stranger{.graph = *place(replayed, k, *rank.replay),
                    .followed = place(captured, own->second + 1, rank.order),
                    .follower = place(replayed, k + 1, *rank.replay)};
  }
  return std::nullopt;
}

// Says what happens to the victim of a hazard that only the replay has.
std::string harm_words(const Context& context, const JudgedHazard& judged) {
  const Hazard& hazard = judged.hazard;
  const std::string reader = memory_user_name(context, *judged.wiring, hazard.reader);
  const std::string writer = memory_user_name(context, *judged.wiring, hazard.writer);
  const std::string victim = buffer_name(context, context.plan_view(), hazard.victim);
  if (hazard.window) {
    return fmt::format(
        "then {} may overwrite {}, whose send is over for certain only at the end of {}", writer,
        victim, hazard.reader == hazard.writer ? "that" : reader);
  }
  return fmt::format("then {} reads {}, which {} {} overwritten", reader, victim, writer,
                     judged.possible ? "may have" : "has");
}

// Says why a replay order does no harm by itself.
std::string no_harm_words(const PlanView& view, std::int32_t rank) {
  const bool hurts =
      std::any_of(view.hazards().begin(), view.hazards().end(),
                  [&](const JudgedHazard& judged) { return judged.hazard.reader.rank == rank; });
  if (hurts) {
    return fmt::format("under plan {} what is overwritten too early is so as captured too",
                       name_of(view.kind()));
  }
  return fmt::format("under plan {} every buffer is still read before its memory is taken over",
                     name_of(view.kind()));
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
    std::vector<JudgedHazard> caused;
    for (const JudgedHazard& hazard : view.hazards()) {
      if (hazard.by_replay && hazard.hazard.reader.rank == rank) caused.push_back(hazard);
    }
    const bool told = context.options().plan.paged_stash && first_stranger(ranks[r]);
    if (caused.empty() && told) continue;  // by Y06
    const bool error = std::any_of(caused.begin(), caused.end(), [&](const JudgedHazard& hazard) {
      return severity_of(context.options().plan, view, hazard) == Severity::Error;
    });
    const Severity severity = error ? Severity::Error : Severity::Warning;
    if (!out.found(severity)) continue;
    Diagnostic finding = divergence_finding(context, rank, *at, severity);
    if (caused.empty()) {
      finding.message += "; it does no harm";
      finding.notes.push_back({.text = no_harm_words(view, rank), .span = std::nullopt});
    } else {
      // A read that is wrong for certain, if there is one.
      const auto certain = std::find_if(caused.begin(), caused.end(),
                                        [](const auto& hazard) { return !hazard.possible; });
      const JudgedHazard& first = certain == caused.end() ? caused.front() : *certain;
      const Wiring& wiring = *first.wiring;
      finding.notes.push_back(
          {.text = harm_words(context, first) +
                   (caused.size() == 1 ? "" : fmt::format("; {} such reads in all", caused.size())),
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

std::string reloads_words(const Context& context, const OrderView& captured,
                          const Stranger& stranger) {
  if (!stranger.followed) return "reloads nothing from the paged stash, since it was captured last";
  return fmt::format("reloads from the paged stash what {} reads, which was captured behind it",
                     words::quoted(context, captured.entries[*stranger.followed]));
}

Diagnostic reloads_for_another(const Context& context, const OrderView& captured,
                               const OrderView& replayed, const Stranger& stranger) {
  const std::string here =
      stranger.follower
          ? words::quoted(context, replayed.entries[*stranger.follower]) + " comes behind it here"
          : "it comes last here";
  Diagnostic finding{
      .message = fmt::format("the graph of {} {}, and {}",
                             words::placed(context, replayed, stranger.graph),
                             reloads_words(context, captured, stranger), here),
      .labels = {{replayed.entries[stranger.graph].span(), "reloads for its neighbour"}},
      .help = {.text = "replay in the order of capture, or capture in the order of replay"},
      .witness = words::entries(context, replayed, {stranger.graph})};
  if (stranger.followed) {
    finding.labels.push_back({captured.entries[*stranger.followed].span(), "captured behind it"});
  }
  if (stranger.follower) {
    finding.labels.push_back({replayed.entries[*stranger.follower].span(), "replayed behind it"});
  }
  return finding;
}

// With a paged stash each graph is replayed between the neighbours that it was captured between.
//
//   captured  F1.0 F1.1 B1.0 B1.1      the graph of B1.0 also reloads what B1.1 reads
//   replayed  F1.0 B1.0 F1.1 B1.1      it does so before F1.1 has stashed it
//
// It is not enough that no memory is read too late (Y01): what is reloaded for the next graph is
// baked into the one before it. There is one finding for each rank, at the first graph that another
// one follows than at capture; nothing is said unless a paged stash is declared. No plan is asked,
// so that a step whose buffers are too many for one is judged as well.
void stash_order(const Context& context, Findings& out) {
  if (!context.options().plan.paged_stash) return;
  const std::vector<OrderView>& orders = context.orders();
  for (std::size_t at = 0; at + 1 < orders.size(); ++at) {
    if (!orders[at + 1].replay) continue;  // the replay order of a rank follows its capture order
    const auto stranger = first_stranger(*orders[at].holder);
    if (stranger && out.found())
      out.report(reloads_for_another(context, orders[at], orders[at + 1], *stranger));
  }
}

constexpr Rule kReplayRules[] = {
    {"Y01", "replay-order", "a replay that is not in the order of capture", Family::Replay,
     Pass::Buffers, replay_order},
};

// They follow all rules that ask a plan, since each pass begins once.
constexpr Rule kStashRules[] = {
    {"Y06", "stash-order", "a replay in which a paged stash is reloaded for somebody else",
     Family::Replay, Pass::Resets, stash_order},
};

}  // namespace

std::span<const Rule> replay_rules() {
  return kReplayRules;
}

std::span<const Rule> stash_rules() {
  return kStashRules;
}

}  // namespace capo::rules

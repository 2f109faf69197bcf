#include "core/frameworks/torch/csv_printer.h"

#include "core/frameworks/torch/words.h"

#include <fmt/format.h>

namespace capo {

namespace {

// The entries without dispatch and combine. A composite of which one member is left is none.
std::vector<Entry> without_exchanges(const std::vector<Entry>& order) {
  std::vector<Entry> kept;
  kept.reserve(order.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && order[end].group == Group::Continues) ++end;
    const std::size_t first = kept.size();
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_exchange(order[i].kind)) kept.push_back(order[i]);
    }
    const std::size_t left = kept.size() - first;
    if (left > 0 && left < end - begin) {
      kept[first].group = left == 1 ? Group::Alone : Group::Opens;
    }
    begin = end;
  }
  return kept;
}

// A chunk that is declared to take no backward apart, and does, is what it does.
std::vector<Delay> delay_to_drop(const RankOrder& rank) {
  std::vector<Delay> delay = resolved_delay(rank);
  if (!rank.delay) return delay;
  const std::vector<Delay> seen = resolved_delay({.order = rank.order, .chunks = rank.chunks});
  for (std::size_t chunk = 0; chunk < delay.size(); ++chunk) {
    if (delay[chunk] == Delay::Never) delay[chunk] = seen[chunk];
  }
  return delay;
}

Result<std::string, Inexpressible> print_row(const Schedule& schedule, const RankOrder& rank,
                                             const std::vector<Entry>& order,
                                             const std::vector<Delay>& delay) {
  std::string row;
  bool composite = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Entry& entry = order[i];
    if (is_exchange(entry.kind)) {
      return Inexpressible{.reason = "a table has no notation for dispatch and combine",
                           .span = entry.span(),
                           .droppable = true};
    }
    if (i > 0) row += entry.group == Group::Continues ? ";" : ",";
    if (entry.group == Group::Opens) row += "(";
    composite = entry.group != Group::Alone;
    if (entry.kind != Kind::Idle) {
      const auto chunk = entry.chunk.index();
      if (chunk >= delay.size()) {
        return Inexpressible{.reason = "a chunk that the rank does not have has no stage",
                             .span = entry.span()};
      }
      const std::int32_t stage =
          schedule.topology == Topology::Independent ? entry.chunk - 1 : rank.stages[chunk];
      row += fmt::format("{}{}", stage, torch_word(entry.kind, delay[chunk]));
      if (entry.microbatch != kNoMicrobatch) row += fmt::format("{}", entry.microbatch);
    }
    const bool closes =
        composite && (i + 1 == order.size() || order[i + 1].group != Group::Continues);
    if (closes) row += ")OVERLAP_F_B";
  }
  // One idle slot alone would read back as a blank line, which is an empty row.
  if (order.size() == 1 && row.empty()) row = "\"\"";
  return row;
}

}  // namespace

Result<std::string, Inexpressible> print_torch_csv(const Schedule& schedule, Beside beside) {
  if (schedule.topology == Topology::Independent && schedule.ranks.size() > 1) {
    return Inexpressible{
        .reason = "a table names stages; say with `placement` how chunks make up the stages"};
  }
  if (schedule.topology == Topology::Bidirectional) {
    return Inexpressible{.reason =
                             "the stages of a table are one pipeline, and this schedule has two"};
  }
  std::string out;
  for (const RankOrder& rank : schedule.ranks) {
    if (rank.replay) {
      return Inexpressible{
          .reason = "a table holds one order per rank, not a capture and a replay order"};
    }
    if (beside == Beside::Refuse && !rank.resets.empty()) {
      return Inexpressible{.reason = "a table has no notation for a reset",
                           .span = rank.resets.front().span,
                           .droppable = true};
    }
    if (beside == Beside::Refuse && !says_nothing_new(rank.layers, rank.chunks)) {
      return Inexpressible{.reason = "a table does not say how many layers a chunk has",
                           .droppable = true};
    }
    auto row = beside == Beside::Drop
                   ? print_row(schedule, rank, without_exchanges(rank.order), delay_to_drop(rank))
                   : print_row(schedule, rank, rank.order, resolved_delay(rank));
    if (!row) return row.error();
    out += *row + "\n";
  }
  return out;
}

}  // namespace capo

// The rules about each entry by itself: whether it can be read as an action at all.
//
//   [1, nan, -1.25]         two entries that stand for nothing: S01, S02
//
// The first half judges what a list for TE holds, the second half what a table of PyTorch holds
// that its own readers take in silence. How often something occurs is for counts.cpp. Tested by
// entries_test.cpp, cells_test.cpp and tests/corpus/rules/S01 to S11.

#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/words.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace capo::rules {

namespace {

// Calls `visit(entry, position)` for the entries that from_te_list could not read.
template <typename Visit>
void for_each_odd_entry(const Context& context, Visit&& visit) {
  for (const std::uint32_t index : context.input().odd_entries) {
    visit(context.input().te_list.entries[index], index);
  }
}

// The entry as written, without the quotes of JSON.
std::string written(const Context& context, const TeEntry& entry) {
  std::string_view text = context.input().source.slice(entry.span());
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return std::string(text);
}

// A finding about one entry by itself.
Diagnostic about_entry(const Context& context, const TeEntry& entry, std::uint32_t position,
                       const std::string& what, Help help) {
  const std::string text = written(context, entry);
  const TePlace at = place_in_lists(context.input(), position);
  const bool several = !context.input().te_begins.empty();
  const std::string of_rank = several ? fmt::format(" of rank {}", at.rank) : "";
  return {
      .message = fmt::format("{} at index {}{} {}", shown(text), at.index, of_rank, what),
      .labels = {{entry.span(), ""}},
      .help = std::move(help),
      .witness = {
          .tasks = {
              {.rank = static_cast<int>(at.rank), .index = at.index, .text = text, .action = ""}}}};
}

// An entry of a TE list is a finite number.
//
//   [1, nan, -1]            TE computes ceil() of every entry, which fails on NaN and on infinity
void not_finite(const Context& context, Findings& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t position) {
    if (std::isfinite(entry.value) || !out.found_at(entry.span())) return;
    const char* what = std::isnan(entry.value) ? "is not a number" : "is infinite";
    out.report(about_entry(context, entry, position, what,
                           {.text = "write the chunk that runs here; is a value missing where the "
                                    "list was made?"}));
  });
}

// A fractional entry is a weight gradient, and its fraction is exactly one half.
//
//   [1, -1, -1.25]          -1.5 is meant: the weight gradient of chunk 1
//
// TE finds this during capture only, after all warm-up passes. Positive fractions are
// half_forward's.
void not_a_half(const Context& context, Findings& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t position) {
    const double fraction = std::ceil(entry.value) - entry.value;
    const bool fault =
        std::isfinite(entry.value) && entry.value < -1 && fraction != 0;  // a half is not odd
    if (!fault || !out.found_at(entry.span())) return;
    const std::string half = fmt::format("{:.0f}.5", std::ceil(entry.value));
    out.report(
        about_entry(context, entry, position, "has a fraction other than one half",
                    {.text = fmt::format("write `{}` for the weight gradient of chunk {:.0f}", half,
                                         -std::ceil(entry.value)),
                     .edits = {{entry.span(), half}}}));
  });
}

// A forward or backward is written as an integer: `1`, not `1.0`.
//
//   [1.0, -1]               equal numbers, but TE indexes lists with them, and a Python float
//                           is no index
//
// A fault of type and not of schedule; only a weight gradient is a float.
void float_chunk(const Context& context, Findings& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t position) {
    const bool whole = std::isfinite(entry.value) && std::floor(entry.value) == entry.value;
    if (!whole || entry.value == 0 || !out.found_at(entry.span())) return;
    const std::string integer = fmt::format("{:.0f}", entry.value);
    Help help{.text = "write it as an integer"};
    if (integer.size() < 12) {
      help.text = fmt::format("write `{}`", integer);
      help.edits = {{entry.span(), integer}};
    }
    out.report(about_entry(context, entry, position, "is a float; the id of a chunk is an integer",
                           std::move(help)));
  });
}

// Chunks are counted from 1: `0` names none, and neither does `-0.5`.
//
//   [1, 0]                  TE reads 0 as a backward of Python index -1, the last chunk
void chunk_zero(const Context& context, Findings& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t position) {
    if (!(entry.value > -1 && entry.value <= 0) || !out.found_at(entry.span())) return;
    const char* what = entry.value == 0 ? "is no chunk; chunks are counted from 1"
                       : entry.value == -0.5
                           ? "is a weight gradient of chunk 0; chunks are counted from 1"
                           : "names no chunk";
    out.report(about_entry(
        context, entry, position, what,
        {.text = entry.value == 0
                     ? "write `i` for a forward and `-i` for a backward of chunk i"
                     : "write `-i.5` for the weight gradient of chunk i: `-1.5` for chunk 1"}));
  });
}

// A half is a weight gradient and therefore negative; a forward is a whole number.
//
//   [1, 1.5, -1, -1.5]      1.5 is no entry
void half_forward(const Context& context, Findings& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t position) {
    const bool fractional = std::isfinite(entry.value) && std::floor(entry.value) != entry.value;
    if (!fractional || entry.value < 0 || !out.found_at(entry.span())) return;
    const double chunk = std::floor(entry.value);
    Help help{.text = "a forward is a whole number"};
    if (entry.value - chunk == 0.5 && chunk >= 1) {
      const std::string weight = fmt::format("-{:.0f}.5", chunk);
      help.text = fmt::format(
          "write `{}` for the weight gradient of chunk {:.0f}, `{:.0f}` for its forward", weight,
          chunk, chunk);
      help.edits = {{entry.span(), weight}};
    }
    out.report(about_entry(context, entry, position, "is a fractional forward", std::move(help)));
  });
}

std::string how_to_fill(Form form, const OrderView& order) {
  const bool table = form == Form::TorchCompute || form == Form::TorchComms;
  if (table && order.entries.empty()) {
    return fmt::format(
        "row {} of the table, counted from 0, is blank: remove that line, or write the actions of "
        "rank {}",
        order.rank, order.rank);
  }
  const std::string smallest = "the smallest order is one forward and its backward";
  return form == Form::TeList ? smallest + ", `[1, -1]`" : smallest;
}

// Every order runs something forward.
//
//   []                      nothing to capture; TE fails on max() of an empty list
//   [-1.5]                  a weight gradient alone
//   0F0,0B0\n\n             a blank line of a table is a row, and PyTorch takes rows for ranks
//
// A list for TE always runs something: TE has no other use for it. Of several ranks, one that is
// declared to hold no chunk may have an order of nothing but idle slots. The rule is silent if
// other entries are unreadable: a forward may hide among them.
void empty_order(const Context& context, Findings& out) {
  if (!context.input().odd_entries.empty()) return;
  for (const OrderView& order : context.orders()) {
    const bool runs_nothing =
        std::all_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return entry.kind == Kind::Idle; });
    const bool no_chunk = order.holder->chunks_declared && order.holder->chunks == 0;
    if (no_chunk && runs_nothing && context.input().form != Form::TeList) continue;
    const bool forward =
        std::any_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return entry.kind == Kind::Forward; });
    std::optional<Span> place;
    if (!order.entries.empty()) place = order.entries.front().span();
    if (forward || !out.found_at(place)) continue;
    Diagnostic finding;
    const std::string which = order.replay ? fmt::format("rank {}'s replay order", order.rank)
                                           : "the order" + words::of_rank(context, order);
    finding.message = which + (order.entries.empty() ? " is empty" : " has no forward");
    if (place) finding.labels = {{*place, ""}};
    finding.help.text = how_to_fill(context.input().form, order);
    if (!order.entries.empty()) finding.witness = words::entries(context, order, {0});
    out.report(std::move(finding));
  }
}

// If actions name their microbatches, every action of a microbatch does.
//
//   0F0,0F,0B0              PyTorch reads `0F` without a word: a forward of no microbatch
//
// If the microbatch is missing because PyTorch drops the text behind it (`0FOO`, `2BW0`),
// dropped_text says so.
void microbatch_missing(const Context& context, Findings& out) {
  if (context.counted()) return;
  std::set<std::uint32_t> cut;  // where the cells begin of which PyTorch reads only a part
  for (const CellFault& fault : context.input().cell_faults) {
    if (fault.kind == CellFault::Kind::DroppedText) cut.insert(fault.span.offset);
  }
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (!has_microbatch(entry.kind) || entry.microbatch != kNoMicrobatch) continue;
      if (cut.contains(entry.offset) || !out.found_at(entry.span())) continue;
      out.report({.message = words::placed(context, order, at) + " does not say its microbatch",
                  .labels = {{entry.span(), ""}},
                  .help = {.text = "add the number of the microbatch, counted from 0"},
                  .witness = words::entries(context, order, {at})});
    }
  }
}

// Calls `describe(fault)`, which returns {what, help}, for every cell with a fault of this kind.
template <typename Describe>
void report_cells(const Context& context, CellFault::Kind kind, Findings& out,
                  Describe&& describe) {
  const CellFault* before = nullptr;
  for (const CellFault& fault : context.input().cell_faults) {
    if (fault.kind != kind) continue;
    // Two members of one composite with the same fault are one finding.
    const bool again =
        before != nullptr && before->rank == fault.rank && before->cell == fault.cell;
    before = &fault;
    if (again || !out.found()) continue;
    const std::string cell(context.input().source.slice(fault.span));
    const std::string name = cell.empty() ? "the empty cell" : shown(cell);
    const std::string where = fmt::format(" at index {} of rank {} ", fault.cell, fault.rank);
    auto [what, help] = describe(fault);
    out.report({.message = fmt::format("{}{}{}", name, where, what),
                .labels = {{fault.span, ""}},
                .help = {.text = std::move(help)},
                .witness = {.tasks = {{.rank = fault.rank,
                                       .index = fault.cell,
                                       .text = cell,
                                       .action = fault.torch_reads}}}});
  }
}

// PyTorch reads a cell completely.
//
//   0F1.5                   PyTorch reads 0F1 and drops the rest, since its pattern is anchored
//                           at the beginning of the cell only
//   2BW0                    an older name of the whole backward: read as `2B`, no microbatch
void dropped_text(const Context& context, Findings& out) {
  report_cells(context, CellFault::Kind::DroppedText, out, [](const CellFault& fault) {
    return std::pair(
        fmt::format("is read by PyTorch as {}, and the rest is dropped", shown(fault.torch_reads)),
        std::string("write one action a cell, `<stage><type><microbatch>`, and commas between "
                    "cells; a composite is `(<a>;<b>)OVERLAP_F_B`"));
  });
}

// A composite has members, and its type is OVERLAP_F_B.
//
//   (0F0;1B0)B              PyTorch takes any type for a container
//   ()OVERLAP_F_B           and one without members
void composite_form(const Context& context, Findings& out) {
  report_cells(context, CellFault::Kind::WrongContainer, out, [](const CellFault&) {
    return std::pair(
        std::string("is a composite of a type other than OVERLAP_F_B"),
        std::string(
            "write `(<a>;<b>)OVERLAP_F_B`; PyTorch reads it and does not know what to run"));
  });
  report_cells(context, CellFault::Kind::EmptyComposite, out, [](const CellFault& fault) {
    return std::pair(fmt::format("is a composite without members, which PyTorch reads as {}",
                                 shown(fault.torch_reads)),
                     std::string("leave the cell empty for an idle slot"));
  });
}

// UNSHARD, RESHARD and REDUCE_GRAD are actions of a whole stage and have no microbatch.
//
//   5REDUCE_GRAD7           PyTorch keeps the 7 and never looks at it
void surplus_microbatch(const Context& context, Findings& out) {
  report_cells(context, CellFault::Kind::SurplusMicrobatch, out, [](const CellFault&) {
    return std::pair(std::string("names a microbatch, but acts on a whole stage"),
                     std::string("leave the number of the microbatch out"));
  });
}

// A compute-only table holds no transfers, and a table with transfers holds no idle slots.
//
//   0F0,0SEND_F0            read as compute-only: PyTorch adds the transfers itself and stops here
//   0F0,,0B0                read with transfers: PyTorch's runtime has no idle action
void table_form(const Context& context, Findings& out) {
  report_cells(context, CellFault::Kind::TransferInCompute, out, [](const CellFault&) {
    return std::pair(
        std::string("is a transfer in a compute-only table"),
        std::string("read the table with `--csv comms`, or leave the transfers to PyTorch"));
  });
  report_cells(context, CellFault::Kind::IdleSlot, out, [](const CellFault&) {
    return std::pair(
        std::string("is an idle slot in a table with transfers"),
        std::string("remove the empty cell: idle slots belong to compute-only tables"));
  });
}

constexpr Rule kEntriesRules[] = {
    {"S01", "not-finite", "an entry is NaN or infinite", Family::Shape, Pass::Entries, not_finite},
    {"S02", "not-a-half", "a fraction other than one half", Family::Shape, Pass::Entries,
     not_a_half},
    {"S03", "float-chunk", "a whole number written as a float", Family::Shape, Pass::Entries,
     float_chunk},
    {"S04", "chunk-zero", "chunks are counted from 1", Family::Shape, Pass::Entries, chunk_zero},
    {"S05", "half-forward", "a forward cannot be a half", Family::Shape, Pass::Entries,
     half_forward},
    {"S06", "empty-order", "an order without a forward", Family::Shape, Pass::Entries, empty_order},
    {"S07", "microbatch-missing", "an action without its microbatch", Family::Shape, Pass::Entries,
     microbatch_missing},
    {"S08", "dropped-text", "PyTorch reads only the beginning of a cell", Family::Shape,
     Pass::Entries, dropped_text},
    {"S09", "composite-form", "a composite that is none", Family::Shape, Pass::Entries,
     composite_form},
    {"S10", "surplus-microbatch", "a microbatch on an action of a whole stage", Family::Shape,
     Pass::Entries, surplus_microbatch},
    {"S11", "table-form", "an action that this kind of table does not hold", Family::Shape,
     Pass::Entries, table_form},
};

}  // namespace

std::span<const Rule> entry_rules() {
  return kEntriesRules;
}

}  // namespace capo::rules

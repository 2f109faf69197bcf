// The rules about which microbatches a chunk runs, where entries name them.
//
//   0F0,0F1,0B0             microbatch 1 is never run backward: S21
//
// An order of counted microbatches is judged by counts.cpp. Tested by microbatches_test.cpp and
// tests/corpus/rules/S19 to S22.

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/graph/stage_map.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace capo::rules {

namespace {

// Microbatches are counted from 0 to one less than the step has.
//
//   4 microbatches:  0F7                PyTorch's validator counts distinct numbers and not which
void microbatch_out_of_range(const Context& context, Findings& out) {
  if (context.counted() || !context.schedule().microbatches) return;
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.microbatch < context.microbatches() || !out.found()) continue;
      out.report(
          {.message = fmt::format("{} is an action of microbatch {}, but the step has {} ({})",
                                  words::placed(context, order, at), entry.microbatch,
                                  counted(context.microbatches(), "microbatch", "microbatches"),
                                  numbered(context.microbatches())),
           .labels = {{entry.span(), ""}},
           .help = {.text = "correct the microbatch, or the number that is declared"},
           .witness = words::entries(context, order, {at})});
    }
  }
}

// A named action stands in its rank's order once.
//
//   0F0,0B0,0B0             microbatch 0 would be run backward twice; every check that PyTorch
//                           makes ahead of time passes, and its runtime stops in the step
//
// Transfers are judged by transfers.cpp. If microbatches are counted no action can repeat.
void repeated_action(const Context& context, Findings& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      for (std::size_t i = 1; i < view.positions.size(); ++i) {
        const std::size_t at = view.positions[i];
        const auto before = std::find_if(
            view.positions.begin(), view.positions.begin() + static_cast<std::ptrdiff_t>(i),
            [&](std::uint32_t earlier) {
              return order.entries[earlier].kind == order.entries[at].kind;
            });
        if (*before == at || !out.found()) continue;
        out.report(
            {.message = fmt::format("{} runs a second time", words::placed(context, order, at)),
             .labels = {{order.entries[at].span(), "the same action again"},
                        {order.entries[*before].span(), "it runs here already"}},
             .help = {.text = "remove one of the two; is another microbatch meant?"},
             .witness = words::entries(context, order, {*before, at})});
      }
    });
  }
}

struct Present {
  bool forward = false;
  bool whole = false;
  bool input = false;
  bool weight = false;
};

Present present_in(const OrderView& order, const MicrobatchView& view) {
  Present present;
  for (const std::uint32_t at : view.positions) {
    const Kind kind = order.entries[at].kind;
    present.forward = present.forward || kind == Kind::Forward;
    present.whole = present.whole || kind == Kind::Backward;
    present.input = present.input || kind == Kind::BackwardInput;
    present.weight = present.weight || kind == Kind::BackwardWeight;
  }
  return present;
}

// The kinds that the microbatch lacks, given how its chunk treats weight gradients.
std::vector<Kind> lacking(const Present& present, Delay delay) {
  std::vector<Kind> kinds;
  if (!present.forward) kinds.push_back(Kind::Forward);
  if (delay == Delay::Mixed) {
    if (!present.whole && !present.input) {
      kinds.push_back(present.weight ? Kind::BackwardInput : Kind::Backward);
    }
    // If there is a whole backward, the input half is one too many: split_and_whole's.
    if (present.input && !present.weight && !present.whole) kinds.push_back(Kind::BackwardWeight);
    return kinds;
  }
  // An input half where none belongs is weight_undeclared's.
  if (!present.whole && !present.input) kinds.push_back(Kind::Backward);
  if (delay == Delay::Always && !present.weight) kinds.push_back(Kind::BackwardWeight);
  return kinds;
}

// The earliest entry after which the missing action could be inserted; nullopt if that depends on
// another rank's order, where too early would make the ranks wait for each other.
std::optional<std::size_t> ready_behind(const Context& context, const OrderView& order,
                                        const Action& action,
                                        std::span<const std::uint32_t> others) {
  if (action.kind == Kind::BackwardWeight) return others.back();
  const StageMap& map = context.wirings().front()->map();
  const std::int32_t next = map.after(map.stage_of(order.rank, action.chunk));
  if (next == kNoStage) return others.back();
  const StageMap::Place& home = map.home(next);
  if (home.rank != order.rank) return std::nullopt;
  const auto& entries = order.entries;
  const auto gradient = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return (entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput) &&
           entry.chunk == home.chunk && entry.microbatch == action.microbatch;
  });
  if (gradient == entries.end()) return std::nullopt;
  return std::max<std::size_t>(others.back(), as_index(gradient - entries.begin()));
}

// `others` are the entries of its microbatch that are there; there is at least one.
void say_where(const Context& context, const OrderView& order, const Action& action,
               std::span<const std::uint32_t> others, Diagnostic& finding) {
  const auto needs_it = std::find_if(others.begin(), others.end(), [&](std::uint32_t at) {
    return action.kind == Kind::Forward || order.entries[at].kind == Kind::BackwardWeight;
  });
  const bool before = needs_it != others.end();
  const std::size_t beside = before ? *needs_it : others.back();
  finding.labels = {{order.entries[beside].span(), ""}};
  finding.witness = words::entries(context, order, {beside});
  if (before) {
    finding.help.text =
        fmt::format("add it before {}", words::quoted(context, order.entries[beside]));
    return;
  }
  const auto ready = ready_behind(context, order, action, others);
  const std::size_t behind = ready.value_or(beside);
  finding.help.text = fmt::format("add it after {}", words::quoted(context, order.entries[behind]));
  if (ready) {
    finding.help.edits = words::insert_after(context, order, behind, action);
  } else {
    const StageMap& map = context.wirings().front()->map();
    finding.help.text += fmt::format(", and late enough for the gradient that stage {} hands on",
                                     map.after(map.stage_of(order.rank, action.chunk)));
  }
}

// Every chunk runs each microbatch forward and backward, and where it splits the backward, its
// weight gradient.
//
//   0F0,0F1,0B0             microbatch 1 is never run backward
//
// If microbatches are counted the rules about counts say this. Chunks that never occur are
// missing_chunk's.
void missing_action(const Context& context, Findings& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    const auto report = [&](std::int32_t chunk, std::int32_t microbatch,
                            std::span<const std::uint32_t> others, Kind kind) {
      if (!out.found()) return;
      const Action action{.kind = kind, .chunk = chunk, .microbatch = microbatch};
      Diagnostic finding;
      finding.message = fmt::format(
          "`{}` is missing{}: {} does not run {}", words::entry_text(context, order, action),
          words::on_order(context, order), words::part(context, order, chunk),
          kind == Kind::BackwardWeight
              ? fmt::format("the weight gradient of microbatch {}", microbatch)
          : kind == Kind::Forward ? fmt::format("microbatch {} forward", microbatch)
                                  : fmt::format("microbatch {} backward", microbatch));
      finding.help.text = "add it";
      if (!others.empty()) say_where(context, order, action, others, finding);
      out.report(std::move(finding));
    };
    // A stage that strayed here from another rank is stage_twice's.
    const auto strays = [&](std::int32_t chunk) {
      return chunk > order.holder->chunks - order.holder->strays;
    };
    // Microbatches in between that do not occur at all are found by the gaps in the walk.
    std::vector<std::int32_t> next(as_index(order.holder->chunks));
    const auto report_gap = [&](std::int32_t chunk, std::int32_t end) {
      if (next[ChunkId(chunk).index()] >= end) return;  // as between almost any two
      const std::vector<Kind> kinds = lacking({}, order.delay_of(chunk));
      for (std::int32_t m = next[ChunkId(chunk).index()]; m < end; ++m) {
        if (out.full()) {
          out.count_unseen(as_index(end - m) * kinds.size());
          return;
        }
        for (const Kind kind : kinds) report(chunk, m, {}, kind);
      }
    };
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      if (view.microbatch >= context.microbatches() || strays(view.chunk)) return;
      report_gap(view.chunk, view.microbatch);
      next[ChunkId(view.chunk).index()] = view.microbatch + 1;
      for (const Kind kind : lacking(present_in(order, view), order.delay_of(view.chunk))) {
        report(view.chunk, view.microbatch, view.positions, kind);
      }
    });
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (!order.of(chunk).absent() && !strays(chunk)) report_gap(chunk, context.microbatches());
    }
  }
}

// A microbatch of a chunk is run backward whole, or in an input half and a weight half; not both
// ways.
//
//   0F0,0B0,0I0,0W0         its gradient would be added twice; PyTorch's validator counts B plus
//                           half of I and W over the stage, so another fault can hide this one
void split_and_whole(const Context& context, Findings& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    if (std::find(order.delay.begin(), order.delay.end(), Delay::Mixed) == order.delay.end())
      continue;
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      if (order.delay_of(view.chunk) != Delay::Mixed) return;
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const auto whole = first([](Kind kind) { return kind == Kind::Backward; });
      const auto half = first(
          [](Kind kind) { return kind == Kind::BackwardInput || kind == Kind::BackwardWeight; });
      if (whole == view.positions.end() || half == view.positions.end() || !out.found()) return;
      const std::uint32_t later = std::max(*whole, *half);
      const std::uint32_t earlier = std::min(*whole, *half);
      out.report({.message = fmt::format(
                      "microbatch {} of {} has a whole backward and a split one{}", view.microbatch,
                      words::part(context, order, view.chunk), words::on_order(context, order)),
                  .labels = {{order.entries[later].span(), "again"},
                             {order.entries[earlier].span(), "run backward here already"}},
                  .help = {.text = "keep the whole backward, or the input and weight halves"},
                  .witness = words::entries(context, order, {earlier, later})});
    });
  }
}

constexpr Rule kMicrobatchesRules[] = {
    {"S19", "microbatch-out-of-range", "a microbatch that the step does not have", Family::Shape,
     Pass::Counts, microbatch_out_of_range},
    {"S20", "repeated-action", "the same action twice", Family::Shape, Pass::Counts,
     repeated_action},
    {.id = "S21",
     .name = "missing-action",
     .title = "an action of a microbatch is missing",
     .family = Family::Shape,
     .pass = Pass::Counts,
     .check = missing_action,
     .leaves_executable = true},
    {"S22", "split-and-whole", "a microbatch has a whole backward and a split one", Family::Shape,
     Pass::Counts, split_and_whole},
};

}  // namespace

std::span<const Rule> microbatch_rules() {
  return kMicrobatchesRules;
}

}  // namespace capo::rules

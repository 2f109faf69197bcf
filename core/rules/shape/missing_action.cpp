// Every chunk runs each microbatch forward and backward, and where it splits the backward, its
// weight gradient.
//
//   0F0,0F1,0B0             microbatch 1 is never run backward
//
// Where microbatches are counted this is what the rules about counts say. Chunks that never occur
// are missing_chunk's. Tested by missing_action_test.cpp and tests/corpus/rules/S21/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <vector>

namespace capo::rules {

namespace {

struct Present {
  bool forward = false;
  bool whole = false;
  bool input = false;
  bool weight = false;
};

Present present_in(const OrderView& order, const MicrobatchView& view) {
  Present present;
  for (const std::uint32_t at : view.positions) {
    switch (order.entries[at].kind) {
      case Kind::Forward:
        present.forward = true;
        break;
      case Kind::Backward:
        present.whole = true;
        break;
      case Kind::BackwardInput:
        present.input = true;
        break;
      case Kind::BackwardWeight:
        present.weight = true;
        break;
      default:
        break;
    }
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
    if (present.input && !present.weight) kinds.push_back(Kind::BackwardWeight);
    return kinds;
  }
  if (!present.whole) kinds.push_back(Kind::Backward);
  if (delay == Delay::Always && !present.weight) kinds.push_back(Kind::BackwardWeight);
  return kinds;
}

}  // namespace

void missing_action(const Context& context, Diagnostics& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    const auto report = [&](std::int32_t chunk, std::int32_t microbatch,
                            std::span<const std::uint32_t> others, Kind kind) {
      if (!out.wants("S21")) return;
      const Action action{.kind = kind, .chunk = chunk, .microbatch = microbatch};
      Diagnostic finding{.rule = "S21"};
      finding.message =
          fmt::format("`{}` is missing{}: {} does not run microbatch {} {}",
                      words::entry_text(context, order, action), words::on_order(context, order),
                      words::part(context, order, chunk), microbatch,
                      kind == Kind::Forward          ? "forward"
                      : kind == Kind::BackwardWeight ? "to its weight gradient"
                                                     : "backward");
      finding.help.text = "add it";
      if (!others.empty()) {
        finding.labels = {
            {order.entries[others.back()].span(), "the microbatch's last action is here"}};
        finding.witness = words::entries(context, order, {others.back()});
        if (kind != Kind::Forward) {
          finding.help = {.text = "add it after this one",
                          .edits = words::insert_after(context, order, others.back(), action)};
        }
      }
      out.keep(std::move(finding));
    };
    // Microbatches in between that do not occur at all are found by the gaps in the walk.
    std::vector<std::int32_t> next(static_cast<std::size_t>(order.holder->chunks));
    const auto report_gap = [&](std::int32_t chunk, std::int32_t end) {
      const std::vector<Kind> kinds = lacking({}, order.delay_of(chunk));
      for (std::int32_t m = next[static_cast<std::size_t>(chunk) - 1]; m < end; ++m) {
        if (out.full("S21")) {
          out.count_unseen("S21", static_cast<std::size_t>(end - m) * kinds.size());
          return;
        }
        for (const Kind kind : kinds) report(chunk, m, {}, kind);
      }
    };
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      if (view.microbatch >= context.microbatches()) return;
      report_gap(view.chunk, view.microbatch);
      next[static_cast<std::size_t>(view.chunk) - 1] = view.microbatch + 1;
      for (const Kind kind : lacking(present_in(order, view), order.delay_of(view.chunk))) {
        report(view.chunk, view.microbatch, view.positions, kind);
      }
    });
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (!order.of(chunk).absent()) report_gap(chunk, context.microbatches());
    }
  }
}

}  // namespace capo::rules

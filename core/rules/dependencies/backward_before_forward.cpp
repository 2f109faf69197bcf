// On every stage, a backward comes after the forward of the same microbatch.
//
//   0B0,0F0                 the activations that 0B0 reads are stored by 0F0
//
// Judges one rank at a time. Where microbatches are counted, backward_ahead says the same of the
// k-th of each. Tested by backward_before_forward_test.cpp and tests/corpus/rules/D01/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

// A cell of a table that overlaps two actions is one text for both.
bool shares_its_text(const OrderView& order, std::size_t at) {
  const auto& entries = order.entries;
  const auto beside = [&](std::size_t other) {
    return other < entries.size() && entries[other].span() == entries[at].span();
  };
  return entries[at].group != Group::Alone && (beside(at + 1) || (at > 0 && beside(at - 1)));
}

// The one action that is meant: "`0B1`".
std::string quoted_action(const Context& context, const OrderView& order, std::size_t at) {
  const Entry& entry = order.entries[at];
  if (!shares_its_text(order, at)) return words::quoted(context, entry);
  return fmt::format("`{}`", words::entry_text(context, order, entry.action()));
}

// And where it stands: "`0B1` at index 1", "`0B1` of `(0F1;0B1)OVERLAP_F_B` at index 1".
std::string placed_action(const Context& context, const OrderView& order, std::size_t at) {
  const std::string placed = words::placed(context, order, at);
  if (!shares_its_text(order, at)) return placed;
  return fmt::format("{} of {}", quoted_action(context, order, at), placed);
}

}  // namespace

void backward_before_forward(const Context& context, Diagnostics& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const auto needed = first([](Kind kind) { return kind == Kind::Forward; });
      const auto reader =
          first([](Kind kind) { return kind == Kind::Backward || kind == Kind::BackwardInput; });
      if (needed == view.positions.end() || reader == view.positions.end()) return;
      const bool together = words::run_together(order, *needed, *reader);
      if ((*needed < *reader && !together) || !out.wants("D01")) return;
      const std::string forward = quoted_action(context, order, *needed);
      std::vector<Label> labels{{order.entries[*reader].span(), ""}};
      if (order.entries[*needed].span() != order.entries[*reader].span()) {
        labels.push_back({order.entries[*needed].span(), "the forward is here"});
      }
      out.keep({.rule = "D01",
                .family = Family::Dependencies,
                .message = fmt::format("{} runs {} {}, whose activations it reads",
                                       placed_action(context, order, *reader),
                                       together ? "together with" : "before", forward),
                .labels = std::move(labels),
                .help = {.text = fmt::format("move {}{} behind {}",
                                             quoted_action(context, order, *reader),
                                             together ? " out of the composite," : "", forward)},
                .witness = words::entries(context, order, {*reader, *needed})});
    });
  }
}

}  // namespace capo::rules

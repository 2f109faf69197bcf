// On every stage, a weight gradient comes after the backward of the same microbatch that feeds it.
//
//   0F0,0W0,0I0             the operands that 0W0 multiplies are queued by 0I0
//
// Judges one rank at a time. Where microbatches are counted, weight_ahead says the same of the k-th
// of each. Tested by weight_before_backward_test.cpp and tests/corpus/rules/D02/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void weight_before_backward(const Context& context, Diagnostics& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const Delay delay = order.delay_of(view.chunk);
      if (delay == Delay::Never) return;  // weight_undeclared's
      // Beside whole backwards only a split-off input half queues anything.
      const Kind feeder = delay == Delay::Mixed ? Kind::BackwardInput : Kind::Backward;
      const auto needed = first([feeder](Kind kind) { return kind == feeder; });
      const auto reader = first([](Kind kind) { return kind == Kind::BackwardWeight; });
      if (needed == view.positions.end() || reader == view.positions.end()) return;
      const bool together = words::run_together(order, *needed, *reader);
      if ((*needed < *reader && !together) || !out.wants("D02")) return;
      out.keep({.rule = "D02",
                .family = Family::Dependencies,
                .message = fmt::format("{} runs {} {}, which queues its operands",
                                       words::placed(context, order, *reader),
                                       together ? "together with" : "before",
                                       words::quoted(context, order.entries[*needed])),
                .labels = {{order.entries[*reader].span(), ""},
                           {order.entries[*needed].span(), "the backward is here"}},
                .help = {.text = fmt::format("move {} behind {}",
                                             words::quoted(context, order.entries[*reader]),
                                             words::quoted(context, order.entries[*needed]))},
                .witness = words::entries(context, order, {*reader, *needed})});
    });
  }
}

}  // namespace capo::rules

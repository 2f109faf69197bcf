// On every stage, a backward comes after the forward of the same microbatch.
//
//   0B0,0F0                 the activations that 0B0 reads are stored by 0F0
//
// Judges one rank at a time. Where microbatches are counted, backward_ahead says the same of the
// k-th of each. Tested by backward_before_forward_test.cpp and tests/corpus/rules/D01/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

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
      out.keep({.rule = "D01",
                .family = Family::Dependencies,
                .message = fmt::format("{} runs {} {}, whose activations it reads",
                                       words::placed(context, order, *reader),
                                       together ? "together with" : "before",
                                       words::quoted(context, order.entries[*needed])),
                .labels = {{order.entries[*reader].span(), ""},
                           {order.entries[*needed].span(), "the forward is here"}},
                .help = {.text = fmt::format("move {} behind {}",
                                             words::quoted(context, order.entries[*reader]),
                                             words::quoted(context, order.entries[*needed]))},
                .witness = words::entries(context, order, {*reader, *needed})});
    });
  }
}

}  // namespace capo::rules

// A named action stands in its rank's order once.
//
//   0F0,0B0,0B0             microbatch 0 would be run backward twice; every check that PyTorch
//   makes
//                           ahead of time passes, and its runtime stops in the middle of the step
//
// Transfers are judged with the others, where the network is. Where microbatches are counted
// nothing can repeat. Tested by repeated_action_test.cpp and tests/corpus/rules/S20/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void repeated_action(const Context& context, Diagnostics& out) {
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
        if (*before == at || !out.wants("S20")) continue;
        out.keep(
            {.rule = "S20",
             .message = fmt::format("{} runs a second time", words::placed(context, order, at)),
             .labels = {{order.entries[at].span(), "the same action again"},
                        {order.entries[*before].span(), "it runs here already"}},
             .help = {.text = "remove one of the two; is another microbatch meant?"},
             .witness = words::entries(context, order, {*before, at})});
      }
    });
  }
}

}  // namespace capo::rules

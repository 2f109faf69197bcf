// A microbatch of a chunk is run backward whole, or in an input half and a weight half; not both
// ways.
//
//   0F0,0B0,0I0,0W0         its gradient would be added twice; PyTorch's validator counts B plus
//   half of
//                           I and W over the stage, so a second one elsewhere can hide the fault
//
// Tested by split_and_whole_test.cpp and tests/corpus/rules/S22/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void split_and_whole(const Context& context, Diagnostics& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      if (order.delay_of(view.chunk) != Delay::Mixed) return;
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const auto whole = first([](Kind kind) { return kind == Kind::Backward; });
      const auto half = first(
          [](Kind kind) { return kind == Kind::BackwardInput || kind == Kind::BackwardWeight; });
      if (whole == view.positions.end() || half == view.positions.end() || !out.wants("S22"))
        return;
      const std::uint32_t later = std::max(*whole, *half);
      const std::uint32_t earlier = std::min(*whole, *half);
      out.keep({.rule = "S22",
                .message = fmt::format("microbatch {} of {} has a whole backward and a split one{}",
                                       view.microbatch, words::part(context, order, view.chunk),
                                       words::on_order(context, order)),
                .labels = {{order.entries[later].span(), "again"},
                           {order.entries[earlier].span(), "run backward here already"}},
                .help = {.text = "keep the whole backward, or the input and weight halves"},
                .witness = words::entries(context, order, {earlier, later})});
    });
  }
}

}  // namespace capo::rules

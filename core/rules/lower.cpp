#include <capo/core/rules/lower.h>

#include <capo/core/rules/context.h>
#include <capo/core/rules/wiring.h>

namespace capo {

Result<Schedule, std::string> lower(const Input& input, const CheckOptions& options) {
  const CheckResult result = check(input, options);
  if (!result.orders_clean) {
    return std::string("the orders have errors of their own; `capo check` names them");
  }
  const Context context(input, options);
  if (context.wirings().empty() || !context.wirings().front()->map().wired()) {
    return std::string("its chunks are not wired to each other; --topology wires them");
  }
  const Wiring& wiring = *context.wirings().front();
  if (!wiring.executable()) {
    return std::string("the orders wait for each other; `capo check` shows where");
  }
  if (wiring.by_megatron() && !wiring.megatron_placement()) {
    return std::string("Megatron's transfers need stages that go around the ranks in a loop");
  }
  if (wiring.by_megatron() && !wiring.megatron().faults.empty()) {
    return std::string("Megatron's runtime stops at it; `capo check` shows where");
  }
  return to_schedule(wiring.lowered(), input.schedule);
}

}  // namespace capo

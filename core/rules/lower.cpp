#include "core/rules/lower.h"

#include "core/rules/context.h"
#include "core/rules/verdict.h"
#include "core/rules/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace capo {

namespace {

template <typename Is>
bool any_step(const Context& context, Is is) {
  const auto& wirings = context.wirings();
  return std::any_of(wirings.begin(), wirings.end(), [&](const auto& wiring) {
    const auto& ranks = wiring->lowered().ranks;
    return std::any_of(ranks.begin(), ranks.end(), [&](const StepList& steps) {
      return std::any_of(steps.begin(), steps.end(), is);
    });
  });
}

// Why a wiring has no transfers that could be put in; empty if it has.
std::string_view obstacle(const Wiring& wiring) {
  if (!wiring.map().wired()) return "its chunks are not wired to each other; --topology wires them";
  if (!wiring.executable()) return "the orders wait for each other; `capo check` shows where";
  if (wiring.by_megatron() && !wiring.megatron_placement())
    return "Megatron's transfers need stages that go around the ranks in a loop";
  if (wiring.by_megatron() && !wiring.megatron().faults.empty())
    return "Megatron's runtime stops at it; `capo check` shows where";
  return "";
}

std::string_view obstacle(const Context& context, const CheckResult& result) {
  if (!result.orders_clean) return "the orders have errors of their own; `capo check` names them";
  if (context.wirings().empty()) return "there are no ranks";
  for (const auto& wiring : context.wirings()) {
    if (const std::string_view why = obstacle(*wiring); !why.empty()) return why;
  }
  const bool apart = any_step(context, [](const Step& step) { return step.part != Part::Whole; });
  return apart ? "its layers are taken apart, and no form has a notation for their parts" : "";
}

Schedule with_transfers(const Context& context) {
  const Wiring& captured = *context.wirings().front();
  const Wiring& replayed = *context.wirings().back();
  Schedule schedule = to_schedule(captured.lowered(), captured.schedule());
  if (&captured == &replayed) return schedule;
  Schedule replay = to_schedule(replayed.lowered(), replayed.schedule());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    schedule.ranks[r].replay = std::move(replay.ranks[r].order);
    schedule.ranks[r].resets = std::move(replay.ranks[r].resets);
  }
  return schedule;
}

}  // namespace

Result<Schedule, Inexpressible> lower(const Input& input, const CheckOptions& options,
                                      Beside beside) {
  const Context context(input, options);
  const CheckResult result = check(context);
  if (const std::string_view why = obstacle(context, result); !why.empty()) {
    return Inexpressible{.reason = fmt::format("no transfers can be put in: {}", why)};
  }
  Input written{.form = Form::OrderFile, .schedule = with_transfers(context)};
  written.schedule.p2p.reset();  // whoever reads it finds the transfers written
  if (beside == Beside::Drop) return std::move(written.schedule);
  CheckOptions as_written = options;
  as_written.environment.p2p.reset();
  const CheckResult again = check(written, as_written);
  if (again.verdict == result.verdict) return std::move(written.schedule);
  return Inexpressible{
      .reason = fmt::format("no form says who waits for a transfer and which communicator it goes "
                            "through; written down without that, the orders are {}",
                            name_of(again.verdict)),
      .droppable = true};
}

}  // namespace capo

// The microbatch whose forward was first overwrites main_grad, and is not the first to write it.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenModules overwriting_late(const Declared& sound, std::size_t choice) {
  auto broken = with_module(
      sound, choice,
      {.rule = "G12", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight, .microbatches = 2},
      [](Module& module) { module.flags.is_first_microbatch = true; });
  if (!broken) return std::nullopt;
  broken->subject.options.plan = {};
  const auto rank = static_cast<std::size_t>(broken->place->rank);
  const auto& layers = broken->subject.options.modules.layers[rank];
  const auto faulty = static_cast<std::int32_t>(broken->subject.options.modules.list.size()) - 1;
  const auto chunk = static_cast<std::int32_t>(
      1 + (std::find(layers.begin(), layers.end(), std::vector{faulty}) - layers.begin()));
  const auto& order = broken->subject.schedule.ranks[rank].order;
  const auto first = [&](Kind kind) {
    return std::find_if(
               order.begin(), order.end(),
               [&](const Entry& entry) { return entry.kind == kind && entry.chunk == chunk; })
        ->microbatch;
  };
  if (first(Kind::Forward) == first(Kind::BackwardWeight)) return std::nullopt;
  return broken;
}

}  // namespace capo::testing::faults

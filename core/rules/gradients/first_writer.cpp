// Whoever overwrites main_grad must be the first to write it in a step.
//
//   overwrite_main_grad     [1, 1, -1, -1.5, -1, -1.5]     every W overwrites, the last one remains
//   is_first_microbatch     F1.0 F1.1 B1.1 W1.1 B1.0 W1.0  microbatch 0 was the first forward, so
//                                                          W1.0 overwrites, and erases W1.1's
//
// Both are about a fused gradient; without fuse nobody writes main_grad. The first is for weights
// with one microbatch a step, or for a reader that takes main_grad after every microbatch. The
// second is a flag of the call: operations do not look at it, and a capture bakes in that W adds,
// so under TransformerEngine's plan there is nothing to erase. Under capo's plan the first write of
// a step overwrites, whichever it is, and the rule is silent.
//
// One finding for each module. Tested by first_writer_test.cpp and tests/corpus/rules/G12/.

#include "core/diag/diagnostics.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/gradients/gradient_entries.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace capo::rules {

namespace {

bool writes_main_grad(const Module& module) {
  return module.flags.fuse_wgrad_accumulation && !module.flags.frozen_weight;
}

bool always_overwrites(const Module& module) {
  return writes_main_grad(module) && module.flags.overwrite_main_grad;
}

// Of those that do not always.
bool overwrites_by_call(const Module& module) {
  return writes_main_grad(module) && module.flags.is_first_microbatch &&
         !(module.kind && gradients::is_operation(*module.kind));
}

// The gradients of a chunk in an order, by position; none yet: entries.size().
struct Writes {
  std::size_t first = 0;
  std::size_t second = 0;
  std::size_t of_first_forward = 0;  ///< that of the microbatch whose forward is the first
};

std::vector<Writes> writes_of(const OrderView& order) {
  const std::size_t none = order.entries.size();
  std::vector<Writes> writes(order.tally.size(), {none, none, none});
  std::vector<std::int32_t> first_forward(order.tally.size(), kNoMicrobatch);
  for (std::size_t at = 0; at < none; ++at) {
    const Entry& entry = order.entries[at];
    if (!is_compute(entry.kind)) continue;
    const auto chunk = static_cast<std::size_t>(entry.chunk) - 1;
    if (entry.kind == Kind::Forward && first_forward[chunk] == kNoMicrobatch)
      first_forward[chunk] = entry.microbatch;
    if (!makes_weight_gradient(order, entry)) continue;
    Writes& of = writes[chunk];
    std::size_t& slot = of.first == none ? of.first : of.second;
    if (slot == none) slot = at;
    if (entry.microbatch == first_forward[chunk]) of.of_first_forward = at;
  }
  return writes;
}

Diagnostic overwritten(const Context& context, const Module& module, const OrderView& order,
                       std::size_t lost, std::size_t by, const std::string& why,
                       const std::string& help) {
  Diagnostic finding{.rule = "G12",
                     .family = Family::Gradients,
                     .message = fmt::format("{} overwrites what {} wrote to main_grad: {}",
                                            words::placed(context, order, by),
                                            words::quoted(context, order.entries[lost]), why),
                     .labels = {{order.entries[lost].span(), "this gradient is lost"},
                                {order.entries[by].span(),
                                 fmt::format("module `{}` overwrites here", module.name)}},
                     .help = {.text = help},
                     .witness = words::entries(context, order, {lost, by})};
  finding.witness.kind = WitnessKind::Replay;
  return finding;
}

Diagnostic overwritten_by_all(const Context& context, const Module& module, const OrderView& order,
                              const Writes& writes) {
  return overwritten(
      context, module, order, writes.first, writes.second,
      fmt::format("module `{}` has overwrite_main_grad, and the step has {}", module.name,
                  words::count(context.microbatches(), "microbatch", "microbatches")),
      "let the weight gradient add, and clear main_grad before the step");
}

Diagnostic overwritten_late(const Context& context, const Module& module, const OrderView& order,
                            const Writes& writes) {
  return overwritten(
      context, module, order, writes.first, writes.of_first_forward,
      fmt::format("module `{}` has is_first_microbatch, and this is the microbatch whose forward "
                  "was first",
                  module.name),
      "run the weight gradient of the first forward before the others, or clear main_grad before "
      "the step and leave is_first_microbatch out");
}

}  // namespace

void first_writer(const Context& context, Diagnostics& out) {
  const std::optional<PlanKind> plan = context.options().plan.kind;
  const ModuleTable& modules = context.options().modules;
  if (plan == PlanKind::Safe || modules.layers.empty()) return;
  if (std::none_of(modules.list.begin(), modules.list.end(), [](const Module& module) {
        return always_overwrites(module) || overwrites_by_call(module);
      })) {
    return;
  }
  std::set<const Module*> reported;
  const auto report = [&](const Module* module, auto describe) {
    if (!reported.insert(module).second || !out.wants("G12")) return;
    out.keep(describe(*module));
  };
  for (const OrderView& order : context.orders()) {
    const std::vector<Writes> writes = writes_of(order);
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const Writes& of = writes[static_cast<std::size_t>(chunk) - 1];
      if (of.second == order.entries.size()) continue;
      const bool late = plan != PlanKind::Te && of.of_first_forward != of.first;
      const std::int32_t layers = distinct_layers(context, order.rank, chunk);
      for (std::int32_t layer = 0; layer < layers; ++layer) {
        const Module* module = context.module_of(order.rank, chunk, layer);
        if (always_overwrites(*module)) {
          report(module, [&](const Module& at_fault) {
            return overwritten_by_all(context, at_fault, order, of);
          });
        } else if (late && overwrites_by_call(*module)) {
          report(module, [&](const Module& at_fault) {
            return overwritten_late(context, at_fault, order, of);
          });
        }
      }
    }
  }
}

}  // namespace capo::rules

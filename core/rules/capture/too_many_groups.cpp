// A grouped product over weights of their own takes at most 64 of them.
//
//   [1, -1]     with splits on the device, the addresses of the weights are arguments of one
//               kernel, which has room for 64
//
// One weight for all groups is one address, and the split path calls one product for each group.
// Tested by too_many_groups_test.cpp and tests/corpus/rules/C05/.

#include "core/diag/diagnostics.h"
#include "core/model/module_kinds.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

constexpr std::int64_t kMostGroups = 64;

bool at_fault(const Context& /*context*/, const Module& module) {
  const bool on_device = module.splits && module.splits != Splits::Host;
  return module.kind && is_grouped(*module.kind) && on_device && !module.flags.single_weight &&
         module.shape.groups.value_or(0) > kMostGroups;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` has {} groups with a weight each: the grouped product of {} takes at most "
          "{}",
          use.module->name, *use.module->shape.groups, words::placed(context, *use.order, use.at),
          kMostGroups),
      .label = "this product has too many weights",
      .help = "set single_weight, one parameter for all groups, or split the module"};
}

constexpr ModuleRule kRule{.id = "C05",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Forward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void too_many_groups(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules

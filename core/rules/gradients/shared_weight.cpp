// PyTorch's split backward counts a weight twice that two layers of one stage share.
//
//   0F0,0I0,0W0     the input half keeps a gradient for each place where the weight is used; the
//                   weight half starts at each of them, and on its way from the later layer it
//                   passes the earlier one, which so counts a second time
//
// Concerns PyTorch's tables without a plan, and a stage that names the same module at least twice
// among its layers: on one path from output to input, which layers of a stage are. A whole backward
// is right. TransformerEngine's W has its own operands and counts each layer once, so under its
// plan such a weight is like any other. Tested by shared_weight_test.cpp and
// tests/corpus/rules/G06/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/gradients/split_by_torch.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <set>

namespace capo::rules {

namespace {

// A module that two layers of the chunk are, and whose backward PyTorch takes apart.
const Module* shared_within(const Context& context, const OrderView& order, std::int32_t chunk) {
  std::set<const Module*> seen;
  const std::int32_t layers = distinct_layers(context, order.rank, chunk);
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const Module* module = context.module_of(order.rank, chunk, layer);
    if (split_by_torch(context, *module) && !seen.insert(module).second) return module;
  }
  return nullptr;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "{} counts a weight of module `{}` twice, which two layers of {} share: PyTorch's "
              "split backward passes the earlier layer again on its way from the later one",
              words::placed(context, *use.order, use.at), use.module->name,
              words::part(context, *use.order, use.chunk)),
          .label = "adds one use of the weight twice",
          .help = "run this stage's backward whole, or give each layer a weight of its own"};
}

constexpr ModuleRule kRule{.id = "G06",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = nullptr,
                           .describe = describe};

}  // namespace

void shared_weight(const Context& context, Diagnostics& out) {
  std::set<const Module*> reported;
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (order.of(chunk).weights == 0) continue;
      const Module* module = shared_within(context, order, chunk);
      if (module == nullptr || !reported.insert(module).second || !out.wants("G06")) continue;
      const ModuleUse use{.module = module,
                          .order = &order,
                          .chunk = chunk,
                          .at = order.find(Kind::BackwardWeight, chunk, 0)};
      out.keep(module_diagnostic(context, kRule, use, Severity::Error));
    }
  }
}

}  // namespace capo::rules

#include "core/rules/check.h"

#include "core/rules/context.h"
#include "core/rules/findings.h"
#include "core/rules/stated.h"
#include "core/rules/undeclared.h"

#include <algorithm>
#include <utility>

namespace capo {

bool orders_are_clean(const Context& context) {
  Diagnostics diagnostics(1);
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr || rule.pass > Pass::Placement) continue;
    if (rule.pass > Pass::Entries && diagnostics.errors() > 0) return false;
    Findings findings(rule, diagnostics);
    rule.check(context, findings);
  }
  return diagnostics.errors() == 0;
}

namespace {

bool leaves_open(const Context& context) {
  return has_undeclared(context.schedule(), context.options().environment);
}

CheckResult as_stated(const Context& context) {
  return check_stated(context, leaves_open(context) ? findings_to_compare(context)
                                                    : context.options().findings_per_rule);
}

CheckResult under_every_value(const Context& context, CheckResult result) {
  if (leaves_open(context)) {
    judge_undeclared(context, result);
    result.diagnostics.narrow(context.options().findings_per_rule);
  }
  warn_of_weight_stream(context, result);
  return result;
}

}  // namespace

CheckResult check(const Input& input, const CheckOptions& options) {
  Context context(input, options);
  CheckResult result = as_stated(context);
  context.forget_graphs();  // each other environment has graphs of its own
  return under_every_value(context, std::move(result));
}

CheckResult check(const Context& context) {
  return under_every_value(context, as_stated(context));
}

}  // namespace capo

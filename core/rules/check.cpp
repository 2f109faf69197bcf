#include "core/rules/check.h"

#include "core/rules/context.h"
#include "core/rules/findings.h"
#include "core/rules/stated.h"
#include "core/rules/undeclared.h"

#include <algorithm>

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

CheckResult check(const Input& input, const CheckOptions& options) {
  return check(Context(input, options));
}

CheckResult check(const Context& context) {
  const std::size_t wanted = context.options().findings_per_rule;
  const bool open = has_undeclared(context.schedule(), context.options().environment);
  CheckResult result = check_stated(context, open ? findings_to_compare(context) : wanted);
  if (open) {
    judge_undeclared(context, result);
    result.diagnostics.narrow(wanted);
  }
  warn_of_weight_stream(context, result);
  return result;
}

const Diagnostic* first_finding(const Diagnostics& findings) {
  const auto& kept = findings.kept();
  const auto error = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  if (error != kept.end()) return &*error;
  return kept.empty() ? nullptr : &kept.front();
}

}  // namespace capo

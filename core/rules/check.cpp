#include <capo/core/rules/check.h>

#include <capo/core/rules/context.h>

#include <algorithm>

namespace capo {

namespace {

// Every other pass takes readable entries for granted; nothing else depends on anything, since each
// rule leaves alone what another one reports.
bool needs_entries(Pass pass) {
  return pass == Pass::Counts || pass == Pass::Order || pass == Pass::Placement;
}

}  // namespace

CheckResult check(const Input& input, const CheckOptions& options) {
  CheckResult result{.diagnostics = Diagnostics(options.findings_per_rule)};
  const Context context(input);
  bool entries_readable = true;
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr) continue;
    if (needs_entries(rule.pass) && !entries_readable) {
      if (std::find(result.skipped.begin(), result.skipped.end(), rule.pass) ==
          result.skipped.end()) {
        result.skipped.push_back(rule.pass);
      }
      continue;
    }
    rule.check(context, result.diagnostics);
    if (rule.pass == Pass::Entries) entries_readable = result.diagnostics.errors() == 0;
  }
  result.diagnostics.sort();
  result.verdict = result.diagnostics.errors() == 0 ? Verdict::Accepted : Verdict::Rejected;
  return result;
}

}  // namespace capo

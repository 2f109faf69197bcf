#include "core/profiles/consult.h"

#include <fmt/format.h>

namespace capo {

namespace {

std::optional<std::string> reason_of(const Opinion& opinion) {
  if (opinion.accepts.value_or(false)) return std::nullopt;
  return fmt::format("{} {}: {}", opinion.framework, opinion.version, opinion.reason);
}

// The first finding about memory that TransformerEngine reuses.
std::optional<std::string> hazard_in(const Input& input) {
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  const CheckResult result = check(input, options);
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.rule == "B01" || finding.rule == "B02") {
      return fmt::format("TransformerEngine's reuse of memory breaks it: {} [{}]", finding.message,
                         finding.rule);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refused_by(Recipient recipient, const Schedule& schedule) {
  const Input input{.form = Form::OrderFile, .schedule = schedule};
  switch (recipient) {
    case Recipient::Anybody:
      return std::nullopt;
    case Recipient::Torch:
      return reason_of(consult_torch(input));
    case Recipient::Mcore:
      return reason_of(consult_mcore(input, {}));
    case Recipient::Te:
      break;
  }
  auto why = reason_of(consult_te(input, {}));
  return why ? why : hazard_in(input);
}

}  // namespace capo

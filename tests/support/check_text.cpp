#include "tests/support/check_text.h"

#include "core/order/declare.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace capo::testing_support {

Found Checked::findings() const {
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : result.diagnostics.kept()) {
    const auto& tasks = diagnostic.witness.tasks;
    const std::string place = tasks.empty() ? "-" : std::to_string(tasks.front().index);
    out.push_back(fmt::format("{}@{}", diagnostic.rule, place));
  }
  return out;
}

std::vector<Diagnostic> Checked::of(Family family) const {
  std::vector<Diagnostic> out;
  for (const Diagnostic& diagnostic : result.diagnostics.kept()) {
    if (diagnostic.family == family) out.push_back(diagnostic);
  }
  return out;
}

Checked check_in(const Setting& setting, std::string text, const LoadOptions& options) {
  auto input = load(Source{.name = "<test>", .text = std::move(text)}, options);
  if (!input) {
    Checked refused;
    refused.result.diagnostics.add(input.error().refusal.finding);
    return refused;
  }
  Checked checked{.input = std::move(*input), .result = {}};
  if (setting.topology) {
    const auto misfit = declare_topology(checked.input.schedule, *setting.topology);
    if (misfit) throw std::invalid_argument(*misfit);
  }
  // Whoever does not look at weight gradients on a stream of their own wants no warning about them.
  Environment environment = setting.environment;
  environment.weight_stream = environment.has_weight_stream();
  checked.result = check(checked.input, {.environment = environment,
                                         .groups = setting.groups,
                                         .modules = setting.modules,
                                         .plan = setting.plan});
  return checked;
}

Checked check_text(std::string text, const LoadOptions& options) {
  return check_in({}, std::move(text), options);
}

Checked check_te(std::string text, TeDeclarations declarations) {
  return check_text(std::move(text), {.form = TextForm::TeList, .te = std::move(declarations)});
}

Checked check_csv(std::string text, TorchDeclarations declarations) {
  return check_text(std::move(text),
                    {.form = TextForm::TorchCsv, .torch = std::move(declarations)});
}

Checked check_module(const Module& module, std::string text, std::optional<PlanKind> plan) {
  const ModuleTable modules{.list = {module}, .layers = {{{0}}}};
  return check_in({.modules = modules, .plan = {.kind = plan, .aliases = Aliases{}}},
                  std::move(text));
}

}  // namespace capo::testing_support

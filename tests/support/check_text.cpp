#include <capo/tests/support/check_text.h>

#include <fmt/format.h>

namespace capo::testing_support {

std::vector<std::string> Checked::findings() const {
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : result.diagnostics.kept()) {
    const auto& tasks = diagnostic.witness.tasks;
    const std::string place = tasks.empty() ? "-" : std::to_string(tasks.front().index);
    out.push_back(fmt::format("{}@{}", diagnostic.rule, place));
  }
  return out;
}

Checked check_text(std::string text, const LoadOptions& options) {
  auto input = load(Source{.name = "<test>", .text = std::move(text)}, options);
  if (!input) {
    Checked refused;
    refused.result.diagnostics.add(input.error().refusal.finding);
    return refused;
  }
  Checked checked{.input = std::move(*input), .result = {}};
  checked.result = check(checked.input);
  return checked;
}

Checked check_te(std::string text, TeDeclarations declarations) {
  return check_text(std::move(text), {.form = TextForm::TeList, .te = std::move(declarations)});
}

Checked check_csv(std::string text, TorchDeclarations declarations) {
  return check_text(std::move(text),
                    {.form = TextForm::TorchCsv, .torch = std::move(declarations)});
}

}  // namespace capo::testing_support

// The report of any check is well formed: JSON and SARIF parse, and all three say the same verdict.

#include "core/input/load.h"
#include "core/profiles/consult.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "testing/generators/mutated_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

namespace capo::testing {
namespace {

Report report_on(const Input& input) {
  const ConsultOptions options{.te = {.max_graphs = 10'000}};
  return report_of(
      input, check(input, {.findings_per_rule = 5}),
      {consult_te(input, options), consult_mcore(input, options), consult_torch(input)});
}

void require_well_formed(const Report& report) {
  for (const JsonLayout layout : {JsonLayout::Indented, JsonLayout::OneLine}) {
    const std::string text = to_json(report, layout, "\"note\":1");
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    RC_ASSERT(!json.is_discarded());
    RC_ASSERT(json["verdict"].get<std::string>() == name_of(report.verdict));
    RC_ASSERT(json["diagnostics"].size() == report.diagnostics.kept().size());
    RC_ASSERT(json["input"]["note"] == 1);
    RC_ASSERT(layout == JsonLayout::Indented || text.find('\n') == std::string::npos);
  }
  const nlohmann::json sarif = nlohmann::json::parse(to_sarif({&report, 1}, "0"), nullptr, false);
  RC_ASSERT(!sarif.is_discarded());
  RC_ASSERT(sarif["runs"][0]["results"].size() == report.diagnostics.kept().size());
  for (const Diagnostic& finding : report.diagnostics.kept()) {
    RC_ASSERT(to_text(report).find("[" + std::string(finding.rule) + "]") != std::string::npos);
  }
}

RC_GTEST_PROP(Reports, OfAnyTextAreWellFormed, ()) {
  const MutatedText mutated = *mutated_text();
  const auto input =
      load(Source{.name = "<mutated>", .text = mutated.text}, {.form = mutated.form});
  if (input) {
    require_well_formed(report_on(*input));
  } else {
    require_well_formed(report_of(input.error().source, input.error().refusal));
  }
}

}  // namespace
}  // namespace capo::testing

// Everything a check found, ready to be put into words: the input's name for itself, the verdict,
// the findings, what was assumed, and what other programs would say.
//
//   error[S15]: `-1` at index 3 is a backward of chunk 1 without a forward: ...
//    --> <order>:1:12
//     |
//   1 | [1, 2, -1, -1]
//     |            ^^ no forward is left for it
//     = help: chunk 2 lacks a backward; is `-2` meant?
//
// All renderers take a Report and nothing else, so they cannot disagree. Tested by
// tests/cli/check_test.cpp, tests/schema/ and the golden texts of every rule.

#pragma once

#include "core/base/colour.h"
#include "core/diag/source.h"
#include "core/order/input.h"
#include "core/profiles/opinion.h"
#include "core/project/suppression.h"
#include "core/rules/check.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The facts that the verdict is relative to, as far as a report has to say them.
struct Setting {
  std::string_view topology = "independent";
  std::size_t ranks = 0;
  std::vector<std::int32_t> chunks;  ///< per rank
  std::int32_t microbatches = 0;
  Layers layers;                          ///< of the first rank
  std::vector<std::int32_t> delayed;      ///< chunks of the first rank that delay W
  bool delayed_everywhere = false;        ///< every chunk delays; `delayed` is then empty
  std::vector<std::string_view> assumed;  ///< facts that were not declared
  bool communicates = false;              ///< ranks transfer, so `across` matters
  Environment across;                     ///< how they transfer
  std::vector<Undeclared> undeclared;     ///< as CheckResult has it
  std::size_t groups = 0;                 ///< groups of ranks whose collectives are declared
  std::optional<PlanKind> plan;           ///< nullopt if none was declared
  std::vector<std::string> modules;       ///< names of those declared, in the order of the text
};

[[nodiscard]] Setting setting_of(const Input& input, const CheckResult& result);

/// The sentence of reports about an order of which CheckResult::left_unasked holds.
inline constexpr std::string_view kLeftUnasked =
    "TransformerEngine's reuse of memory could hurt this order; one so large is looked at only "
    "with --plan te";

struct Report {
  const Source* source = nullptr;  ///< never null; outlives the report
  Verdict verdict = Verdict::NoVerdict;
  Diagnostics diagnostics;
  std::vector<Pass> skipped;
  std::optional<Setting> environment;  ///< nullopt if the input was refused
  std::optional<bool> finishes;        ///< as CheckResult has it
  std::optional<PlanResult> plan;      ///< as CheckResult has it
  bool left_unasked = false;           ///< as CheckResult has it
  std::vector<Opinion> opinions;
  std::vector<std::string> notes;  ///< as Input has them
  /// The findings that suppress() took out; the verdict is then that of the others.
  std::vector<Suppressed> suppressed;
};

[[nodiscard]] Report report_of(const Input& input, CheckResult result,
                               std::vector<Opinion> opinions);
[[nodiscard]] Report report_of(const Source& source, const Refusal& refusal);

/// How many findings of that severity are suppressed.
[[nodiscard]] std::size_t suppressed_of(const Report& report, Severity severity);

/// The two interesting cases, in words; empty if verdict and opinion agree. An order is wrong
/// whether its errors are suppressed or not.
[[nodiscard]] std::string_view disagreement(const Report& report, const Opinion& opinion);

enum class ShownFindings {
  Grouped,  ///< findings of one pattern are one, and a report fits a screen
  All,      ///< each with its places
};

/// The report for a person at a terminal, in rustc's manner. A line too long for a terminal is
/// shown as a window around the place.
[[nodiscard]] std::string to_text(const Report& report, Colour colour = Colour::Off,
                                  ShownFindings findings = ShownFindings::Grouped);

/// The last lines of that report: the verdict, and what it is relative to.
[[nodiscard]] std::string verdict_text(const Report& report);

enum class JsonLayout {
  Indented,  ///< for people who look at it
  OneLine,   ///< for JSON lines
};

/// The report for a program: schema 1, described in docs/schema/report.schema.json. `extra_input`
/// is the inside of a JSON object (`"note":"..."`), handed through under "input".
[[nodiscard]] std::string to_json(const Report& report, JsonLayout layout,
                                  const std::string& extra_input = {});

/// The reports as one run of SARIF 2.1.0, within what GitHub's code scanning takes: it shows 5,000
/// results of a run and 100 locations of a result. The run says in a notification how much is left
/// out, so that a cut is never mistaken for a clean file.
[[nodiscard]] std::string to_sarif(std::span<const Report> reports, std::string_view version);

/// Every fact that the verdict is relative to, where it came from, and what it means; `capo check
/// --explain-model` adds it to a report. Empty for an input that was refused.
[[nodiscard]] std::string explain_setting(const Report& report);

}  // namespace capo

// Everything a check found, ready to be put into words: the input's name for itself, the verdict,
// the findings, what was assumed, and what other programs would say.
//
// The three renderers (text, JSON, SARIF) take this and nothing else, so they cannot disagree.

#pragma once

#include "core/diag/source.h"
#include "core/order/input.h"
#include "core/profiles/opinion.h"
#include "core/rules/check.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// What the verdict is relative to, as far as a report has to say it.
struct Setting {
  std::string_view topology = "independent";
  std::size_t ranks = 0;
  std::vector<std::int32_t> chunks;  ///< per rank
  std::int32_t microbatches = 0;
  Layers layers;                          ///< of the first rank
  std::vector<std::int32_t> delayed;      ///< of the first rank: chunks that delay W
  bool delayed_everywhere = false;        ///< every chunk delays; `delayed` is then empty
  std::vector<std::string_view> assumed;  ///< facts that were not declared
  bool communicates = false;              ///< ranks transfer; what follows matters
  Environment across;                     ///< how
  std::size_t groups = 0;                 ///< groups of ranks whose collectives are declared
  std::optional<PlanKind> plan;           ///< where declared
  std::vector<std::string> modules;       ///< names of those declared, in the order of the text
};

[[nodiscard]] Setting setting_of(const Input& input, const CheckResult& result);

/// What reports say of an order of which CheckResult::left_unasked holds.
inline constexpr std::string_view kLeftUnasked =
    "TransformerEngine's reuse of memory could hurt this order; one so large is looked at only "
    "with --plan te";

struct Report {
  const Source* source = nullptr;  ///< never null; outlives the report
  Verdict verdict = Verdict::NoVerdict;
  Diagnostics diagnostics;
  std::vector<Pass> skipped;
  std::optional<Setting> environment;  ///< nothing where the input was refused
  std::optional<bool> finishes;        ///< as CheckResult has it
  std::optional<PlanResult> plan;      ///< likewise
  bool left_unasked = false;           ///< likewise
  std::vector<Opinion> opinions;
};

[[nodiscard]] Report report_of(const Input& input, CheckResult result,
                               std::vector<Opinion> opinions);
[[nodiscard]] Report report_of(const Source& source, const Refusal& refusal);

[[nodiscard]] std::string_view name_of(WitnessKind kind);
[[nodiscard]] std::string_view name_of(Severity severity);

/// The two interesting cases, in words; empty where verdict and opinion agree.
[[nodiscard]] std::string_view disagreement(Verdict verdict, const Opinion& opinion);

}  // namespace capo

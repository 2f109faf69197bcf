// Suppressions: findings that a project knows of and lives with, each with its reason.
//
//   rank 0: F1.0 F1.1 B1.0 B1.1   # capo: allow E01 at B1.0: sends are drained before the next
//   graph
//
// A comment of an .order file or of a TE list allows findings of one rule on its line, or, where it
// stands alone, on the next line; `at` narrows that to one entry as it is written. A finding about
// the whole input stands on the first line. The file capo.toml says the same of files, ranks and
// indices (project_file.h).
//
// A finding that is suppressed is taken out of the list of a check, and kept beside it with the
// reason: every report counts and prints it. Only findings that nothing else is judged on can be:
// an error of shape, placement, routing or transfers leaves memory without a ground to judge, and
// what nobody judged must not be accepted. Suppressions change what `check` reports, and no plan:
// what is run, simulated or certified has the verdict without them. Tested by suppression_test.cpp
// and tests/corpus/cli/suppress/.

#pragma once

#include "core/diag/source.h"
#include "core/input/load.h"
#include "core/rules/check_result.h"
#include "core/rules/rule.h"
#include "core/text/refusal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capo {

struct Suppression {
  const Rule* rule = nullptr;  ///< never null
  std::string reason;          ///< never empty
  std::string written_at;      ///< "step.order:4:31"
  /// Its place in the source of the order; nullopt if it stands in capo.toml.
  std::optional<Span> span;

  // The rest says which findings it covers; a member that says nothing covers all.
  std::optional<Span> line;  ///< the bytes in which the finding stands
  std::string entry;         ///< the entry as written; empty: any
  std::optional<std::int32_t> rank;
  std::optional<std::size_t> index;  ///< as messages count, from 0; only with a rank
};

/// A finding with the suppression that covers it.
struct Suppressed {
  Diagnostic finding;
  Suppression by;
};

/// Whether findings of the rule can be suppressed: no other check rests on what it found.
[[nodiscard]] bool can_be_suppressed(const Rule& rule);

/// The rule of that id or name, or the reason why none of it can be suppressed.
[[nodiscard]] Result<const Rule*, std::string> suppressible_rule(std::string_view name);

/// The suppressions in the comments of a text; none of a form without comments.
[[nodiscard]] Read<std::vector<Suppression>> suppressions_in(const Source& source, TextForm form);

/// So many findings of a rule are kept for suppress(), and one beyond them stays an error.
inline constexpr std::size_t kMostSuppressed = 10'000;

/// Takes the findings that are covered out of `result`, whose verdict follows. A suppression that
/// covers none, though its rule was judged, becomes a warning. Precondition: of each rule as many
/// findings as `kMostSuppressed` were kept.
[[nodiscard]] std::vector<Suppressed> suppress(CheckResult& result, const Input& input,
                                               std::span<const Suppression> suppressions);

}  // namespace capo

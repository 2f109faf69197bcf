// A text checked as `capo check` would, for tests that look at the findings and not at the process.

#pragma once

#include <capo/core/rules/check.h>
#include <capo/core/text/load.h>

#include <string>
#include <vector>

namespace capo::testing_support {

struct Checked {
  Input input;  ///< empty where the text was refused
  CheckResult result;

  /// "S15@3": every finding as its rule and the index of its first witness; "S13@-" without one.
  [[nodiscard]] std::vector<std::string> findings() const;
  [[nodiscard]] bool accepted() const { return result.verdict == Verdict::Accepted; }
};

/// Reads and checks; a refused text gives verdict NoVerdict and the refusal as the finding.
[[nodiscard]] Checked check_text(std::string text, const LoadOptions& options = {});

/// As a TE list with declarations.
[[nodiscard]] Checked check_te(std::string text, TeDeclarations declarations = {});
/// As a PyTorch table.
[[nodiscard]] Checked check_csv(std::string text, TorchDeclarations declarations = {});

}  // namespace capo::testing_support

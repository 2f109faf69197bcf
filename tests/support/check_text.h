// A text checked as `capo check` would, for tests that look at the findings and not at the process.

#pragma once

#include "core/input/load.h"
#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/rules/check.h"

#include <optional>
#include <string>
#include <vector>

namespace capo::testing_support {

/// "S15@3": findings as their rule and the index of their first witness; "S13@-" without one.
using Found = std::vector<std::string>;

struct Checked {
  Input input;  ///< empty where the text was refused
  CheckResult result;

  [[nodiscard]] Found findings() const;
  /// The findings of one family alone, in their order.
  [[nodiscard]] std::vector<Diagnostic> of(Family family) const;
  /// The finding that a report lists first, of which there is one.
  [[nodiscard]] const Diagnostic& first() const { return result.diagnostics.kept().at(0); }
  [[nodiscard]] bool accepted() const { return result.verdict == Verdict::Accepted; }
};

/// Reads and checks; a refused text gives verdict NoVerdict and the refusal as the finding.
[[nodiscard]] Checked check_text(std::string text, const LoadOptions& options = {});

/// Checks a TE list with declarations.
[[nodiscard]] Checked check_te(std::string text, TeDeclarations declarations = {});
/// Checks a PyTorch table.
[[nodiscard]] Checked check_csv(std::string text, TorchDeclarations declarations = {});

/// A user's declarations beside the text: how chunks follow each other, how ranks communicate,
/// which modules layers are and whose plan it is.
struct Setting {
  Environment environment;
  /// Given to declare_topology(); nullopt leaves what the text states.
  std::optional<Topology> topology;
  std::vector<CollectiveGroup> groups;
  ModuleTable modules;
  PlanOptions plan;
};

/// Reads, declares and checks. A topology that does not fit the text throws std::invalid_argument.
[[nodiscard]] Checked check_in(const Setting& setting, std::string text,
                               const LoadOptions& options = {});

/// With every layer of the order being `module`, of which no operand is a shared buffer.
[[nodiscard]] Checked check_module(const Module& module, std::string text,
                                   std::optional<PlanKind> plan = PlanKind::Te);

}  // namespace capo::testing_support

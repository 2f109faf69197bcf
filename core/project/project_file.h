// capo.toml: what a project says once for all its orders, read from its text.
//
//   profile = ["te", "torch"]      # defaults of flags; a flag that is given wins
//   plan = "te"
//   comm = "per-pair"
//
//   [[suppress]]
//   file = "orders/step.order"     # from the folder of capo.toml
//   rule = "E01"
//   rank = 0                       # rank and index may be left out
//   index = 12
//   reason = "sends are drained before the next graph"
//
// The nearest capo.toml from the folder of an order upwards holds for it, and no other. A key that
// capo does not know is refused with its place. Finding the file is the caller's affair.
// docs/cli.md lists the keys. Tested by project_file_test.cpp and tests/corpus/cli/suppress/.

#pragma once

#include "core/diag/source.h"
#include "core/model/environment.h"
#include "core/model/module_kinds.h"
#include "core/model/plan_options.h"
#include "core/project/suppression.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

inline constexpr std::string_view kProjectFile = "capo.toml";

/// How `check` reports.
enum class ReportFormat : std::uint8_t { Text, Json, Sarif };

/// "text", "json", "sarif".
[[nodiscard]] std::string_view name_of(ReportFormat format);

struct Project {
  struct InFile {
    std::string file;  ///< from the folder of capo.toml, with `/` between folders
    Suppression suppression;
    Span span;  ///< of the name in the text
  };

  std::vector<std::string> profiles;
  std::optional<ReportFormat> format;
  std::optional<PlanKind> plan;
  std::vector<ModuleKind> modules;
  std::optional<Communicators> communicators;
  std::optional<TransferMode> transfers;
  std::string model;  ///< a file, from the folder of capo.toml
  std::vector<InFile> suppressions;

  /// Those of one file, named as they name it.
  [[nodiscard]] std::vector<Suppression> suppressions_of(std::string_view file) const;
};

/// Reads the text of a capo.toml.
[[nodiscard]] Read<Project> read_project(const Source& source);

}  // namespace capo

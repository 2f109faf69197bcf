// What `capo check` was asked for, beside its input.

#pragma once

#include "cli/options/judged_input.h"
#include "core/profiles/consult.h"
#include "core/rules/check.h"

#include <string>
#include <vector>

namespace capo::cli {

struct CheckRequest : InputRequest {
  std::string batch;
  std::vector<std::string> profiles{"sound"};
  std::string format = "text";
  std::string colour = "auto";
  bool explain_model = false;
  unsigned threads = 1;  ///< of a batch
  std::size_t findings_per_rule = Diagnostics::kDefaultLimit;
  ConsultOptions consult;

  /// How to check under what was declared.
  [[nodiscard]] CheckOptions check_options(const Model& declared) const;
  /// What the profiles that were asked for say.
  [[nodiscard]] std::vector<Opinion> opinions(const Input& input) const;
};

/// The check, and of a list that is not sound but that TransformerEngine captures under plan `te`
/// what its graphs would do to each other.
[[nodiscard]] CheckResult check_planned(const Input& input, const CheckOptions& options);

/// One JSON result for each line of a JSON-lines file.
[[nodiscard]] int check_batch(const CheckRequest& request);

}  // namespace capo::cli

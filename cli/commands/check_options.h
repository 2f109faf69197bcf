// What `capo check` was asked for, beside its input.

#pragma once

#include <capo/cli/input_options.h>
#include <capo/core/profiles/consult.h>
#include <capo/core/rules/check.h>

#include <string>
#include <vector>

namespace capo::cli {

struct CheckRequest {
  InputOptions input;
  std::string batch;
  std::vector<std::string> profiles{"sound"};
  std::string format = "text";
  std::string colour = "auto";
  CheckOptions check;
  ConsultOptions consult;

  /// What the profiles that were asked for say.
  [[nodiscard]] std::vector<Opinion> opinions(const Input& input) const;
};

/// One JSON result for each line of a JSON-lines file.
[[nodiscard]] int check_batch(const CheckRequest& request);

}  // namespace capo::cli

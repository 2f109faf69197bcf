// The options of `capo check`, for one input and for a batch.

#pragma once

#include "cli/options/judged_input.h"
#include "core/profiles/consult.h"
#include "core/rules/check.h"

#include <string>
#include <vector>

namespace capo::cli {

enum class Profile { Sound, Te, Mcore, Torch };
enum class CheckFormat { Text, Json, Sarif };
enum class ColourChoice { Auto, Always, Never };

struct CheckRequest : InputRequest {
  std::string batch;
  std::vector<Profile> profiles{Profile::Sound};
  CheckFormat format = CheckFormat::Text;
  ColourChoice colour = ColourChoice::Auto;
  bool explain_model = false;
  std::string fix;       ///< a file for the order that one edit makes acceptable; empty: none
  bool all = false;      ///< findings of one pattern are not put together
  unsigned threads = 1;  ///< threads of a batch
  std::size_t findings_per_rule = Diagnostics::kDefaultLimit;
  ConsultOptions consult;

  /// The options of a check under what was declared.
  [[nodiscard]] CheckOptions check_options(const Model& declared) const;
  [[nodiscard]] bool asks(Profile profile) const;
  /// The opinions of the profiles that were asked for.
  [[nodiscard]] std::vector<Opinion> opinions(const Input& input) const;
};

/// The check. For a list that is unsound and that TE captures all the same under plan `te`, the
/// result also says what its graphs would do to each other.
[[nodiscard]] CheckResult check_planned(const Input& input, const CheckOptions& options);

/// Prints one JSON result for each line of a JSON-lines file. Returns the exit code.
[[nodiscard]] int check_batch(const CheckRequest& request);

}  // namespace capo::cli

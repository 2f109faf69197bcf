// The options of `capo check`, for files and for a batch.

#pragma once

#include "cli/options/judged_input.h"
#include "cli/options/terminal.h"
#include "core/profiles/consult.h"
#include "core/project/project_file.h"
#include "core/rules/check.h"
#include "core/rules/given_plan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::cli {

/// The lines of a batch that make its exit code other than 0.
enum class FailOn { NoVerdict, Rejected };

/// A plan that others made, with its text.
struct GivenFile {
  Source source;
  GivenPlan plan;
};

struct CheckRequest : InputRequest {
  std::vector<std::string> more;  ///< files beside that of `input`
  std::string batch;
  FailOn fail_on = FailOn::NoVerdict;
  bool verdicts = false;  ///< of a batch's lines the verdicts alone, without words
  std::string output = "-";
  std::vector<AskedProfile> profiles{AskedProfile{}};
  ReportFormat format = ReportFormat::Text;
  ColourChoice colour = ColourChoice::Auto;
  bool explain_model = false;
  std::string fix;       ///< a file for the order that one edit makes acceptable; empty: none
  std::string plan_out;  ///< a file for the certificate of capo's plan; empty: none
  std::string plan_in;   ///< a file with the plan that is judged; empty: none
  std::shared_ptr<const GivenFile> given;        ///< what stands in `plan_in`, once it is read
  bool all = false;                              ///< findings of one pattern are not put together
  unsigned threads = 1;                          ///< threads of a batch
  std::optional<std::size_t> findings_per_rule;  ///< nullopt: as the format has it
  ConsultOptions consult;

  /// The options of a check under what was declared.
  [[nodiscard]] CheckOptions check_options(const Model& declared) const;
  [[nodiscard]] bool asks(Profile profile) const;
  /// The opinions of the profiles that were asked for.
  [[nodiscard]] std::vector<Opinion> opinions(const Input& input, const ModuleTable& modules,
                                              const Environment& of_modules) const;
};

/// Writes the report of each file. Returns the exit code.
[[nodiscard]] int check_files(const CheckRequest& request);

/// Writes one JSON result for each line of a JSON-lines file. Returns the exit code.
[[nodiscard]] int check_batch(const CheckRequest& request);

}  // namespace capo::cli

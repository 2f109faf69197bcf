#include "cli/options/refuse_simulation.h"

#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/report/report.h"
#include "core/report/text_report.h"

#include <fmt/format.h>

namespace capo::cli {

int refuse_simulation(const Input& input, const CannotSimulate& why) {
  if (why.check.verdict == Verdict::Rejected) {
    print_stderr(to_text(report_of(input, why.check, {})));
  }
  print_stderr(fmt::format("error: {} cannot be simulated: {}\n", input.source.name, why.why));
  return kFindings;
}

}  // namespace capo::cli

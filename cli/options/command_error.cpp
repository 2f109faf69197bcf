#include "cli/options/command_error.h"

#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/report/report.h"

namespace capo::cli {

int refuse(const CommandError& error) {
  if (const auto* failed = std::get_if<Error>(&error)) return fail(*failed);
  const auto& refused = std::get<RefusedInput>(error);
  print_stderr(to_text(report_of(refused.source, refused.refusal)));
  return exit_code_of(refused.refusal.kind);
}

}  // namespace capo::cli

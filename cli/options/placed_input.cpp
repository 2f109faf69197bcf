#include "cli/options/placed_input.h"

#include "cli/options/files.h"
#include "core/report/report.h"
#include "core/report/text_report.h"

#include <utility>

namespace capo::cli {

namespace {

int refuse(const RefusedInput& refused) {
  print_stderr(to_text(report_of(refused.source, refused.refusal)));
  return exit_code_of(refused.refusal.kind);
}

}  // namespace

std::variant<PlacedInput, int> load_placed(const InputOptions& options,
                                           const EnvironmentOptions& environment) {
  Loaded loaded = load_input(options);
  if (const auto* error = std::get_if<Error>(&loaded)) return fail(*error);
  if (const auto* refused = std::get_if<RefusedInput>(&loaded)) return refuse(*refused);
  PlacedInput placed{.input = std::get<Input>(std::move(loaded))};
  auto declared = environment.resolve(options.limits);
  if (const auto* error = std::get_if<Error>(&declared)) return fail(*error);
  if (const auto* refused = std::get_if<RefusedInput>(&declared)) return refuse(*refused);
  placed.model = std::get<Model>(std::move(declared));
  if (const auto error =
          place_or_throw(environment, placed.input.schedule, placed.model, options.limits)) {
    return fail(*error);
  }
  return placed;
}

}  // namespace capo::cli

// The request of `capo run`, and what it tells: why nothing was run, why a run broke off, and the
// report of one that came to its end, each in the form that was asked for (run_reported.cpp). How
// an order comes to run, in one process or in several, is in run.cpp.
//
// Tested by tests/cli/run_test.cpp and, of several processes, by tests/cli/mpi_test.cpp.

#pragma once

#include "cli/options/choice.h"
#include "cli/options/device.h"
#include "cli/options/judged_input.h"
#include "cli/options/launched.h"
#include "core/rules/verify.h"
#include "run/report.h"
#include "run/run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::cli {

struct RunRequest : InputRequest {
  Device device = Device::Auto;
  TextOrJson format = TextOrJson::Text;
  std::string timeline;
  bool unchecked = false;
  bool no_poison = false;
  bool predict = false;
  std::optional<double> warm_up;  ///< seconds
  std::int32_t replicas = 1;
  TransportRequest transport;
  Launched* launched = nullptr;  ///< null: all ranks are in this process
  run::RunOptions options;
};

/// Tells why nothing was run of the order that is called `name`. Returns `code`.
[[nodiscard]] int tell_why_not(const RunRequest& request, std::string_view engine,
                               std::string_view verdict, const std::string& name,
                               const std::string& reason, const CheckResult* result, int code);

/// Tells what stands in the way of a run, with the verdict that says so. Returns the exit code.
[[nodiscard]] int refuse_unverified(const JudgedInput& judged, const NotVerified& why,
                                    const RunRequest& request, const CheckOptions& options,
                                    run::Engine& engine);

/// Tells why a run was refused or broke off; one that broke off ends all processes that were
/// launched together for it. Returns the exit code.
[[nodiscard]] int report_failure(const run::RunFailure& failure, const RunRequest& request,
                                 const PlannedStep& step, std::string_view engine);

/// Writes the report and the measured timeline. Returns the exit code.
[[nodiscard]] int write_run(const run::RunReport& report, const PlannedStep& step,
                            const std::vector<std::string>& assumed, const RunRequest& request);

}  // namespace capo::cli

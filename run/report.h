// A run in words, as JSON and as a timeline.
//
// JSON follows docs/schema/run.schema.json; same run, same bytes but for times. A victim is [chunk,
// microbatch], with its rank in front where the schedule has several. The timeline is a Chrome
// trace as the simulator's: a process a rank, a thread a stream, microseconds. Tested by
// tests/cli/run_test.cpp and tests/schema/.

#pragma once

#include "core/order/schedule.h"
#include "core/rules/verify.h"
#include "core/timeline/timeline.h"
#include "run/run.h"

#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

/// `assumed`: what was not declared.
[[nodiscard]] std::string text_report(const RunReport& report, const PlannedStep& step,
                                      const std::vector<std::string>& assumed);
[[nodiscard]] std::string json_report(const RunReport& report, const PlannedStep& step);
struct Reason {
  std::string_view reason;
  std::string_view help = {};  ///< may be empty
};
/// Of a run that was not, or that broke off: why. `result`: whose findings tell more, or null.
[[nodiscard]] std::string json_refusal(std::string_view verdict, std::string_view engine,
                                       const Reason& reason, const CheckResult* result);
/// "rejected for B01, E01".
[[nodiscard]] std::string reason_of(const CheckResult& result);
/// The last replay of actions, to be drawn. It refers to the report, which outlives it.
[[nodiscard]] Timeline timeline_of(const RunReport& report, const Schedule& schedule);

}  // namespace capo::run

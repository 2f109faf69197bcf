// A picture needs two things besides times: where each finding stands, and a timeline for orders
// that have none.
//
//   check() -> findings -> alarms_of() -> places and red arrows in a timeline
//
// An order that cannot run is listed: an entry is one unit long and stands at its index. Findings
// name entries by rank and index; a task is found by the entry that it is, or was made for. Tested
// by picture_of_test.cpp and tests/cli/draw_test.cpp.

#pragma once

#include "core/order/input.h"
#include "core/report/report.h"
#include "core/timeline/picture.h"

#include <string>
#include <vector>

namespace capo {

/// The orders of capture as they stand, without times.
[[nodiscard]] Timeline listed(const Input& input);

/// The findings of a report at their places in a timeline of the report's input. A finding about
/// the input as a whole has no place.
[[nodiscard]] std::vector<Alarm> alarms_of(const Input& input, const Report& report,
                                           const Timeline& timeline);

/// The picture of a report's input, whose words the report has. `why_listed`: the reason why the
/// timeline has no times; empty: it has some.
[[nodiscard]] Picture picture_of(const Input& input, const Report& report, Timeline timeline,
                                 const std::string& why_listed);

}  // namespace capo

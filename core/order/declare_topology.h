// A topology declared beside a schedule that may state one itself.
//
// A bare TE list says nothing, and takes what is declared. An order that places its stages is not
// overruled: the declaration must agree, or the two are not about the same model. Tested by
// declare_topology_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo {

/// `stages`: under Custom, of each rank's chunks. Independent unwires whatever was stated. The
/// reason why the two do not fit, and the schedule unchanged; nothing if they do.
[[nodiscard]] std::optional<std::string> declare_topology(
    Schedule& schedule, Topology topology,
    const std::vector<std::vector<std::int32_t>>& stages = {});

}  // namespace capo

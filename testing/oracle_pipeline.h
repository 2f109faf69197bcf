// Lowered orders as the oracle's executor takes them. The oracle includes nothing of the product,
// so that no mistake can hide in both; this is the one place where the two meet.
//
// Left out is what neither computes nor transfers. Tested by oracle_pipeline_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/model/environment.h"
#include "testing/oracle/transfers.h"

namespace capo::testing {

[[nodiscard]] oracle::Pipeline oracle_pipeline(const Lowered& lowered, const StageMap& map,
                                               const Environment& environment);

}  // namespace capo::testing

// Fills in what a run needs and a check does not: every size, and what modules keep.
//
// Undeclared sizes take small defaults, so that an order runs as typed; the report names them. Each
// layer becomes a module of its own use: it delays its weight gradients where the order delays any
// of them. What a module keeps from forward to backward, and where its split sizes lie, follow from
// the shape, since they are capo's own modules. The plan is `safe` unless declared.
//
// Tested by complete_model_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/rules/check_options.h"

#include <string>
#include <vector>

namespace capo::run {

struct CompletedModel {
  CheckOptions options;
  std::vector<std::string> assumed;  ///< the values that were not declared: "tokens 8"
};

/// Complete for a schedule whose orders are sound; otherwise only what is known is filled in.
[[nodiscard]] CompletedModel complete_model(const CheckOptions& declared, const Schedule& schedule);

/// Gradients of modules that were named by their kinds alone accumulate into a buffer of the
/// parameter's, as in every run that people do.
void fuse_gradients(ModuleTable& modules);

}  // namespace capo::run

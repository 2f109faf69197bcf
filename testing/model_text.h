// A model.json of what is declared: how ranks communicate, groups, plan, modules and layers; of a
// Model its costs and topology too.
//
//   {"schema":1,"communicators":"per-pair","modules":{"m":{"kind":"linear"}},"layers":[[["m"]]]}
//
// Not: limits of a plan, which are flags. Tested by model_text_test.cpp and
// arbitrary_model_test.cpp: it reads back as what was declared.

#pragma once

#include "core/model/model.h"
#include "core/rules/check_options.h"

#include <string>

namespace capo::testing {

[[nodiscard]] std::string model_text(const Model& model);
[[nodiscard]] std::string model_text(const CheckOptions& declared);

}  // namespace capo::testing

// Configurations of models that are published, by the names that people give them.
//
//   deepseek-v3, qwen3-235b, mixtral-8x7b, llama3-70b, and tiny for tests
//
// Sizes are those of the publication that `source` names, `division` says where the degrees and
// the microbatch come from. Tested by ready_models_test.cpp, which holds counts of parameters
// against the published ones.

#pragma once

#include "core/model/configuration.h"

#include <span>
#include <string_view>

namespace capo {

struct ReadyModel {
  std::string_view name;
  std::string_view title;
  std::string_view source;    ///< of the sizes
  std::string_view division;  ///< over ranks, the microbatch, and how products are quantized
  ModelConfiguration configuration;
};

[[nodiscard]] std::span<const ReadyModel> ready_models();
/// Null if there is none of that name.
[[nodiscard]] const ReadyModel* ready_model_named(std::string_view name);

}  // namespace capo

// Megatron's own orders with layers as graphs, over the configurations that people run: pipelines
// of 2 to 8 ranks, 1 to 4 chunks of the model on each, 1 to 4 layers a chunk, even and uneven, and
// microbatches in short and long steps, under both ways of calling transfers.

#pragma once

#include "core/model/environment.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace capo::testing_support {

struct GridStep {
  std::int64_t pipeline = 0;
  std::int64_t virtual_stages = 0;
  std::int64_t microbatches = 0;
  std::vector<std::int64_t> layers;  ///< of each chunk of the model on a rank
  MegatronCalls calls = MegatronCalls::Batch;
};

[[nodiscard]] std::vector<GridStep> megatron_grid();

/// "pp 2 vp 1 m 2 layers 1 batch".
[[nodiscard]] std::string name_of(const GridStep& step);

/// The order of all ranks, with expert parallel overlap and delayed weight gradients.
[[nodiscard]] Input input_of(const GridStep& step);

/// Plan te, and each layer a grouped MLP.
[[nodiscard]] CheckOptions grid_options();

}  // namespace capo::testing_support

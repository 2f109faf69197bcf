// The attention between two products, and its gradients, whatever the products read.
//
// It is private to modules/, whose files share it. Tested by
// tests/run/steps/attention_runs_test.cpp.

#pragma once

#include "run/modules/launches.h"

#include <cstddef>

namespace capo::run {

/// A forward does not touch the gradients.
struct HeadPlaces {
  std::byte* qkv = nullptr;   ///< (tokens, qkv columns): queries, keys and values of all heads
  std::byte* y = nullptr;     ///< (tokens, heads * dim)
  float* log_sums = nullptr;  ///< (tokens, heads), from F to B
  std::byte* dy = nullptr;    ///< the gradient of y
  std::byte* dqkv = nullptr;  ///< that of qkv, which is read until all of it is there
  float* inner = nullptr;     ///< (tokens, heads), from one kernel of B to the next
};

void launch_attention(const LayerShape& shape, const HeadPlaces& places, const Sink& launch);
void launch_attention_gradients(const LayerShape& shape, const HeadPlaces& places,
                                const Sink& launch);

}  // namespace capo::run

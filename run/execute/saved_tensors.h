// A framework that offloads: backwards find every saved tensor as another object, at another
// address.
//
// What was saved are the input, what the forward kept, and the weights; a W finds a copy of what
// its B left. Gradients must land in the original parameter all the same. In eager execution only,
// since a graph reads where its capture did. Tested by tests/run/steps/saved_tensors_test.cpp.

#pragma once

#include "run/execute/execution.h"
#include "run/modules/layer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace capo::run {

class SavedTensors {
 public:
  explicit SavedTensors(Stage& stage) : stage_(stage) {}

  /// Leads a backward or weight gradient to copies; a forward saves what it has.
  void substitute(const StepLayer& layer, const Work& work, LayerPlaces& places,
                  LayerParameters& parameters);

 private:
  [[nodiscard]] std::byte* copy_of(std::byte* saved, std::int64_t bytes);
  [[nodiscard]] GroupedTensor copy_of(const StepLayer& layer, Role role);

  Stage& stage_;
  std::map<std::pair<std::size_t, std::int32_t>, LayerPlaces> left_;  // by layer and microbatch
};

}  // namespace capo::run

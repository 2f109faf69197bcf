// A layer and microbatch of a step as its kernels see it: where its planned buffers lie, what goes
// with it, its parameters, and where their gradients go.
//
// Tested through tests/run/.

#pragma once

#include "run/execute/buffer_memory.h"
#include "run/execute/execution.h"
#include "run/execute/step_outputs.h"
#include "run/modules/layer.h"
#include "run/setup/deposits.h"

namespace capo::run {

[[nodiscard]] constexpr bool is_weight(const Work& work) {
  return work.kind == Kind::BackwardWeight;
}

class LayerView {
 public:
  LayerView(const Stage& stage, BufferMemory& memory, const Outcome& outcome,
            const Deposits& deposits)
      : stage_(stage), memory_(memory), outcome_(outcome), deposits_(deposits) {}

  [[nodiscard]] LayerPlaces places(std::int32_t rank, const Work& work, std::int32_t layer) const;
  [[nodiscard]] LayerSide side(const StepLayer& layer, const Work& work,
                               const LayerPlaces& places) const;
  [[nodiscard]] LayerParameters parameters(const StepLayer& layer) const;
  [[nodiscard]] LayerTargets targets(const StepLayer& layer, const Work& work) const;

 private:
  const Stage& stage_;
  BufferMemory& memory_;
  const Outcome& outcome_;
  const Deposits& deposits_;
};

}  // namespace capo::run

// What a layer launches: forward, backward (the input's gradient, and, where it is whole, those of
// the parameters), and the weight gradients apart.
//
//   linear, grouped-linear, ...   y = x w^T               one_product.cpp
//   layernorm-linear              y = norm(x) w^T         likewise
//   layernorm-mlp, grouped-mlp    fc2(swiglu(fc1(x)))     mlp.cpp
//
// A backward that is not whole leaves W all that it needs in the buffers that the plan knows of:
// the input and the incoming gradient themselves or copies, and what the forward kept. The order of
// launches and every address in them is the same in eager execution, capture and replay.
//
// What is kept from forward to backward (`activations`), one behind the other, each aligned:
//   one product:  a copy of the input, or the norm's output; nothing where W reads the input itself
//   mlp:          that, the first product's output (B turns it into its gradient in place), the
//                 activation's output, and room for its gradient
//
// A split path launches a product for each group, by sizes that are on the host: what a graph would
// bake in. Tested by tests/run/modules/ against float64.

#pragma once

#include "run/modules/layer.h"

namespace capo::run {

/// How far a backward goes.
enum class Reach : std::uint8_t {
  Whole,      ///< weight gradients as well
  InputHalf,  ///< they are left to W
};

/// Bytes of `activations`.
[[nodiscard]] std::int64_t kept_bytes(const LayerShape& shape);

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch);
/// The targets of norms are written here in any case; those of the products by a whole one.
void backward(const LayerShape& shape, Reach reach, const LayerPlaces& places,
              const LayerSide& side, const LayerParameters& parameters, const LayerTargets& targets,
              const Sink& launch);
void weight_gradient(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                     const LayerTargets& targets, const Sink& launch);

}  // namespace capo::run

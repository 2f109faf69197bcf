// A layer launches a forward, a backward (the input's gradient, and those of the parameters if it
// is whole), and weight gradients apart.
//
//   linear, grouped-linear, ...   y = x w^T               one_product.cpp
//   layernorm-linear              y = norm(x) w^T         one_product.cpp
//   layernorm-mlp, grouped-mlp    fc2(swiglu(fc1(x)))     mlp.cpp
//   attention                     attend(x wqkv^T) w^T    attention.cpp
//   moe-layer                     x + experts(norm(x))    routed.cpp
//   transformer-layer             two of these in a row   transformer.cpp
//   each by a recipe              the same of codes       coded_product.cpp and the like
//
// A kind of module is a row in core/model/module_kinds.h and the launches of one file here. A
// backward that is not whole leaves W all that it needs in the buffers that the plan knows of: the
// input and the incoming gradient themselves or copies, and what the forward kept. The order of
// launches and every address in them is the same in eager execution, capture and replay.
//
// Forward keeps for backward (`activations`), one after the other, each aligned:
//   one product:  a copy of the input, or the norm's output; nothing if W reads the input itself
//   mlp:          that, the first product's output (B turns it into its gradient in place), the
//                 activation's output, and room for its gradient
//   attention:    a copy of the input unless W reads the input itself, the first product's output,
//                 what attention makes of it, a logarithm of each row and head, room for the
//                 gradients of both, and for a number of each row and head while B runs
//   router:       as routed.cpp lists it
//   of codes:     as the files of coded.h list it
//   transformer:  the ends of its halves, and what each of these keeps (transformer.cpp)
//
// A split path launches a product for each group, by sizes on the host, which a graph would bake
// in. Tested by tests/run/steps/named_schedules_test.cpp against float64.

#pragma once

#include "run/modules/coded_bytes.h"
#include "run/modules/layer.h"

namespace capo::run {

/// How far a backward goes.
enum class Reach : std::uint8_t {
  Whole,      ///< weight gradients as well
  InputHalf,  ///< they are left to W
};

/// Bytes of `activations`.
[[nodiscard]] std::int64_t kept_bytes(const LayerShape& shape);

/// The groups of each token that a forward has chosen, in the kept memory. Null without a
/// router.
[[nodiscard]] const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places);

/// In the kept memory, when a forward and a backward are over.
[[nodiscard]] BetweenHalves between_halves(const LayerShape& shape, const LayerPlaces& places);

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch);
/// The targets of norms are written here in any case; those of the products by a whole one.
void backward(const LayerShape& shape, Reach reach, const LayerPlaces& places,
              const LayerSide& side, const LayerParameters& parameters, const LayerTargets& targets,
              const Sink& launch);
/// Weight gradients of one or more microbatches, at most kMostBatches. Those that are added to one
/// tensor, one behind the other, are one product: they are summed in fp32 and rounded once. Biases
/// have no product, and are added microbatch by microbatch.
void weight_gradients(const LayerShape& shape, const std::vector<WeightPass>& passes,
                      const Sink& launch);

}  // namespace capo::run

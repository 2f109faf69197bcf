#include "run/modules/module.h"

#include "run/engine/engine.h"
#include "run/modules/launches.h"

namespace capo::run {

std::int64_t kept_bytes(const LayerShape& shape) {
  if (is_mlp(shape.kind)) return mlp::kept_bytes(shape);
  return has_norm(shape.kind) || shape.copies_input ? aligned(matrix_bytes(shape, shape.hidden))
                                                    : 0;
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  const auto run = is_mlp(shape.kind) ? mlp::forward : one_product::forward;
  run(shape, places, side, parameters, launch);
}

void backward(const LayerShape& shape, Reach reach, const LayerPlaces& places,
              const LayerSide& side, const LayerParameters& parameters, const LayerTargets& targets,
              const Sink& launch) {
  if (reach == Reach::InputHalf && shape.copies_grad_output) {
    copy(shape, places.operands, places.grad_output, output_columns(shape), launch);
  }
  const auto run = is_mlp(shape.kind) ? mlp::backward : one_product::backward;
  run(shape, places, side, parameters, targets, launch);
}

void weight_gradient(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                     const LayerTargets& targets, const Sink& launch) {
  const auto run = is_mlp(shape.kind) ? mlp::weight_gradient : one_product::weight_gradient;
  run(shape, places, side, targets, incoming_for_weights(shape, places, launch), launch);
}

void launch_norm(const LayerShape& shape, const LayerParameters& parameters, const std::byte* x,
                 std::byte* normed, const Sink& launch) {
  launch(LayerNorm{.type = shape.type,
                   .rows = shape.tokens,
                   .columns = shape.hidden,
                   .epsilon = kEpsilon,
                   .x = x,
                   .weight = parameters.norm_weight,
                   .bias = parameters.norm_bias,
                   .y = normed});
}

void launch_norm_backward(const LayerShape& shape, const LayerParameters& parameters,
                          const LayerTargets& targets, const std::byte* x, std::byte* gradient,
                          const Sink& launch) {
  if (targets.norm_weight.wanted) {
    launch(LayerNormWeightGradient{.type = shape.type,
                                   .gradient_type = targets.norm_weight.type,
                                   .write = targets.norm_weight.write,
                                   .rows = shape.tokens,
                                   .columns = shape.hidden,
                                   .epsilon = kEpsilon,
                                   .x = x,
                                   .dy = gradient,
                                   .dweight = targets.norm_weight.data,
                                   .dbias = targets.norm_bias.data});
  }
  if (!shape.needs_grad_input) return;
  launch(LayerNormGradient{.type = shape.type,
                           .rows = shape.tokens,
                           .columns = shape.hidden,
                           .epsilon = kEpsilon,
                           .x = x,
                           .weight = parameters.norm_weight,
                           .dy = gradient,
                           .dx = gradient});
}

std::byte* incoming_for_weights(const LayerShape& shape, const LayerPlaces& places,
                                const Sink& launch) {
  if (!shape.copies_grad_output) return places.grad_output;
  copy(shape, places.scratch, places.operands, output_columns(shape), launch);
  return places.scratch;
}

}  // namespace capo::run

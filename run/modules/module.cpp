#include "run/modules/module.h"

#include "run/engine/engine.h"
#include "run/modules/launches.h"

namespace capo::run {

namespace {

const Launches& launches_of(ModuleKind kind) {
  return is_mlp(kind) ? kMlp : kOneProduct;
}

}  // namespace

std::int64_t kept_bytes(const LayerShape& shape) {
  return launches_of(shape.kind).kept_bytes(shape);
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  launches_of(shape.kind).forward(shape, places, side, parameters, launch);
}

void backward(const LayerShape& shape, Reach reach, const LayerPlaces& places,
              const LayerSide& side, const LayerParameters& parameters, const LayerTargets& targets,
              const Sink& launch) {
  if (reach == Reach::InputHalf && shape.copies_grad_output) {
    copy(shape, places.operands, places.grad_output, output_columns(shape), launch);
  }
  launches_of(shape.kind).backward(shape, places, side, parameters, targets, launch);
}

void weight_gradient(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                     const LayerTargets& targets, const Sink& launch) {
  launches_of(shape.kind)
      .weight_gradient(shape, places, side, targets, incoming_for_weights(shape, places, launch),
                       launch);
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

// Layers of one product, with a norm in front of it or none, with groups or none.

#include "run/engine/engine.h"
#include "run/modules/launches.h"

#include <span>

namespace capo::run {

namespace one_product {
namespace {

std::int64_t kept_bytes(const LayerShape& shape) {
  return has_norm(shape.kind) || shape.copies_input ? aligned(matrix_bytes(shape, shape.hidden))
                                                    : 0;
}

// The product reads the input, or the norm's output or a copy where there is one.
std::byte* operand(const LayerShape& shape, const LayerPlaces& places) {
  return has_norm(shape.kind) || shape.copies_input ? places.activations : places.input;
}

GroupedProduct product(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                       std::byte* y, void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = shape.ffn, .x = x, .y = y, .w = w};
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  if (has_norm(shape.kind)) {
    launch_norm(shape, parameters, places.input, places.activations, launch);
  } else if (shape.copies_input) {
    copy(shape, places.activations, places.input, shape.hidden, launch);
  }
  const RowLaunches rows(shape, side, launch);
  rows.product(product(shape, GroupedProduct::Kind::Forward, operand(shape, places), places.output,
                       parameters.first),
               rows.with_bias(parameters.first_bias));
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  const auto call_of = [&](const WeightOperands& pass) {
    return product(shape, GroupedProduct::Kind::WeightGradient, operand(shape, pass.places),
                   pass.incoming, nullptr);
  };
  launch_weights_and_bias(shape, passes, &LayerTargets::first, &LayerTargets::first_bias, call_of,
                          launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const RowLaunches rows(shape, side, launch);
  if (shape.bias && shape.scale_bias) {
    rows.scale_gradient(parameters.first_bias, places.grad_output, shape.ffn);
  }
  const WeightOperands pass{places, side, targets, places.grad_output};
  weight_gradients(shape, {&pass, 1}, launch);
  if (!shape.needs_grad_input && !has_norm(shape.kind)) return;
  rows.product(product(shape, GroupedProduct::Kind::InputGradient, places.grad_input,
                       places.grad_output, parameters.first));
  if (has_norm(shape.kind)) {
    launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  }
}

}  // namespace
}  // namespace one_product

const Launches kOneProduct{.kept_bytes = one_product::kept_bytes,
                           .forward = one_product::forward,
                           .backward = one_product::backward,
                           .weight_gradients = one_product::weight_gradients};

}  // namespace capo::run

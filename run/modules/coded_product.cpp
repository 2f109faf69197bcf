// Layers of one product of codes, with a norm in front of it or none, with groups or none.
//
// The kept memory has two sections, each aligned:
//   x      codes along rows, for W
//   room   while F runs: the norm's output, and codes of x along columns; while B runs: codes of dy
//          along columns, and those of a whole backward along rows

#include "run/engine/engine.h"
#include "run/modules/coded.h"

#include <algorithm>
#include <span>

namespace capo::run {

namespace coded_product {
namespace {

struct Kept {
  Codes x;
  std::byte* normed = nullptr;
  Codes x_rows;   // along columns
  Codes dy_rows;  // along columns
  Codes dy;       // along rows, of a whole backward
  std::int64_t bytes = 0;
};

Kept kept(const LayerShape& shape, std::byte* begin) {
  Kept keep;
  Sections sections(begin);
  keep.x = take_along_rows(sections, shape, shape.hidden);
  Sections of_forward = sections;
  if (has_norm(shape.kind)) keep.normed = of_forward.take(matrix_bytes(shape, shape.hidden));
  keep.x_rows = take_along_columns(of_forward, shape, shape.hidden);
  Sections of_backward = sections;
  keep.dy_rows = take_along_columns(of_backward, shape, shape.ffn);
  keep.dy = take_along_rows(of_backward, shape, shape.ffn);
  keep.bytes = std::max(of_forward.taken(), of_backward.taken());
  return keep;
}

CodedSize size_of(const LayerShape& shape) {
  return {.in = shape.hidden, .out = shape.ffn};
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept(shape, nullptr).bytes;
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  const Kept keep = kept(shape, places.activations);
  const CodedLaunches coded(shape, side, launch);
  quantize_weights(shape, places, parameters, launch);
  if (has_norm(shape.kind)) launch_norm(shape, parameters, places.input, keep.normed, launch);
  coded.quantize({.x = has_norm(shape.kind) ? keep.normed : places.input}, shape.hidden,
                 keep.x_rows, keep.x);
  coded.forward(size_of(shape), keep.x_rows, weights_of(shape, places, parameters).first,
                places.output, coded.rows().with_bias(parameters.first_bias));
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  for (const WeightOperands& pass : passes) {
    CodedLaunches(shape, pass.side, launch)
        .weight_gradient(size_of(shape), coded_gradient(shape, pass.incoming),
                         kept(shape, pass.places.activations).x, pass.targets.first);
  }
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const Kept keep = kept(shape, places.activations);
  const CodedLaunches coded(shape, side, launch);
  if (shape.bias && shape.scale_bias) {
    coded.rows().scale_gradient(parameters.first_bias, places.grad_output, shape.ffn);
  }
  coded.rows().bias_gradient(targets.first_bias, places.grad_output, shape.ffn);
  const Codes dy = places.operands == nullptr ? keep.dy : coded_gradient(shape, places.operands);
  coded.quantize({.x = places.grad_output}, shape.ffn, keep.dy_rows, dy);
  coded.weight_gradient(size_of(shape), dy, keep.x, targets.first);
  if (!shape.needs_grad_input && !has_norm(shape.kind)) return;
  coded.input_gradient(size_of(shape), keep.dy_rows, weights_of(shape, places, parameters).first,
                       places.grad_input);
  if (has_norm(shape.kind)) {
    launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  }
}

}  // namespace
}  // namespace coded_product

const Launches kCodedProduct{.kept_bytes = coded_product::kept_bytes,
                             .forward = coded_product::forward,
                             .backward = coded_product::backward,
                             .weight_gradients = coded_product::weight_gradients};

}  // namespace capo::run

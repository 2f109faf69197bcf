// Two products with SwiGLU between them: layernorm-mlp and grouped-mlp.
//
// The kept memory has four sections, each aligned:
//   operand  (tokens, hidden)   the first product reads it: the norm's output, or a copy
//   middle   (tokens, 2 * ffn)  its output; B turns it into its gradient, in place
//   active   (tokens, ffn)      the second product reads it
//   room     (tokens, ffn)      the gradient of `active`, while B runs, or sums of an epilogue

#include "run/engine/engine.h"
#include "run/modules/launches.h"

#include <span>

namespace capo::run {

namespace mlp {
namespace {

struct Kept {
  std::byte* operand;
  std::byte* middle;
  std::byte* active;
  std::byte* room;
};

Kept kept(const LayerShape& shape, const LayerPlaces& places) {
  const std::int64_t operand = aligned(matrix_bytes(shape, shape.hidden));
  const std::int64_t middle = aligned(matrix_bytes(shape, 2 * shape.ffn));
  const std::int64_t active = aligned(matrix_bytes(shape, shape.ffn));
  std::byte* begin = places.activations;
  return {.operand = begin,
          .middle = begin + operand,
          .active = begin + operand + middle,
          .room = begin + operand + middle + active};
}

GroupedProduct first(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x, std::byte* y,
                     void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = 2 * shape.ffn, .x = x, .y = y, .w = w};
}

GroupedProduct second(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                      std::byte* y, void* const* w) {
  return {.kind = kind, .in = shape.ffn, .out = shape.hidden, .x = x, .y = y, .w = w};
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return aligned(matrix_bytes(shape, shape.hidden)) + aligned(matrix_bytes(shape, 2 * shape.ffn)) +
         2 * aligned(matrix_bytes(shape, shape.ffn));
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept(shape, places);
  const RowLaunches rows(shape, side, launch);
  if (has_norm(shape.kind)) {
    launch_norm(shape, parameters, places.input, keep.operand, launch);
  } else {
    copy(shape, keep.operand, places.input, shape.hidden, launch);
  }
  Epilogue then = rows.with_bias(parameters.first_bias);
  then.gated = keep.active;
  then.probabilities = side.probabilities;
  rows.product(first(shape, Forward, keep.operand, keep.middle, parameters.first), then);
  rows.product(second(shape, Forward, keep.active, places.output, parameters.second),
               rows.with_bias(parameters.second_bias));
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  using enum GroupedProduct::Kind;
  const auto of_second = [&](const WeightOperands& pass) {
    const Kept keep = kept(shape, pass.places);
    return second(shape, WeightGradient, keep.active, pass.incoming, nullptr);
  };
  const auto of_first = [&](const WeightOperands& pass) {
    const Kept keep = kept(shape, pass.places);
    return first(shape, WeightGradient, keep.operand, keep.middle, nullptr);
  };
  launch_weights_and_bias(shape, passes, &LayerTargets::second, &LayerTargets::second_bias,
                          of_second, launch);
  launch_weights_and_bias(shape, passes, &LayerTargets::first, &LayerTargets::first_bias, of_first,
                          launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept(shape, places);
  const RowLaunches rows(shape, side, launch);
  rows.product(second(shape, InputGradient, keep.room, places.grad_output, parameters.second),
               {.probabilities = side.probabilities,
                .gates = keep.middle,
                .dgates = keep.middle,
                .dprobabilities = side.grad_probabilities});
  const WeightOperands pass{places, side, targets, places.grad_output};
  weight_gradients(shape, {&pass, 1}, launch);
  if (!shape.needs_grad_input && !has_norm(shape.kind)) return;
  rows.product(first(shape, InputGradient, places.grad_input, keep.middle, parameters.first));
  if (has_norm(shape.kind)) {
    launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  }
}

}  // namespace
}  // namespace mlp

const Launches kMlp{.kept_bytes = mlp::kept_bytes,
                    .forward = mlp::forward,
                    .backward = mlp::backward,
                    .weight_gradients = mlp::weight_gradients};

}  // namespace capo::run

// Two products with SwiGLU between them: layernorm-mlp and grouped-mlp.
//
// The kept memory has four sections, each aligned:
//   operand  (tokens, hidden)   the first product reads it: the norm's output, or a copy
//   middle   (tokens, 2 * ffn)  its output; B turns it into its gradient, in place
//   active   (tokens, ffn)      the second product reads it
//   room     (tokens, ffn)      the gradient of `active`, while B runs

#include "run/engine/engine.h"
#include "run/modules/launches.h"

namespace capo::run {

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

void into(GroupedProduct call, const Target& target, const RowLaunches& rows) {
  if (!target.wanted) return;
  call.gradient_type = target.type;
  call.write = target.write;
  rows.product(call);
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
  rows.product(first(shape, Forward, keep.operand, keep.middle, parameters.first));
  if (shape.bias) rows.bias_add(parameters.first_bias, keep.middle, 2 * shape.ffn);
  launch(SwiGlu{.type = shape.type,
                .rows = rows.all_rows(),
                .columns = shape.ffn,
                .x = keep.middle,
                .probabilities = side.probabilities,
                .y = keep.active});
  rows.product(second(shape, Forward, keep.active, places.output, parameters.second));
  if (shape.bias) rows.bias_add(parameters.second_bias, places.output, shape.hidden);
}

void weight_gradient(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                     const LayerTargets& targets, std::byte* incoming, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept(shape, places);
  const RowLaunches rows(shape, side, launch);
  into(second(shape, WeightGradient, keep.active, incoming, targets.second.table), targets.second,
       rows);
  rows.bias_gradient(targets.second_bias, incoming, shape.hidden);
  into(first(shape, WeightGradient, keep.operand, keep.middle, targets.first.table), targets.first,
       rows);
  rows.bias_gradient(targets.first_bias, keep.middle, 2 * shape.ffn);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept(shape, places);
  const RowLaunches rows(shape, side, launch);
  rows.product(second(shape, InputGradient, keep.room, places.grad_output, parameters.second));
  launch(SwiGluGradient{.type = shape.type,
                        .rows = rows.all_rows(),
                        .columns = shape.ffn,
                        .x = keep.middle,
                        .probabilities = side.probabilities,
                        .dy = keep.room,
                        .dx = keep.middle,
                        .dprobabilities = side.grad_probabilities});
  weight_gradient(shape, places, side, targets, places.grad_output, launch);
  if (!shape.needs_grad_input && !has_norm(shape.kind)) return;
  rows.product(first(shape, InputGradient, places.grad_input, keep.middle, parameters.first));
  if (has_norm(shape.kind)) {
    launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  }
}

}  // namespace

const Launches kMlp{.kept_bytes = kept_bytes,
                    .forward = forward,
                    .backward = backward,
                    .weight_gradient = weight_gradient};

}  // namespace capo::run

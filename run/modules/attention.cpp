// Causal attention of grouped queries between two products: attention.
//
// The kept memory has seven sections, each aligned:
//   operand   (tokens, hidden)           the first product reads it; none if W reads the input
//   itself qkv       (tokens, qkv columns)      its output: queries, keys and values of all heads
//   y         (tokens, heads * dim)      the second product reads it
//   dqkv      (tokens, qkv columns)      the gradient of qkv, which B leaves to W
//   dy        (tokens, heads * dim)      the gradient of y, while B runs
//   log_sums  (tokens, heads)            fp32, from F to B
//   inner     (tokens, heads)            fp32, from one kernel of B to the next
//
// dqkv does not take the place of qkv, as the gradient of an MLP's middle does: keys are read by
// queries of later tokens. A microbatch is whole sequences, so no kernel needs to be told where one
// ends but by its length.

#include "run/engine/engine.h"
#include "run/modules/heads.h"

#include <span>

namespace capo::run {

namespace attention {
namespace {

struct Kept {
  std::byte* operand = nullptr;
  HeadPlaces heads;
  std::int64_t bytes = 0;
};

Kept kept_at(const LayerShape& shape, const LayerPlaces& places) {
  Sections sections(places.activations);
  const auto matrix = [&](std::int64_t columns) {
    return sections.take(matrix_bytes(shape, columns));
  };
  const std::int64_t scores = shape.tokens * shape.heads;
  Kept keep;
  keep.operand = shape.copies_input ? matrix(shape.hidden) : places.input;
  keep.heads.qkv = matrix(first_columns(shape));
  keep.heads.y = matrix(second_columns(shape));
  keep.heads.dqkv = matrix(first_columns(shape));
  keep.heads.dy = matrix(second_columns(shape));
  keep.heads.log_sums = sections.numbers<float>(scores);
  keep.heads.inner = sections.numbers<float>(scores);
  keep.bytes = sections.taken();
  return keep;
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept_at(shape, {}).bytes;
}

GroupedProduct first(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x, std::byte* y,
                     void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = first_columns(shape), .x = x, .y = y, .w = w};
}

GroupedProduct second(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                      std::byte* y, void* const* w) {
  return {.kind = kind, .in = second_columns(shape), .out = shape.hidden, .x = x, .y = y, .w = w};
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const RowLaunches rows(shape, side, launch);
  if (shape.copies_input) copy(shape, keep.operand, places.input, shape.hidden, launch);
  rows.product(first(shape, Forward, keep.operand, keep.heads.qkv, parameters.first),
               rows.with_bias(parameters.first_bias));
  launch_attention(shape, keep.heads, launch);
  rows.product(second(shape, Forward, keep.heads.y, places.output, parameters.second),
               rows.with_bias(parameters.second_bias));
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  using enum GroupedProduct::Kind;
  const auto of_second = [&](const WeightOperands& pass) {
    return second(shape, WeightGradient, kept_at(shape, pass.places).heads.y, pass.incoming,
                  nullptr);
  };
  const auto of_first = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return first(shape, WeightGradient, keep.operand, keep.heads.dqkv, nullptr);
  };
  launch_weights_and_bias(shape, passes, &LayerTargets::second, &LayerTargets::second_bias,
                          of_second, launch);
  launch_weights_and_bias(shape, passes, &LayerTargets::first, &LayerTargets::first_bias, of_first,
                          launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const RowLaunches rows(shape, side, launch);
  rows.product(second(shape, InputGradient, keep.heads.dy, places.grad_output, parameters.second));
  launch_attention_gradients(shape, keep.heads, launch);
  const WeightOperands pass{places, side, targets, places.grad_output};
  weight_gradients(shape, {&pass, 1}, launch);
  if (!shape.needs_grad_input) return;
  rows.product(first(shape, InputGradient, places.grad_input, keep.heads.dqkv, parameters.first));
}

}  // namespace
}  // namespace attention

const Launches kAttention{.kept_bytes = attention::kept_bytes,
                          .forward = attention::forward,
                          .backward = attention::backward,
                          .weight_gradients = attention::weight_gradients};

}  // namespace capo::run

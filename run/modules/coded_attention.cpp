// Attention between two products of codes: attention, and that of a transformer layer.
//
// Queries, keys and values are numbers of the module's type, and so is what attention makes of
// them: the recipe is about the two products. The kept memory has these sections, each aligned:
//   x            codes along rows, for W
//   qkv, y       (tokens, qkv columns) and (tokens, heads * dim), read by the gradients
//   log_sums     (tokens, heads) fp32, from F to B
//   active       codes of y along rows, for W
//   gradient     codes along rows of the gradient of qkv, from B to W
//   room         while F runs: codes along columns of what is multiplied; while B runs: the
//                gradients of y and of qkv, codes of each gradient along columns, and those of a
//                whole backward's dy along rows
//
// Gradients of biases come with B, as of other layers that read codes.

#include "run/engine/engine.h"
#include "run/modules/coded.h"
#include "run/modules/heads.h"

#include <algorithm>
#include <span>

namespace capo::run {

namespace coded_attention {
namespace {

struct Kept {
  HeadPlaces heads;
  LeftToW left;
  Codes dy;  // along rows, of a whole backward
  // Along columns, one at a time.
  Codes hidden_codes;
  Codes active_codes;
  Codes wide_codes;
  std::int64_t bytes = 0;
};

Kept kept(const LayerShape& shape, std::byte* begin) {
  Kept keep;
  Sections sections(begin);
  const std::int64_t wide = first_columns(shape);
  const std::int64_t active = second_columns(shape);
  const std::int64_t scores = shape.tokens * shape.heads;
  keep.left.x = take_along_rows(sections, shape, shape.hidden);
  keep.heads.qkv = sections.take(matrix_bytes(shape, wide));
  keep.heads.y = sections.take(matrix_bytes(shape, active));
  keep.heads.log_sums = sections.numbers<float>(scores);
  keep.left.active = take_along_rows(sections, shape, active);
  keep.left.gradient = take_along_rows(sections, shape, wide);
  Sections of_forward = sections;
  keep.heads.dy = sections.take(matrix_bytes(shape, active));
  keep.heads.dqkv = sections.take(matrix_bytes(shape, wide));
  keep.heads.inner = sections.numbers<float>(scores);
  keep.dy = take_along_rows(sections, shape, shape.hidden);
  Sections of_hidden = sections;
  keep.hidden_codes = take_along_columns(of_hidden, shape, shape.hidden);
  Sections of_wide = sections;
  keep.wide_codes = take_along_columns(of_wide, shape, wide);
  keep.active_codes = take_along_columns(of_forward, shape, active);
  keep.bytes = std::max({of_forward.taken(), of_hidden.taken(), of_wide.taken()});
  return keep;
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept(shape, nullptr).bytes;
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  const Kept keep = kept(shape, places.activations);
  const CodedLaunches coded(shape, side, launch);
  quantize_weights(shape, places, parameters, launch);
  const CodedWeights weights = weights_of(shape, places, parameters);
  coded.quantize({.x = places.input}, shape.hidden, keep.hidden_codes, keep.left.x);
  coded.forward(first_size(shape), keep.hidden_codes, weights.first, keep.heads.qkv,
                coded.rows().with_bias(parameters.first_bias));
  launch_attention(shape, keep.heads, launch);
  coded.quantize({.x = keep.heads.y}, second_columns(shape), keep.active_codes, keep.left.active);
  coded.forward(second_size(shape), keep.active_codes, weights.second, places.output,
                coded.rows().with_bias(parameters.second_bias));
}

LeftToW left_in(const LayerShape& shape, std::byte* activations) {
  return kept(shape, activations).left;
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  launch_weight_gradients(shape, passes, left_in, launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const Kept keep = kept(shape, places.activations);
  const CodedLaunches coded(shape, side, launch);
  const CodedWeights weights = weights_of(shape, places, parameters);
  const std::int64_t wide = first_columns(shape);
  coded.rows().bias_gradient(targets.second_bias, places.grad_output, shape.hidden);
  const Codes dy = places.operands == nullptr ? keep.dy : coded_gradient(shape, places.operands);
  coded.quantize({.x = places.grad_output}, shape.hidden, keep.hidden_codes, dy);
  coded.input_gradient(second_size(shape), keep.hidden_codes, weights.second, keep.heads.dy);
  launch_attention_gradients(shape, keep.heads, launch);
  coded.rows().bias_gradient(targets.first_bias, keep.heads.dqkv, wide);
  coded.quantize({.x = keep.heads.dqkv}, wide, keep.wide_codes, keep.left.gradient);
  coded.weight_gradients(keep.left, dy, targets);
  if (!shape.needs_grad_input) return;
  coded.input_gradient(first_size(shape), keep.wide_codes, weights.first, places.grad_input);
}

}  // namespace
}  // namespace coded_attention

const Launches kCodedAttention{.kept_bytes = coded_attention::kept_bytes,
                               .forward = coded_attention::forward,
                               .backward = coded_attention::backward,
                               .weight_gradients = coded_attention::weight_gradients};

}  // namespace capo::run

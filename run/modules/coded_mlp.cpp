// Two products of codes with SwiGLU between them: layernorm-mlp and grouped-mlp.
//
// The kept memory has five sections, each aligned:
//   x              codes along rows, for W
//   middle         (tokens, 2 * ffn), the output of the first product; if its bias has a gradient,
//                  B turns it into its own
//   active         codes along rows of what the second product reads, for W
//   gradient       codes along rows of the gradient of `middle`, from B to W
//   room           while F runs: the norm's output, and codes along columns of what is multiplied;
//                  while B runs: the gradient of SwiGLU's output, codes of each gradient along
//                  columns, and those of a whole backward's dy along rows
//
// SwiGLU's output has no tensor, nor has its gradient unless a bias reads it: the calls that
// quantize them make them. A probability's gradient is a sum over a whole row, and a call of its
// own.

#include "run/engine/engine.h"
#include "run/modules/coded.h"

#include <algorithm>
#include <span>

namespace capo::run {

namespace coded_mlp {
namespace {

struct Kept {
  LeftToW left;
  std::byte* middle = nullptr;
  std::byte* rows = nullptr;  // (tokens, hidden) of the norm, (tokens, ffn) of the gradient
  Codes hidden_codes;         // along columns, like the next two
  Codes active_codes;
  Codes wide_codes;
  Codes dy;  // along rows, of a whole backward
  std::int64_t bytes = 0;
};

Kept kept(const LayerShape& shape, std::byte* begin) {
  Kept keep;
  Sections sections(begin);
  keep.left.x = take_along_rows(sections, shape, shape.hidden);
  keep.middle = sections.take(matrix_bytes(shape, 2 * shape.ffn));
  keep.left.active = take_along_rows(sections, shape, shape.ffn);
  keep.left.gradient = take_along_rows(sections, shape, 2 * shape.ffn);
  const std::int64_t normed = has_norm(shape.kind) ? shape.hidden : 0;
  keep.rows = sections.take(matrix_bytes(shape, std::max(normed, shape.ffn)));
  keep.dy = take_along_rows(sections, shape, shape.hidden);
  // One of these at a time.
  Sections of_hidden = sections;
  keep.hidden_codes = take_along_columns(of_hidden, shape, shape.hidden);
  Sections of_active = sections;
  keep.active_codes = take_along_columns(of_active, shape, shape.ffn);
  Sections of_wide = sections;
  keep.wide_codes = take_along_columns(of_wide, shape, 2 * shape.ffn);
  keep.bytes = std::max({of_hidden.taken(), of_active.taken(), of_wide.taken()});
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
  if (has_norm(shape.kind)) launch_norm(shape, parameters, places.input, keep.rows, launch);
  coded.quantize(
      has_norm(shape.kind) ? CodedRows{.x = keep.rows} : incoming_rows(side, places.input),
      shape.hidden, keep.hidden_codes, keep.left.x);
  coded.forward(first_size(shape), keep.hidden_codes, weights.first, keep.middle,
                coded.rows().with_bias(parameters.first_bias));
  coded.quantize(
      {.x = keep.middle, .made = {.by = RowsMade::By::SwiGlu, .probabilities = side.probabilities}},
      shape.ffn, keep.active_codes, keep.left.active);
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

// The gradient of `middle` becomes codes where it is made, unless somebody else wants its numbers:
// a bias, which sums them, or the gradient of a probability, which would read all that they are
// made of once more. On an H200 that takes longer than to write them and read them again.
void quantize_middle_gradient(const LayerShape& shape, const Kept& keep, const LayerSide& side,
                              const Target& bias, const CodedLaunches& coded, const Sink& launch) {
  if (!bias.wanted && side.grad_probabilities == nullptr) {
    const RowsMade gradient{
        .by = RowsMade::By::SwiGluGradient, .probabilities = side.probabilities, .dy = keep.rows};
    coded.quantize({.x = keep.middle, .made = gradient}, 2 * shape.ffn, keep.wide_codes,
                   keep.left.gradient);
    return;
  }
  launch(SwiGluGradient{.type = shape.type,
                        .rows = coded.rows().all_rows(),
                        .columns = shape.ffn,
                        .x = keep.middle,
                        .probabilities = side.probabilities,
                        .dy = keep.rows,
                        .dx = keep.middle,
                        .dprobabilities = side.grad_probabilities});
  coded.rows().bias_gradient(bias, keep.middle, 2 * shape.ffn);
  coded.quantize({.x = keep.middle}, 2 * shape.ffn, keep.wide_codes, keep.left.gradient);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const Kept keep = kept(shape, places.activations);
  const CodedLaunches coded(shape, side, launch);
  const CodedWeights weights = weights_of(shape, places, parameters);
  coded.rows().bias_gradient(targets.second_bias, places.grad_output, shape.hidden);
  const Codes dy = places.operands == nullptr ? keep.dy : coded_gradient(shape, places.operands);
  coded.quantize(incoming_rows(side, places.grad_output), shape.hidden, keep.hidden_codes, dy);
  coded.input_gradient(second_size(shape), keep.hidden_codes, weights.second, keep.rows);
  quantize_middle_gradient(shape, keep, side, targets.first_bias, coded, launch);
  coded.weight_gradients(keep.left, dy, targets);
  if (!shape.needs_grad_input && !has_norm(shape.kind)) return;
  coded.input_gradient(first_size(shape), keep.wide_codes, weights.first, places.grad_input);
  if (has_norm(shape.kind)) {
    launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  }
}

}  // namespace
}  // namespace coded_mlp

const Launches kCodedMlp{.kept_bytes = coded_mlp::kept_bytes,
                         .forward = coded_mlp::forward,
                         .backward = coded_mlp::backward,
                         .weight_gradients = coded_mlp::weight_gradients};

}  // namespace capo::run

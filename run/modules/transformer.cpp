// A transformer layer: transformer-layer.
//
//   between = x + attention(norm(x))
//   y       = between + mlp(norm(between))         or a router and its experts, with their sum
//
// It computes nothing of its own but norms and sums: its two halves are launched by attention.cpp
// and by mlp.cpp or routed.cpp, or by what stands for these where products read codes, each as a
// layer with parameters, targets and kept memory of its own. Only their ends are memory of this
// layer.
//
// The kept memory has these sections, each aligned:
//   normed    (tokens, hidden)  the first norm's output, which is the attention's input
//   between   (tokens, hidden)  what the second half reads
//   gradient  (tokens, hidden)  of `between`, which B leaves to the W of the attention
//   codes     of `gradient` along its rows, which W reads in its place where products read codes
//   then that of the attention (attention.cpp), and that of the second half
//
// The norm of the second half is part of it, and so is the residual sum of a router: routed.cpp
// adds what came in. Tested by tests/run/steps/layer_runs_test.cpp.

#include "run/modules/coded_bytes.h"
#include "run/modules/launches.h"

#include <span>
#include <vector>

namespace capo::run {

namespace transformer {
namespace {

struct Kept {
  std::byte* normed;
  std::byte* between;
  std::byte* gradient;
  std::byte* codes;  // null unless products read codes
  std::byte* attention;
  std::byte* second;
  std::int64_t bytes;
};

const Launches& attention_launches(const LayerShape& shape) {
  return shape.scaling ? kCodedAttention : kAttention;
}
const Launches& second_launches(const LayerShape& shape) {
  if (shape.scaling) return has_router(shape) ? kCodedRouted : kCodedMlp;
  return has_router(shape) ? kRouted : kMlp;
}

Kept kept_at(const LayerShape& shape, const LayerPlaces& places) {
  Sections sections(places.activations);
  const auto matrix = [&] { return sections.take(matrix_bytes(shape, shape.hidden)); };
  Kept keep{};
  keep.normed = matrix();
  keep.between = matrix();
  keep.gradient = matrix();
  if (shape.scaling) keep.codes = sections.take(coded_gradient_bytes(attention_half(shape)));
  keep.attention = sections.take(attention_launches(shape).kept_bytes(attention_half(shape)));
  keep.second = sections.take(second_launches(shape).kept_bytes(second_half(shape)));
  keep.bytes = sections.taken();
  return keep;
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept_at(shape, {}).bytes;
}

// Quantized weights of a microbatch are those of the attention, and then those of the second half.
LayerPlaces places_of_attention(const Kept& keep, const LayerPlaces& places) {
  return {.input = keep.normed,
          .grad_output = keep.gradient,
          .output = keep.between,
          .grad_input = places.grad_input,
          .activations = keep.attention,
          .operands = keep.codes,
          .quantized_weight = places.quantized_weight};
}

LayerPlaces places_of_second(const LayerShape& shape, const Kept& keep, const LayerPlaces& places) {
  LayerPlaces second = places;
  second.input = keep.between;
  second.grad_input = keep.gradient;
  second.activations = keep.second;
  if (places.quantized_weight != nullptr) {
    second.quantized_weight += quantized_weight_bytes(attention_half(shape));
  }
  return second;
}

// The attention's of parameters or of targets, which have the same names. The norm in front of it
// belongs to no half that has launches.
template <typename OfRoles>
OfRoles of_attention(const OfRoles& all) {
  return {.norm_weight = all.attention_norm_weight,
          .norm_bias = all.attention_norm_bias,
          .first = all.qkv,
          .first_bias = all.qkv_bias,
          .second = all.projection,
          .second_bias = all.projection_bias};
}

LayerParameters parameters_of_attention(const LayerParameters& all) {
  LayerParameters first = of_attention(all);
  first.first_codes = all.qkv_codes;
  first.second_codes = all.projection_codes;
  return first;
}

// to += from, rounded once more.
void add(const LayerShape& shape, const std::byte* from, std::byte* to, const Sink& launch) {
  launch(Add{.to_type = shape.type,
             .from_type = shape.type,
             .count = shape.tokens * shape.hidden,
             .from = from,
             .to = to});
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  const Kept keep = kept_at(shape, places);
  const LayerParameters first = parameters_of_attention(parameters);
  launch_norm(shape, first, places.input, keep.normed, launch);
  attention_launches(shape).forward(attention_half(shape), places_of_attention(keep, places), side,
                                    first, launch);
  add(shape, places.input, keep.between, launch);
  second_launches(shape).forward(second_half(shape), places_of_second(shape, keep, places), side,
                                 parameters, launch);
  if (!has_router(shape)) add(shape, keep.between, places.output, launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const Kept keep = kept_at(shape, places);
  second_launches(shape).backward(second_half(shape), places_of_second(shape, keep, places), side,
                                  parameters, targets, launch);
  if (!has_router(shape)) add(shape, places.grad_output, keep.gradient, launch);
  const LayerParameters first = parameters_of_attention(parameters);
  const LayerTargets of_first = of_attention(targets);
  attention_launches(shape).backward(attention_half(shape), places_of_attention(keep, places), side,
                                     first, of_first, launch);
  launch_norm_backward(shape, first, of_first, places.input, places.grad_input, launch);
  if (shape.needs_grad_input) add(shape, keep.gradient, places.grad_input, launch);
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  std::vector<WeightOperands> of_second(passes.begin(), passes.end());
  std::vector<WeightOperands> of_first = of_second;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Kept keep = kept_at(shape, passes[i].places);
    of_second[i].places = places_of_second(shape, keep, passes[i].places);
    of_first[i].places = places_of_attention(keep, passes[i].places);
    of_first[i].targets = of_attention(passes[i].targets);
    of_first[i].incoming = shape.scaling ? keep.codes : keep.gradient;
  }
  second_launches(shape).weight_gradients(second_half(shape), of_second, launch);
  attention_launches(shape).weight_gradients(attention_half(shape), of_first, launch);
}

const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places) {
  if (!has_router(shape)) return nullptr;
  return second_launches(shape).chosen_groups(
      second_half(shape), places_of_second(shape, kept_at(shape, places), places));
}

BetweenHalves between_halves(const LayerShape& shape, const LayerPlaces& places) {
  const Kept keep = kept_at(shape, places);
  return {.sum = keep.between, .gradient = keep.gradient};
}

}  // namespace
}  // namespace transformer

const Launches kTransformer{.kept_bytes = transformer::kept_bytes,
                            .forward = transformer::forward,
                            .backward = transformer::backward,
                            .weight_gradients = transformer::weight_gradients,
                            .chosen_groups = transformer::chosen_groups,
                            .between_halves = transformer::between_halves};

}  // namespace capo::run

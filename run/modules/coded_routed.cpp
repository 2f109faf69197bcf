// A router whose experts multiply codes: moe-layer, and that of a transformer layer.
//
// The experts are a grouped-mlp (coded_mlp.cpp), whose sizes and probabilities the router makes.
// The router, its choices and the sum behind the experts are those of routed.cpp, in the module's
// own type: which expert a row goes to follows from no code. Groups, and with them the blocks along
// rows, begin where the choices of the replay put them.
//
// The kept memory has these sections, each aligned, behind those of the router (routing.h):
//   experts   what a grouped-mlp of tokens * top_k rows keeps
//   made      (tokens * top_k, hidden): what the experts make; in B the gradient of what they read
//
// No tensor holds rows by group: the calls that quantize them gather them. W gathers nothing at
// all, since B leaves it codes of the incoming gradient by group.

#include "run/modules/coded.h"
#include "run/modules/routing.h"

#include <span>
#include <vector>

namespace capo::run {

namespace coded_routed {
namespace {

struct Kept {
  RouterKept router;
  std::byte* experts = nullptr;
  std::byte* made = nullptr;
  std::int64_t bytes = 0;
};

Kept kept_at(const LayerShape& shape, const LayerPlaces& places) {
  const LayerShape experts = experts_of(shape);
  Sections sections(places.activations);
  Kept keep;
  keep.router = take_router(sections, shape);
  keep.experts = sections.take(kCodedMlp.kept_bytes(experts));
  keep.made = sections.take(matrix_bytes(experts, shape.hidden));
  keep.bytes = sections.taken();
  return keep;
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept_at(shape, {}).bytes;
}

LayerPlaces places_of_experts(const Kept& keep, const LayerPlaces& places) {
  return {.input = keep.router.normed,
          .grad_output = places.grad_output,
          .output = keep.made,
          .grad_input = keep.made,
          .activations = keep.experts,
          .operands = places.operands,
          .quantized_weight = places.quantized_weight};
}

LayerSide inputs_of_experts(const LayerShape& shape, const RouterKept& keep) {
  LayerSide side = side_of_experts(keep);
  side.sources = keep.sources;
  side.tokens = shape.tokens;
  side.probabilities = keep.sorted;
  side.grad_probabilities = keep.gradient;
  return side;
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& /*side*/,
             const LayerParameters& parameters, const Sink& launch) {
  const Kept keep = kept_at(shape, places);
  decide(shape, places, keep.router, parameters, launch);
  kCodedMlp.forward(experts_of(shape), places_of_experts(keep, places),
                    inputs_of_experts(shape, keep.router), parameters, launch);
  copy(shape, places.output, places.input, shape.hidden, launch);
  combine(shape, keep.router, keep.made, places.output, launch);
}

RouterKept router_of(const LayerShape& shape, const WeightOperands& pass) {
  return kept_at(shape, pass.places).router;
}

void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  std::vector<WeightOperands> of_experts(passes.begin(), passes.end());
  for (WeightOperands& pass : of_experts) {
    const Kept keep = kept_at(shape, pass.places);
    pass.places = places_of_experts(keep, pass.places);
    pass.side = inputs_of_experts(shape, keep.router);
  }
  kCodedMlp.weight_gradients(experts_of(shape), of_experts, launch);
  router_weight_gradients(
      shape, passes, [&](const WeightOperands& pass) { return router_of(shape, pass); }, launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  const Kept keep = kept_at(shape, places);
  kCodedMlp.backward(experts_of(shape), places_of_experts(keep, places),
                     inputs_of_experts(shape, keep.router), parameters, targets, launch);
  decide_backward(shape, keep.router, launch);
  const WeightOperands pass{places, side, targets};
  router_weight_gradients(
      shape, {&pass, 1}, [&](const WeightOperands& of) { return router_of(shape, of); }, launch);
  routed_input_gradient(shape, places, keep.router, keep.made, parameters, targets, launch);
}

const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places) {
  return kept_at(shape, places).router.groups;
}

}  // namespace
}  // namespace coded_routed

const Launches kCodedRouted{.kept_bytes = coded_routed::kept_bytes,
                            .forward = coded_routed::forward,
                            .backward = coded_routed::backward,
                            .weight_gradients = coded_routed::weight_gradients,
                            .chosen_groups = coded_routed::chosen_groups};

}  // namespace capo::run

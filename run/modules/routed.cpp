// A router, experts and what lies around them: moe-layer.
//
//   y = x + combine(experts(dispatch(norm(x))))
//
// A grouped-mlp is told by whoever feeds it which rows its groups have: sizes and probabilities
// come with the microbatch, drawn by `--sizes`, and are inputs of the step. Here a router decides.
// The decision is data: logits of the rows at hand choose groups, and from the choices a kernel
// counts sizes and sorts rows, at every replay anew. So the layer has no sizes of its own to be
// given, no host learns them, nothing of them is baked into a graph, and new inputs alone change
// them. All rows of a microbatch exist and each chooses `top_k` groups: the number of sorted rows
// is fixed, and only their division among groups is not. Groups may be empty.
//
// A decision is made once, by the forward. It keeps the choices, so that the backward and W take
// the same rows even where the logits have become their gradient. Float64 is told the choices and
// asks whether they were admissible (run/reference/layer_reference.h).
//
// The gradient of a probability comes from SwiGLU, which multiplies by it; combine is a plain sum.
// W sorts the incoming gradient into its scratch, since it writes no memory that others keep.
// Every sum has a fixed order: of a token over its choices, of a weight over its sorted rows.
//
// The kept memory has these sections, each aligned, behind those of the router (routing.h); n is
// tokens * top_k, the number of choices:
//   rows      (n, hidden)       normed rows by group, which the first product reads
//   middle    (n, 2 * ffn)      its output; B turns it into its gradient, in place
//   active    (n, ffn)          the second product reads it
//   room      (n, ffn)          the gradient of `active`, while B runs, or sums of an epilogue
//   made      (n, hidden)       what the experts make; in B the incoming gradient by group
//   back      (n, hidden)       the gradient of `rows`, while B runs
//
// The experts are all on this rank; none is shared by all tokens, and biases are refused.
// Tested by tests/run/steps/routed_runs_test.cpp.

#include "run/modules/routing.h"

#include <span>
#include <vector>

namespace capo::run {

namespace routed {
namespace {

struct Kept {
  RouterKept router;
  std::byte* rows = nullptr;
  std::byte* middle = nullptr;
  std::byte* active = nullptr;
  std::byte* room = nullptr;
  std::byte* made = nullptr;
  std::byte* back = nullptr;
  std::int64_t bytes = 0;
};

Kept kept_at(const LayerShape& shape, const LayerPlaces& places) {
  Sections sections(places.activations);
  const LayerShape experts = experts_of(shape);
  const auto matrix = [&](std::int64_t columns) {
    return sections.take(matrix_bytes(experts, columns));
  };
  Kept keep;
  keep.router = take_router(sections, shape);
  keep.rows = matrix(shape.hidden);
  keep.middle = matrix(first_columns(shape));
  keep.active = matrix(second_columns(shape));
  keep.room = matrix(second_columns(shape));
  keep.made = matrix(shape.hidden);
  keep.back = matrix(shape.hidden);
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

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& /*side*/,
             const LayerParameters& parameters, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const LayerShape experts = experts_of(shape);
  const LayerSide side = side_of_experts(keep.router);
  const RowLaunches rows(experts, side, launch);
  decide(shape, places, keep.router, parameters, launch);
  dispatch(shape, keep.router, keep.router.normed, keep.rows, launch);
  rows.product(first(shape, Forward, keep.rows, keep.middle, parameters.first),
               {.gated = keep.active, .probabilities = keep.router.sorted});
  rows.product(second(shape, Forward, keep.active, keep.made, parameters.second));
  copy(shape, places.output, places.input, shape.hidden, launch);
  combine(shape, keep.router, keep.made, places.output, launch);
}

// Weight gradients of passes whose incoming gradients are sorted by group.
void weight_products(const LayerShape& shape, std::span<const WeightOperands> passes,
                     const Sink& launch) {
  using enum GroupedProduct::Kind;
  std::vector<WeightOperands> of_experts(passes.begin(), passes.end());
  for (WeightOperands& pass : of_experts)
    pass.side = side_of_experts(kept_at(shape, pass.places).router);
  const auto of_second = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return second(shape, WeightGradient, keep.active, pass.incoming, nullptr);
  };
  const auto of_first = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return first(shape, WeightGradient, keep.rows, keep.middle, nullptr);
  };
  const LayerShape experts = experts_of(shape);
  launch_weight_products(experts, of_experts, &LayerTargets::second, of_second, launch);
  launch_weight_products(experts, of_experts, &LayerTargets::first, of_first, launch);
  const auto router_of = [&](const WeightOperands& pass) {
    return kept_at(shape, pass.places).router;
  };
  router_weight_gradients(shape, passes, router_of, launch);
}

// W reads the incoming gradient itself, or a copy, and sorts it once more.
void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  std::vector<WeightOperands> sorted(passes.begin(), passes.end());
  for (WeightOperands& pass : sorted) {
    const std::byte* from =
        shape.copies_grad_output ? pass.places.operands : pass.places.grad_output;
    pass.incoming = pass.places.scratch;
    dispatch(shape, kept_at(shape, pass.places).router, from, pass.incoming, launch);
  }
  weight_products(shape, sorted, launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const LayerShape experts = experts_of(shape);
  const LayerSide of_experts = side_of_experts(keep.router);
  const RowLaunches rows(experts, of_experts, launch);
  dispatch(shape, keep.router, places.grad_output, keep.made, launch);
  rows.product(second(shape, InputGradient, keep.room, keep.made, parameters.second),
               {.probabilities = keep.router.sorted,
                .gates = keep.middle,
                .dgates = keep.middle,
                .dprobabilities = keep.router.gradient});
  decide_backward(shape, keep.router, launch);
  const WeightOperands pass{places, side, targets, keep.made};
  weight_products(shape, {&pass, 1}, launch);
  rows.product(first(shape, InputGradient, keep.back, keep.middle, parameters.first));
  routed_input_gradient(shape, places, keep.router, keep.back, parameters, targets, launch);
}

const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places) {
  return kept_at(shape, places).router.groups;
}

}  // namespace
}  // namespace routed

const Launches kRouted{.kept_bytes = routed::kept_bytes,
                       .forward = routed::forward,
                       .backward = routed::backward,
                       .weight_gradients = routed::weight_gradients,
                       .chosen_groups = routed::chosen_groups};

}  // namespace capo::run

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
// The kept memory has these sections, each aligned; n is tokens * top_k, the number of choices:
//   normed    (tokens, hidden)  the norm's output, which the router and dispatch read
//   logits    (tokens, groups)  of the router; B turns them into their gradient, in place
//   rows      (n, hidden)       normed rows by group, which the first product reads
//   middle    (n, 2 * ffn)      its output; B turns it into its gradient, in place
//   active    (n, ffn)          the second product reads it
//   room      (n, ffn)          the gradient of `active`, while B runs
//   made      (n, hidden)       what the experts make; in B the incoming gradient by group
//   back      (n, hidden)       the gradient of `rows`, while B runs
//   groups, places, sources     (n) whole numbers each: SortRoutes in kernels/call.h explains them
//   sizes     (groups)          whole numbers
//   chosen, sorted, gradient    (n) fp32 each: probabilities by choice and by sorted row, and the
//                               gradients of the latter
//
// The experts are all on this rank; none is shared by all tokens, and biases are refused.
// Tested by tests/run/steps/routed_runs_test.cpp.

#include "run/modules/launches.h"

#include <span>
#include <vector>

namespace capo::run {

namespace routed {
namespace {

struct Kept {
  std::byte* normed;
  std::byte* logits;
  std::byte* rows;
  std::byte* middle;
  std::byte* active;
  std::byte* room;
  std::byte* made;
  std::byte* back;
  std::int64_t* groups;
  std::int64_t* places;
  std::int64_t* sources;
  std::int64_t* sizes;
  float* chosen;
  float* sorted;
  float* gradient;
  std::int64_t bytes;
};

// The experts as a layer: their rows are in groups, and there are as many as choices.
LayerShape experts_of(const LayerShape& shape) {
  LayerShape experts = shape;
  experts.tokens = product_rows(shape);
  experts.grouped = true;
  experts.split = false;
  return experts;
}

Kept kept_at(const LayerShape& shape, const LayerPlaces& places) {
  Sections sections(places.activations);
  const LayerShape experts = experts_of(shape);
  const auto matrix = [&](const LayerShape& of, std::int64_t columns) {
    return sections.take(matrix_bytes(of, columns));
  };
  const std::int64_t choices = experts.tokens;
  Kept keep{};
  keep.normed = matrix(shape, shape.hidden);
  keep.logits = matrix(shape, shape.groups);
  keep.rows = matrix(experts, shape.hidden);
  keep.middle = matrix(experts, first_columns(shape));
  keep.active = matrix(experts, second_columns(shape));
  keep.room = matrix(experts, second_columns(shape));
  keep.made = matrix(experts, shape.hidden);
  keep.back = matrix(experts, shape.hidden);
  keep.groups = sections.numbers<std::int64_t>(choices);
  keep.places = sections.numbers<std::int64_t>(choices);
  keep.sources = sections.numbers<std::int64_t>(choices);
  keep.sizes = sections.numbers<std::int64_t>(shape.groups);
  keep.chosen = sections.numbers<float>(choices);
  keep.sorted = sections.numbers<float>(choices);
  keep.gradient = sections.numbers<float>(choices);
  keep.bytes = sections.taken();
  return keep;
}

std::int64_t kept_bytes(const LayerShape& shape) {
  return kept_at(shape, {}).bytes;
}

RouteShape route_of(const LayerShape& shape) {
  return {.rows = shape.tokens, .groups = shape.groups, .top_k = shape.top_k};
}

LayerSide side_of(const Kept& keep) {
  LayerSide side;
  side.sizes = keep.sizes;
  return side;
}

GroupedProduct router(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                      std::byte* y, void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = shape.groups, .x = x, .y = y, .w = w};
}

GroupedProduct first(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x, std::byte* y,
                     void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = first_columns(shape), .x = x, .y = y, .w = w};
}

GroupedProduct second(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                      std::byte* y, void* const* w) {
  return {.kind = kind, .in = second_columns(shape), .out = shape.hidden, .x = x, .y = y, .w = w};
}

// Rows of the tokens by group: every token as often as it chose.
void dispatch(const LayerShape& shape, const Kept& keep, const std::byte* from, std::byte* to,
              const Sink& launch) {
  launch(Gather{.rows = product_rows(shape),
                .row_bytes = shape.hidden * bytes_of(shape.type),
                .index = keep.sources,
                .from_rows = shape.tokens,
                .from = from,
                .to = to});
}

void combine(const LayerShape& shape, const Kept& keep, std::byte* from, std::byte* to,
             const Sink& launch) {
  launch(Combine{.type = shape.type,
                 .write = Write::Add,
                 .shape = route_of(shape),
                 .columns = shape.hidden,
                 .places = keep.places,
                 .x = from,
                 .y = to});
}

void decide(const LayerShape& shape, const Kept& keep, const Sink& launch) {
  launch(Route{.type = shape.type,
               .shape = route_of(shape),
               .logits = keep.logits,
               .groups = keep.groups,
               .probabilities = keep.chosen});
  launch(SortRoutes{.shape = route_of(shape),
                    .groups = keep.groups,
                    .probabilities = keep.chosen,
                    .sizes = keep.sizes,
                    .places = keep.places,
                    .sources = keep.sources,
                    .sorted_probabilities = keep.sorted});
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& /*side*/,
             const LayerParameters& parameters, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const LayerShape experts = experts_of(shape);
  const LayerSide side = side_of(keep);
  const RowLaunches tokens(shape, side, launch);
  const RowLaunches rows(experts, side, launch);
  launch_norm(shape, parameters, places.input, keep.normed, launch);
  tokens.product(router(shape, Forward, keep.normed, keep.logits, parameters.router));
  decide(shape, keep, launch);
  dispatch(shape, keep, keep.normed, keep.rows, launch);
  rows.product(first(shape, Forward, keep.rows, keep.middle, parameters.first),
               {.gated = keep.active, .probabilities = keep.sorted});
  rows.product(second(shape, Forward, keep.active, keep.made, parameters.second));
  copy(shape, places.output, places.input, shape.hidden, launch);
  combine(shape, keep, keep.made, places.output, launch);
}

// Weight gradients of passes whose incoming gradients are sorted by group.
void weight_products(const LayerShape& shape, std::span<const WeightOperands> passes,
                     const Sink& launch) {
  using enum GroupedProduct::Kind;
  std::vector<WeightOperands> of_experts(passes.begin(), passes.end());
  for (WeightOperands& pass : of_experts) pass.side = side_of(kept_at(shape, pass.places));
  const auto of_second = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return second(shape, WeightGradient, keep.active, pass.incoming, nullptr);
  };
  const auto of_first = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return first(shape, WeightGradient, keep.rows, keep.middle, nullptr);
  };
  const auto of_router = [&](const WeightOperands& pass) {
    const Kept keep = kept_at(shape, pass.places);
    return router(shape, WeightGradient, keep.normed, keep.logits, nullptr);
  };
  const LayerShape experts = experts_of(shape);
  launch_weight_products(experts, of_experts, &LayerTargets::second, of_second, launch);
  launch_weight_products(experts, of_experts, &LayerTargets::first, of_first, launch);
  launch_weight_products(shape, passes, &LayerTargets::router, of_router, launch);
}

// W reads the incoming gradient itself, or a copy, and sorts it once more.
void weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                      const Sink& launch) {
  std::vector<WeightOperands> sorted(passes.begin(), passes.end());
  for (WeightOperands& pass : sorted) {
    const std::byte* from =
        shape.copies_grad_output ? pass.places.operands : pass.places.grad_output;
    pass.incoming = pass.places.scratch;
    dispatch(shape, kept_at(shape, pass.places), from, pass.incoming, launch);
  }
  weight_products(shape, sorted, launch);
}

void backward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
              const LayerParameters& parameters, const LayerTargets& targets, const Sink& launch) {
  using enum GroupedProduct::Kind;
  const Kept keep = kept_at(shape, places);
  const LayerShape experts = experts_of(shape);
  const LayerSide of_experts = side_of(keep);
  const RowLaunches tokens(shape, side, launch);
  const RowLaunches rows(experts, of_experts, launch);
  dispatch(shape, keep, places.grad_output, keep.made, launch);
  rows.product(second(shape, InputGradient, keep.room, keep.made, parameters.second));
  launch(SwiGluGradient{.type = shape.type,
                        .rows = rows.all_rows(),
                        .columns = shape.ffn,
                        .x = keep.middle,
                        .probabilities = keep.sorted,
                        .dy = keep.room,
                        .dx = keep.middle,
                        .dprobabilities = keep.gradient});
  launch(RouteGradient{.type = shape.type,
                       .shape = route_of(shape),
                       .logits = keep.logits,
                       .groups = keep.groups,
                       .places = keep.places,
                       .dprobabilities = keep.gradient,
                       .dlogits = keep.logits});
  const WeightOperands pass{places, side, targets, keep.made};
  weight_products(shape, {&pass, 1}, launch);
  rows.product(first(shape, InputGradient, keep.back, keep.middle, parameters.first));
  tokens.product(router(shape, InputGradient, places.grad_input, keep.logits, parameters.router));
  combine(shape, keep, keep.back, places.grad_input, launch);
  launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  if (!shape.needs_grad_input) return;
  launch(Add{.to_type = shape.type,
             .from_type = shape.type,
             .count = shape.tokens * shape.hidden,
             .from = places.grad_output,
             .to = places.grad_input});
}

const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places) {
  return kept_at(shape, places).groups;
}

}  // namespace
}  // namespace routed

const Launches kRouted{.kept_bytes = routed::kept_bytes,
                       .forward = routed::forward,
                       .backward = routed::backward,
                       .weight_gradients = routed::weight_gradients,
                       .chosen_groups = routed::chosen_groups};

}  // namespace capo::run

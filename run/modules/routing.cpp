#include "run/modules/routing.h"

namespace capo::run {

namespace {

RouteShape route_of(const LayerShape& shape) {
  return {.rows = shape.tokens, .groups = shape.groups, .top_k = shape.top_k};
}

GroupedProduct router(const LayerShape& shape, GroupedProduct::Kind kind, std::byte* x,
                      std::byte* y, void* const* w) {
  return {.kind = kind, .in = shape.hidden, .out = shape.groups, .x = x, .y = y, .w = w};
}

}  // namespace

RouterKept take_router(Sections& sections, const LayerShape& shape) {
  const std::int64_t choices = product_rows(shape);
  RouterKept keep;
  keep.normed = sections.take(matrix_bytes(shape, shape.hidden));
  keep.logits = sections.take(matrix_bytes(shape, shape.groups));
  keep.groups = sections.numbers<std::int64_t>(choices);
  keep.places = sections.numbers<std::int64_t>(choices);
  keep.sources = sections.numbers<std::int64_t>(choices);
  keep.sizes = sections.numbers<std::int64_t>(shape.groups);
  keep.chosen = sections.numbers<float>(choices);
  keep.sorted = sections.numbers<float>(choices);
  keep.gradient = sections.numbers<float>(choices);
  return keep;
}

LayerSide side_of_experts(const RouterKept& keep) {
  LayerSide side;
  side.sizes = keep.sizes;
  return side;
}

void decide(const LayerShape& shape, const LayerPlaces& places, const RouterKept& keep,
            const LayerParameters& parameters, const Sink& launch) {
  launch_norm(shape, parameters, places.input, keep.normed, launch);
  const LayerSide side;
  RowLaunches(shape, side, launch)
      .product(router(shape, GroupedProduct::Kind::Forward, keep.normed, keep.logits,
                      parameters.router));
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

void dispatch(const LayerShape& shape, const RouterKept& keep, const std::byte* from, std::byte* to,
              const Sink& launch) {
  launch(Gather{.rows = product_rows(shape),
                .row_bytes = shape.hidden * bytes_of(shape.type),
                .index = keep.sources,
                .from_rows = shape.tokens,
                .from = from,
                .to = to});
}

void combine(const LayerShape& shape, const RouterKept& keep, std::byte* from, std::byte* to,
             const Sink& launch) {
  launch(Combine{.type = shape.type,
                 .write = Write::Add,
                 .shape = route_of(shape),
                 .columns = shape.hidden,
                 .places = keep.places,
                 .x = from,
                 .y = to});
}

void decide_backward(const LayerShape& shape, const RouterKept& keep, const Sink& launch) {
  launch(RouteGradient{.type = shape.type,
                       .shape = route_of(shape),
                       .logits = keep.logits,
                       .groups = keep.groups,
                       .places = keep.places,
                       .dprobabilities = keep.gradient,
                       .dlogits = keep.logits});
}

void router_weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                             const std::function<RouterKept(const WeightOperands&)>& kept,
                             const Sink& launch) {
  const auto call_of = [&](const WeightOperands& pass) {
    const RouterKept keep = kept(pass);
    return router(shape, GroupedProduct::Kind::WeightGradient, keep.normed, keep.logits, nullptr);
  };
  launch_weight_products(shape, passes, &LayerTargets::router, call_of, launch);
}

void routed_input_gradient(const LayerShape& shape, const LayerPlaces& places,
                           const RouterKept& keep, std::byte* rows,
                           const LayerParameters& parameters, const LayerTargets& targets,
                           const Sink& launch) {
  const LayerSide side;
  RowLaunches(shape, side, launch)
      .product(router(shape, GroupedProduct::Kind::InputGradient, places.grad_input, keep.logits,
                      parameters.router));
  combine(shape, keep, rows, places.grad_input, launch);
  launch_norm_backward(shape, parameters, targets, places.input, places.grad_input, launch);
  if (!shape.needs_grad_input) return;
  launch(Add{.to_type = shape.type,
             .from_type = shape.type,
             .count = shape.tokens * shape.hidden,
             .from = places.grad_output,
             .to = places.grad_input});
}

}  // namespace capo::run

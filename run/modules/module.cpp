#include "run/modules/module.h"

#include "run/engine/engine.h"
#include "run/modules/launches.h"

#include <span>
#include <vector>

namespace capo::run {

namespace {

const Launches& launches_of(const LayerShape& shape) {
  const ModuleKind kind = shape.kind;
  const bool codes = shape.scaling.has_value();
  if (has_two_halves(kind)) return kTransformer;
  if (is_attention(kind)) return codes ? kCodedAttention : kAttention;
  if (has_router(kind)) return codes ? kCodedRouted : kRouted;
  if (is_mlp(kind)) return codes ? kCodedMlp : kMlp;
  return codes ? kCodedProduct : kOneProduct;
}

}  // namespace

std::int64_t kept_bytes(const LayerShape& shape) {
  return launches_of(shape).kept_bytes(shape);
}

const std::int64_t* chosen_groups(const LayerShape& shape, const LayerPlaces& places) {
  const auto of = launches_of(shape).chosen_groups;
  return of == nullptr ? nullptr : of(shape, places);
}

BetweenHalves between_halves(const LayerShape& shape, const LayerPlaces& places) {
  const auto of = launches_of(shape).between_halves;
  return of == nullptr ? BetweenHalves{} : of(shape, places);
}

void forward(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
             const LayerParameters& parameters, const Sink& launch) {
  launches_of(shape).forward(shape, places, side, parameters, launch);
}

void backward(const LayerShape& shape, Reach reach, const LayerPlaces& places,
              const LayerSide& side, const LayerParameters& parameters, const LayerTargets& targets,
              const Sink& launch) {
  LayerPlaces own = places;
  if (reach == Reach::Whole) own.operands = nullptr;
  if (own.operands != nullptr && shape.copies_grad_output && !shape.scaling) {
    copy(shape, places.operands, places.grad_output, output_columns(shape), launch);
  }
  launches_of(shape).backward(shape, own, side, parameters, targets, launch);
}

void weight_gradients(const LayerShape& shape, const std::vector<WeightPass>& passes,
                      const Sink& launch) {
  std::vector<WeightOperands> all;
  for (const WeightPass& pass : passes) {
    all.push_back({.places = pass.places,
                   .side = pass.side,
                   .targets = pass.targets,
                   .incoming = incoming_for_weights(shape, pass.places, launch)});
  }
  launches_of(shape).weight_gradients(shape, all, launch);
}

namespace {

bool joins(const Target& next, const Target& before) {
  return next.wanted && next.write == Write::Add && next.table == before.table &&
         next.type == before.type;
}

// Launches one call over the rows of all passes, or one for each group on a split path.
void launch_as_one(const LayerShape& shape, std::span<const WeightOperands> passes,
                   const std::function<GroupedProduct(const WeightOperands&)>& call_of,
                   const Sink& launch) {
  std::vector<GroupedProduct> calls;
  for (std::size_t at = 0; at < passes.size(); ++at) {
    const RowLaunches rows(shape, passes[at].side, launch);
    const std::vector<RowPart> parts = rows.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const GroupedProduct call = rows.of_part(call_of(passes[at]), parts[i]);
      if (at == 0) {
        calls.push_back(call);
      } else {
        calls[i].batches[calls[i].further++] = {
            .x = call.x, .y = call.y, .count = call.rows.count, .sizes = call.rows.sizes};
      }
    }
  }
  for (const GroupedProduct& call : calls) launch(call);
}

}  // namespace

void launch_weight_products(const LayerShape& shape, std::span<const WeightOperands> passes,
                            Target LayerTargets::*target,
                            const std::function<GroupedProduct(const WeightOperands&)>& call_of,
                            const Sink& launch) {
  const auto target_of = [target](const WeightOperands& pass) -> const Target& {
    return pass.targets.*target;
  };
  const auto with_target = [&](const WeightOperands& pass) {
    GroupedProduct call = call_of(pass);
    call.gradient_type = target_of(pass).type;
    call.write = target_of(pass).write;
    call.w = target_of(pass).table;
    return call;
  };
  for (std::size_t begin = 0, end = 0; begin < passes.size(); begin = end) {
    end = begin + 1;
    if (!target_of(passes[begin]).wanted) continue;
    while (end < passes.size() && joins(target_of(passes[end]), target_of(passes[begin]))) ++end;
    launch_as_one(shape, passes.subspan(begin, end - begin), with_target, launch);
  }
}

void launch_norm(const LayerShape& shape, const LayerParameters& parameters, const std::byte* x,
                 std::byte* normed, const Sink& launch) {
  launch(LayerNorm{.type = shape.type,
                   .rows = shape.tokens,
                   .columns = shape.hidden,
                   .epsilon = kEpsilon,
                   .x = x,
                   .weight = parameters.norm_weight,
                   .bias = parameters.norm_bias,
                   .y = normed});
}

void launch_norm_backward(const LayerShape& shape, const LayerParameters& parameters,
                          const LayerTargets& targets, const std::byte* x, std::byte* gradient,
                          const Sink& launch) {
  if (targets.norm_weight.wanted) {
    launch(LayerNormWeightGradient{.type = shape.type,
                                   .gradient_type = targets.norm_weight.type,
                                   .write = targets.norm_weight.write,
                                   .rows = shape.tokens,
                                   .columns = shape.hidden,
                                   .epsilon = kEpsilon,
                                   .x = x,
                                   .dy = gradient,
                                   .dweight = targets.norm_weight.data,
                                   .dbias = targets.norm_bias.data});
  }
  if (!shape.needs_grad_input) return;
  launch(LayerNormGradient{.type = shape.type,
                           .rows = shape.tokens,
                           .columns = shape.hidden,
                           .epsilon = kEpsilon,
                           .x = x,
                           .weight = parameters.norm_weight,
                           .dy = gradient,
                           .dx = gradient});
}

std::byte* incoming_for_weights(const LayerShape& shape, const LayerPlaces& places,
                                const Sink& launch) {
  if (shape.scaling) return places.operands;
  if (!shape.copies_grad_output) return places.grad_output;
  copy(shape, places.scratch, places.operands, output_columns(shape), launch);
  return places.scratch;
}

}  // namespace capo::run

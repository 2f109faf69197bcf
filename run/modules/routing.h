// A router: what it keeps, and the calls that decide which rows go to which group, carry them there
// and bring back what was made of them.
//
// routed.cpp explains the decision. Experts whose products read codes (coded_routed.cpp) stand
// behind the same router, whose own product reads the numbers themselves under every recipe.
//
// It is private to modules/, whose files share it. Tested by
// tests/run/steps/routed_runs_test.cpp.

#pragma once

#include "run/modules/launches.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace capo::run {

/// Kept from F on: n is tokens * top_k, the number of choices.
///   normed    (tokens, hidden)  the norm's output, which the router and dispatch read
///   logits    (tokens, groups)  of the router; B turns them into their gradient, in place
///   groups, places, sources     (n) whole numbers each: SortRoutes in kernels/call.h explains them
///   sizes     (groups)          whole numbers
///   chosen, sorted, gradient    (n) fp32 each: probabilities by choice and by sorted row, and the
///                               gradients of the latter
struct RouterKept {
  std::byte* normed = nullptr;
  std::byte* logits = nullptr;
  std::int64_t* groups = nullptr;
  std::int64_t* places = nullptr;
  std::int64_t* sources = nullptr;
  std::int64_t* sizes = nullptr;
  float* chosen = nullptr;
  float* sorted = nullptr;
  float* gradient = nullptr;
};

[[nodiscard]] RouterKept take_router(Sections& sections, const LayerShape& shape);

/// The sizes of the experts' groups, on the device.
[[nodiscard]] LayerSide side_of_experts(const RouterKept& keep);

/// The norm, the router's product and its choices.
void decide(const LayerShape& shape, const LayerPlaces& places, const RouterKept& keep,
            const LayerParameters& parameters, const Sink& launch);

/// Rows of the tokens by group: every token as often as it chose.
void dispatch(const LayerShape& shape, const RouterKept& keep, const std::byte* from, std::byte* to,
              const Sink& launch);

/// Adds to each token what was made of its choices.
void combine(const LayerShape& shape, const RouterKept& keep, std::byte* from, std::byte* to,
             const Sink& launch);

/// The gradient of the logits, of those of the probabilities.
void decide_backward(const LayerShape& shape, const RouterKept& keep, const Sink& launch);

/// The gradient of the router's weight; `kept` finds what a pass keeps.
void router_weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                             const std::function<RouterKept(const WeightOperands&)>& kept,
                             const Sink& launch);

/// The gradient of the layer's input: by way of the router, by way of the experts' rows, whose
/// gradient is `rows`, and by way of the residual sum.
void routed_input_gradient(const LayerShape& shape, const LayerPlaces& places,
                           const RouterKept& keep, std::byte* rows,
                           const LayerParameters& parameters, const LayerTargets& targets,
                           const Sink& launch);

}  // namespace capo::run

// The ranks of a step that train the same weights on data of their own, and the gradients that they
// sum.
//
//   {"members": [0, 1], "actions": ["reduce"]}     reduce1 leaves on both ranks the sum of
//   rank 0: F1.0 B1.0 W1.0 reduce1                 rank 0's gradients of chunk 1 and
//   rank 1: F1.0 B1.0 W1.0 reduce1                 rank 1's
//
// The members of a group that performs `reduce` are replicas of each other: their weights are drawn
// alike, their inputs are not. One order of summation is everybody's: ascending by rank. A rank
// that is in no such group has no replica in the step, and its reduction sums one gradient.
//
// A reduction may hang on the hooks of a module (`wgrad_hooks`), which a replay of its weight
// gradient runs. The one of the step's last microbatch finds all gradients there and begins it, so
// the order that is run is the declared one with a `reduce` at that place.
//
// Tested by tests/run/steps/reductions_test.cpp.

#pragma once

#include "core/rules/verify.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// A chunk that several ranks reduce together.
struct Reduction {
  std::int32_t chunk = 0;
  std::vector<std::int32_t> ranks;  ///< two at least, ascending

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// Lists the reductions that begin on hooks: behind the last gradient of each chunk that has such
/// modules, on ranks with replicas, if the order does not list it. Hooks of operations are left out
/// under a framework's plan, which runs none of them (G08).
void list_hooked_reductions(Schedule& schedule, const CheckOptions& options);

/// Every chunk of the ranks that are replicas of each other, whether the order reduces it or not.
[[nodiscard]] std::vector<Reduction> replicated_chunks(const PlannedStep& step);
/// The reductions that a step needs: none if its order has none and none hangs on hooks, since then
/// somebody else reduces; otherwise each replicated chunk once, behind its last gradient.
[[nodiscard]] std::vector<Reduction> reductions_due(const PlannedStep& step);

/// Why ranks that reduce together are no replicas: a sentence; nullopt if they are.
[[nodiscard]] std::optional<std::string> refusal_of_replicas(const PlannedStep& step,
                                                             const StepLayers& layers);

/// The parameters of a reduced chunk, each as the ranks of the reduction have it.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> reduced_parameters(
    const StepLayers& layers, const BufferTable& table, const Reduction& reduction);

/// Each parameter is drawn with the numbers of the one that stands here for it: the first of its
/// replicas, else itself.
[[nodiscard]] std::vector<std::uint32_t> drawn_as(const PlannedStep& step,
                                                  const StepLayers& layers);

}  // namespace capo::run

// Gives one chunk a module that is at fault, and finds the entry that the finding must name. Faults
// of modules use it, and so do near misses, whose module lacks one thing to be at fault.
//
//   with_module(sound, choice, {.rule = "G04", .of = Delayed::Yes, .shown_at =
//   Kind::BackwardWeight},
//               [](Module& module) { module.flags.frozen_weight = true; })
//
// Tested by fault_test.cpp and tests/properties/module_faults_test.cpp.

#pragma once

#include "testing/edits/entries.h"
#include "testing/generators/sound_declared.h"

#include <functional>
#include <optional>
#include <string_view>

namespace capo::testing {

enum class Delayed { Yes, No, Either };

struct ModuleSlip {
  std::string_view rule;
  Delayed of = Delayed::Either;   ///< says which chunks can have the module
  Kind shown_at = Kind::Forward;  ///< the finding is at the chunk's first entry of this kind
  std::int32_t microbatches = 1;  ///< the fewest that the step may have
};

/// One chunk, by choice, gets a module of its own: a fused linear that `spoil` has changed. The
/// result is nullopt if no chunk fits.
[[nodiscard]] std::optional<Broken<Declared>> with_module(
    const Declared& sound, std::size_t choice, const ModuleSlip& slip,
    const std::function<void(Module&)>& spoil);

/// All ranks' entries that reduce gradients.
[[nodiscard]] std::vector<Position> reductions(const Schedule& schedule);
/// The last entry of the chunk that makes a weight gradient. Precondition: the order has one.
[[nodiscard]] Position last_gradient(const Schedule& schedule, std::size_t rank,
                                     std::int32_t chunk);

// The faults of quantization.cpp, which the table in modules.cpp names.
[[nodiscard]] std::optional<Broken<Declared>> quantized_bias(const Declared& sound,
                                                             std::size_t choice);
[[nodiscard]] std::optional<Broken<Declared>> cache_baked_in(const Declared& sound,
                                                             std::size_t choice);
[[nodiscard]] std::optional<Broken<Declared>> recipe_refused(const Declared& sound,
                                                             std::size_t choice);
[[nodiscard]] std::optional<Broken<Declared>> sizes_fetched(const Declared& sound,
                                                            std::size_t choice);
[[nodiscard]] std::optional<Broken<Declared>> stale_weight(const Declared& sound,
                                                           std::size_t choice);
[[nodiscard]] std::optional<Broken<Declared>> amax_out_of_step(const Declared& sound,
                                                               std::size_t choice);

}  // namespace capo::testing

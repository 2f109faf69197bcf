// What the faults of modules share: giving one chunk a module that is at fault, and saying where
// the finding is.

#pragma once

#include "testing/edits/entries.h"
#include "testing/generators/sound_declared.h"

#include <functional>
#include <optional>
#include <string_view>

namespace capo::testing::faults {

enum class Delayed { Yes, No, Either };

struct ModuleSlip {
  std::string_view rule;
  Delayed of = Delayed::Either;   ///< which chunks it can be of
  Kind shown_at = Kind::Forward;  ///< the chunk's first entry of this kind
  std::int32_t microbatches = 1;  ///< that the step has at least
};

/// One chunk, by choice, gets a module of its own: a fused linear that `spoil` has changed. Nothing
/// where no chunk fits.
[[nodiscard]] std::optional<Broken<Declared>> with_module(
    const Declared& sound, std::size_t choice, const ModuleSlip& slip,
    const std::function<void(Module&)>& spoil);

/// The reductions of all ranks.
[[nodiscard]] std::vector<EntryPlace> reductions(const Schedule& schedule);
/// The last entry of the chunk that makes a weight gradient, which the order has.
[[nodiscard]] EntryPlace last_gradient(const Schedule& schedule, std::size_t rank,
                                       std::int32_t chunk);

}  // namespace capo::testing::faults

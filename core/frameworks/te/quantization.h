// TransformerEngine runs a recipe on a device or refuses it, and under it a grouped product takes
// the sizes of its groups from the device or asks the host for them.
//
//   grouped-linear, mxfp8    hopper       refused: "compute capability 10.0 or higher required"
//                            blackwell    sizes stay on the device, with cuBLASLt 13.3
//   grouped-linear, delayed  either       one product for each group, of sizes on the host
//
// The table is read in quantization.py:149-186 and module/grouped_linear.py:124-157 of release
// 2.20.2 (d0067d0da has the same), and ops/basic/grouped_linear.py:102-129. What is undeclared of a
// device is taken for whatever serves best, so that an answer of "no" holds for all devices that
// may be meant. Which operands a module copies is core/plan/operands.h's concern, the formats of
// copies core/model/recipe.h's. Tested by quantization_test.cpp.

#pragma once

#include "core/frameworks/te/version.h"
#include "core/model/model.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace capo::te {

/// One row for each recipe and architecture.
struct RecipeSupport {
  Recipe recipe;
  Architecture architecture;
  bool runs = true;  ///< else entering autocast raises
  /// From this version of cuBLASLt on (1304: 13.4) a grouped product takes sizes from the device;
  /// nullopt: it never does.
  std::optional<std::int32_t> grouped_from;
};

inline constexpr std::array kRecipeSupport{
    RecipeSupport{Recipe::None, Architecture::Hopper, true, 1304},
    RecipeSupport{Recipe::None, Architecture::Blackwell, true, 1303},
    RecipeSupport{Recipe::Delayed, Architecture::Hopper, true, std::nullopt},
    RecipeSupport{Recipe::Delayed, Architecture::Blackwell, true, std::nullopt},
    RecipeSupport{Recipe::Current, Architecture::Hopper, true, 1305},
    RecipeSupport{Recipe::Current, Architecture::Blackwell, true, 1303},
    RecipeSupport{Recipe::Block, Architecture::Hopper, true, 1306},
    // It is emulated with MXFP8 there, on the path of one product a group.
    RecipeSupport{Recipe::Block, Architecture::Blackwell, true, std::nullopt},
    RecipeSupport{Recipe::Mxfp8, Architecture::Hopper, false, std::nullopt},
    RecipeSupport{Recipe::Mxfp8, Architecture::Blackwell, true, 1303},
    RecipeSupport{Recipe::Nvfp4, Architecture::Hopper, false, std::nullopt},
    // With its random Hadamard transform and without scales by row of activations.
    RecipeSupport{Recipe::Nvfp4, Architecture::Blackwell, true, 1303},
};

/// Whether some device that may be meant runs the recipe.
[[nodiscard]] bool runs(Recipe recipe, const Environment& environment);

/// Whether grouped products of the module may take sizes from the device: some device that may be
/// meant has the path. A module that is not grouped has no such products.
[[nodiscard]] bool may_take_sizes_from_device(const Module& module, const Environment& environment);

/// Whether it has to fetch the sizes of its groups, which are on the device, for one product each.
/// Not of fp32, whose sizes a capture bakes in, nor of a recipe that does not run.
[[nodiscard]] bool fetches_sizes(const Module& module, const Environment& environment);

/// Whether backward_dw() converts a bias gradient that its delayed product has not made, since the
/// quantizing of dY made it in B: an AttributeError in the passes before capture, which have set
/// `.grad` back to None by then.
[[nodiscard]] bool misses_bias_gradient(const Module& module, const Version& version = kNewest);

/// The reason why it may not, "recipe delayed has no grouped product". Precondition: it is grouped,
/// and it may not.
[[nodiscard]] std::string why_sizes_come_from_host(const Module& module,
                                                   const Environment& environment);

}  // namespace capo::te

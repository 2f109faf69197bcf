// main_grad may be written as the gradient of one weight for all groups, (groups, out, in), or not.
//
// A product writes elements that lie one behind another. So main_grad may have any shape with as
// many elements that can be viewed so without a copy, as torch.Tensor.view would; a copy would take
// the gradient, and main_grad would never change.
//
//   (8192)          (1)             of groups 4, out 64, in 32: written as (4, 64, 32)
//   (256, 32)       (32, 1)         likewise
//   (256, 32)       (64, 1)         refused: rows have a gap between them
//   (4, 64, 32)     (2048, 1, 64)   refused: transposed, though the shape is right
//
// Sizes and strides are counted in elements. Does not look at types or devices, and not at weights
// that each have a main_grad of their own, where any layout goes that the product takes.
// Tested by main_grad_test.cpp.

#pragma once

#include "core/model/model.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capo::gradients {

/// A single weight for all groups; sizes from 1.
struct GroupedWeight {
  std::int64_t groups = 1;
  std::int64_t out = 1;
  std::int64_t in = 1;
};

/// The strides under which a tensor of `shape` and `strides` is viewed as `target` without a copy,
/// by torch.Tensor.view's rule: adjacent dimensions merge if one goes on where the other ends, and
/// each merged one may be split. nullopt if there is no such view, if the numbers of elements
/// differ, or if one does not fit 64 bits.
[[nodiscard]] std::optional<std::vector<std::int64_t>> view_strides(
    std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
    std::span<const std::int64_t> target);

/// Why the weight's gradient cannot be written there: a sentence that names shape and strides.
/// nullopt if it can.
[[nodiscard]] std::optional<std::string> main_grad_refusal(const MainGrad& main_grad,
                                                           const GroupedWeight& weight);

/// TransformerEngine's answer to a main_grad that the sound contract may refuse.
enum class TeMainGrad : std::uint8_t {
  Writes,
  RefusesNamingIt,     ///< RuntimeError with shape and strides (ops/_common.py:177)
  FailsInView,         ///< PyTorch's own RuntimeError, of .view(-1)
  WritesCopySilently,  ///< main_grad never changes, and the parameter is flagged as done
};

/// For grouped-linear, grouped-linear-op and grouped-mlp; other kinds have no grouped weight, and
/// write.
[[nodiscard]] TeMainGrad te_with_main_grad(ModuleKind kind, const MainGrad& main_grad,
                                           const GroupedWeight& weight);

}  // namespace capo::gradients

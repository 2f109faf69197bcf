// One layer as its kernels see it: its sizes, the places of its buffers, the tensors that come with
// a microbatch, and the targets of its gradients.
//
// It holds only addresses and numbers; the driver owns the memory, planned or not. Tested by
// tests/run/steps/named_schedules_test.cpp.

#pragma once

#include "core/model/module_kinds.h"
#include "core/model/recipe.h"
#include "run/kernels/call.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo::run {

/// A sink takes calls: a stream launches them, a test looks at them.
using Sink = std::function<void(const Call&)>;

/// The epsilon of every norm.
inline constexpr float kEpsilon = 1e-5F;

/// A complete module: every size is known, and all bytes follow.
struct LayerShape {
  ModuleKind kind = ModuleKind::Linear;
  DataType type = DataType::Bf16;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t groups = 1;
  std::int64_t top_k = 0;  ///< groups that a token chooses, with a router; else 0
  std::int64_t heads = 0;  ///< of an attention or a layer that has one, like the next three
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;  ///< the tokens are whole sequences of so many
  bool grouped = false;       ///< rows are in groups whose sizes come with the microbatch
  bool bias = false;
  bool scale_bias = false;          ///< the bias of a row times its scale
  bool split = false;               ///< sizes are needed on the host, one product for each group
  bool copies_input = false;        ///< W reads a copy
  bool copies_grad_output = false;  ///< W reads a copy of the incoming gradient
  bool needs_grad_input = true;
  std::optional<Scaling> scaling;  ///< products read codes, with scales of this kind

  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

[[nodiscard]] constexpr std::int64_t bytes_of(DataType type) {
  return type == DataType::Fp32 ? 4 : 2;
}
[[nodiscard]] constexpr std::int64_t output_columns(const LayerShape& shape) {
  return is_one_product(shape.kind) ? shape.ffn : shape.hidden;
}
[[nodiscard]] constexpr bool has_router(const LayerShape& shape) {
  return has_router(shape.kind) || (has_two_halves(shape.kind) && shape.top_k > 0);
}
/// The scaling of the codes that engines make by the recipe of a module; nullopt if its products
/// read the tensors themselves, or copies in their own type.
[[nodiscard]] inline std::optional<Scaling> scaling_of(const Module& module) {
  if (module.flags.high_precision_backward) return std::nullopt;
  if (recipe_of(module) == Recipe::Block) return Scaling::Block;
  if (recipe_of(module) == Recipe::Mxfp8) return Scaling::Mxfp8;
  return std::nullopt;
}
/// The kind, the type and the sizes that a module declares, which are all that its kind has.
[[nodiscard]] inline LayerShape declared_shape(const Module& module) {
  const ModuleShape& of = module.shape;
  const bool grouped = is_grouped(*module.kind);
  const bool router = has_router(module);
  return {.kind = *module.kind,
          .type = *module.dtype,
          .tokens = *of.tokens,
          .hidden = *of.hidden,
          .ffn = of.ffn.value_or(0),
          .groups = grouped || router ? *of.groups : 1,
          .top_k = router ? *of.top_k : 0,
          .heads = of.heads.value_or(0),
          .kv_heads = of.kv_heads.value_or(0),
          .head_dim = of.head_dim.value_or(0),
          .sequence = of.sequence.value_or(0),
          .grouped = grouped,
          .scaling = scaling_of(module)};
}
/// The halves of a transformer layer as layers of their own. The first has no norm, which none of
/// its kind has, and reads its input as it is: that of the whole layer, behind a norm.
[[nodiscard]] constexpr LayerShape attention_half(const LayerShape& shape) {
  LayerShape half = shape;
  half.kind = ModuleKind::Attention;
  half.ffn = 0;
  half.groups = 1;
  half.top_k = 0;
  half.copies_input = false;
  half.copies_grad_output = false;
  half.needs_grad_input = true;
  return half;
}
[[nodiscard]] constexpr LayerShape second_half(const LayerShape& shape) {
  LayerShape half = shape;
  half.kind = has_router(shape) ? ModuleKind::MoeLayer : ModuleKind::LayerNormMlp;
  half.heads = half.kv_heads = half.head_dim = half.sequence = 0;
  half.needs_grad_input = true;
  return half;
}
/// Columns of the first product's output.
[[nodiscard]] constexpr std::int64_t first_columns(const LayerShape& shape) {
  if (is_attention(shape.kind)) return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  return has_swiglu(shape.kind) ? 2 * shape.ffn : shape.ffn;
}
/// Columns that the second product reads; 0 if there is none.
[[nodiscard]] constexpr std::int64_t second_columns(const LayerShape& shape) {
  if (is_attention(shape.kind)) return shape.heads * shape.head_dim;
  return has_swiglu(shape.kind) ? shape.ffn : 0;
}

/// Rows of its products: tokens, or choices of a router.
[[nodiscard]] constexpr std::int64_t product_rows(const LayerShape& shape) {
  return shape.tokens * (has_router(shape) ? shape.top_k : 1);
}

/// The experts behind a router as a layer of their own: as many rows as choices, in groups.
[[nodiscard]] constexpr LayerShape experts_of(const LayerShape& shape) {
  LayerShape experts = shape;
  experts.kind = ModuleKind::GroupedMlp;
  experts.needs_grad_input = true;
  experts.tokens = product_rows(shape);
  experts.grouped = true;
  experts.split = false;
  return experts;
}

/// A larger layer is refused, so that all sizes and their sums fit 64 bits with room to spare.
inline constexpr double kMostBytes = 0x1p44;
/// Bytes of the largest tensors of a layer together, in floating point, so that nothing overflows.
[[nodiscard]] constexpr double rough_bytes(const LayerShape& shape) {
  if (has_two_halves(shape.kind)) {
    return rough_bytes(attention_half(shape)) + rough_bytes(second_half(shape));
  }
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double middle = is_attention(shape.kind) ? (number(shape.heads) + number(shape.kv_heads)) *
                                                       number(shape.head_dim)
                                                 : number(shape.ffn);
  const double choices = has_router(shape) ? number(shape.top_k) : 1;
  const double rows = number(shape.tokens) *
                      (choices * (4 * number(shape.hidden) + 8 * middle) + number(shape.groups));
  const double weights = 3 * number(shape.groups) * number(shape.hidden) * middle;
  return 4 * (rows + weights) + 8 * number(shape.groups);
}

/// Bytes of the rows that a layer reads. If sizes are part of its input, they follow the rows.
[[nodiscard]] constexpr std::int64_t input_row_bytes(const LayerShape& shape) {
  return shape.tokens * shape.hidden * bytes_of(shape.type);
}
[[nodiscard]] constexpr std::int64_t sizes_offset(const LayerShape& shape) {
  return (input_row_bytes(shape) + 7) / 8 * 8;
}

/// Kept by a transformer layer between its halves; null of other layers.
struct BetweenHalves {
  std::byte* sum = nullptr;       ///< what the second half reads, from F on
  std::byte* gradient = nullptr;  ///< of the sum, from B on
};

/// The planned buffers of one layer and microbatch.
struct LayerPlaces {
  std::byte* input = nullptr;
  std::byte* grad_output = nullptr;
  std::byte* output = nullptr;
  std::byte* grad_input = nullptr;
  std::byte* activations = nullptr;
  std::byte* operands = nullptr;
  std::byte* scratch = nullptr;
  std::byte* quantized_weight = nullptr;  ///< null where weights are quantized once before the step
};

/// Tensors on the device that come with a microbatch; null if the layer has no such tensor.
struct LayerSide {
  const std::int64_t* sizes = nullptr;
  std::vector<std::int64_t> sizes_on_host;  ///< empty unless the path is split
  const float* probabilities = nullptr;
  const float* scales = nullptr;
  float* grad_probabilities = nullptr;
  float* grad_scales = nullptr;
  /// The token that each row of a router's experts is, in what comes in and in the incoming
  /// gradient; null: these are rows by group already.
  const std::int64_t* sources = nullptr;
  std::int64_t tokens = 0;  ///< that a source may name
};

/// A weight as codes, of all groups, both ways; null if its layer has none, or if each microbatch
/// makes them for itself.
struct CodedWeight {
  Codes along_in;
  Codes along_out;
};

/// Tables of pointers on the device, one a group; null if the layer has no such parameter.
struct LayerParameters {
  void* norm_weight = nullptr;  ///< the parameter itself, as norms have one
  void* norm_bias = nullptr;
  void* const* router = nullptr;
  void* const* first = nullptr;
  void* const* first_bias = nullptr;
  void* const* second = nullptr;
  void* const* second_bias = nullptr;
  // A transformer layer has these of its attention as well.
  void* attention_norm_weight = nullptr;
  void* attention_norm_bias = nullptr;
  void* const* qkv = nullptr;
  void* const* qkv_bias = nullptr;
  void* const* projection = nullptr;
  void* const* projection_bias = nullptr;
  CodedWeight first_codes;
  CodedWeight second_codes;
  CodedWeight qkv_codes;
  CodedWeight projection_codes;
};

/// The target of the gradient of one parameter in one action.
struct Target {
  bool wanted = false;
  DataType type = DataType::Fp32;
  Write write = Write::Overwrite;
  void* const* table = nullptr;  ///< on the device, one a group
  void* data = nullptr;          ///< the pointer of the first group
};

struct LayerTargets {
  Target norm_weight;
  Target norm_bias;
  Target router;
  Target first;
  Target first_bias;
  Target second;
  Target second_bias;
  // A transformer layer has these of its attention as well.
  Target attention_norm_weight;
  Target attention_norm_bias;
  Target qkv;
  Target qkv_bias;
  Target projection;
  Target projection_bias;
};

/// A layer's weight gradient of one microbatch: its operands and its targets.
struct WeightPass {
  LayerPlaces places;
  LayerSide side;
  LayerTargets targets;
};

}  // namespace capo::run

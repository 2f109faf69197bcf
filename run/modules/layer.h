// One layer as its kernels see it: where things lie, what a microbatch brings along, and where
// gradients of its parameters go.
//
// Only addresses and numbers; whose memory it is, planned or not, is the driver's business.

#pragma once

#include "core/model/module_kinds.h"
#include "run/kernels/call.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace capo::run {

/// Where calls go: to a stream, or to whoever wants to see them.
using Sink = std::function<void(const Call&)>;

/// Of every norm.
inline constexpr float kEpsilon = 1e-5F;

/// What a module is, complete: every size is known and all bytes follow.
struct LayerShape {
  ModuleKind kind = ModuleKind::Linear;
  DataType type = DataType::Bf16;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t groups = 1;
  bool grouped = false;  ///< rows are in groups whose sizes come with the microbatch
  bool bias = false;
  bool scale_bias = false;          ///< the bias of a row times its scale
  bool split = false;               ///< sizes are needed on the host, one product for each group
  bool copies_input = false;        ///< W reads a copy
  bool copies_grad_output = false;  ///< likewise, where there is a W
  bool needs_grad_input = true;

  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

[[nodiscard]] constexpr std::int64_t bytes_of(DataType type) {
  return type == DataType::Fp32 ? 4 : 2;
}
[[nodiscard]] constexpr std::int64_t output_columns(const LayerShape& shape) {
  return is_mlp(shape.kind) ? shape.hidden : shape.ffn;
}
/// What tensors of a module are stored as: fp8 is run as bf16.
[[nodiscard]] constexpr DataType stored_type(DataType declared) {
  return declared == DataType::Fp8 ? DataType::Bf16 : declared;
}
/// Columns of what the first product makes.
[[nodiscard]] constexpr std::int64_t first_columns(const LayerShape& shape) {
  return is_mlp(shape.kind) ? 2 * shape.ffn : shape.ffn;
}

/// Beyond it a layer is not run: all sizes and their sums then fit 64 bits with room to spare.
inline constexpr double kMostBytes = 0x1p44;
/// Of the largest tensors of a layer together, in floating point, so that nothing overflows.
[[nodiscard]] constexpr double rough_bytes(const LayerShape& shape) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double rows = number(shape.tokens) * (2 * number(shape.hidden) + 8 * number(shape.ffn));
  const double weights = 3 * number(shape.groups) * number(shape.hidden) * number(shape.ffn);
  return 4 * (rows + weights) + 8 * number(shape.groups);
}

/// Bytes of the rows that a layer reads. Where sizes are part of its input they come behind.
[[nodiscard]] constexpr std::int64_t input_row_bytes(const LayerShape& shape) {
  return shape.tokens * shape.hidden * bytes_of(shape.type);
}
[[nodiscard]] constexpr std::int64_t sizes_offset(const LayerShape& shape) {
  return (input_row_bytes(shape) + 7) / 8 * 8;
}

/// The planned buffers of one layer and microbatch.
struct LayerPlaces {
  std::byte* input = nullptr;
  std::byte* grad_output = nullptr;
  std::byte* output = nullptr;
  std::byte* grad_input = nullptr;
  std::byte* activations = nullptr;
  std::byte* operands = nullptr;
  std::byte* scratch = nullptr;
};

/// On the device, all but the sizes of a split path.
struct LayerSide {
  const std::int64_t* sizes = nullptr;
  std::vector<std::int64_t> sizes_on_host;  ///< of a split path
  const float* probabilities = nullptr;
  const float* scales = nullptr;
  float* grad_probabilities = nullptr;
  float* grad_scales = nullptr;
};

/// Tables of pointers on the device, one a group; null where the layer has no such parameter.
struct LayerParameters {
  void* norm_weight = nullptr;  ///< the parameter itself, as norms have one
  void* norm_bias = nullptr;
  void* const* first = nullptr;
  void* const* first_bias = nullptr;
  void* const* second = nullptr;
  void* const* second_bias = nullptr;
};

/// Where the gradient of one parameter goes in one action.
struct Target {
  bool wanted = false;
  DataType type = DataType::Fp32;
  Write write = Write::Overwrite;
  void* const* table = nullptr;  ///< on the device, one a group
  void* data = nullptr;          ///< the same of the first group
};

struct LayerTargets {
  Target norm_weight;
  Target norm_bias;
  Target first;
  Target first_bias;
  Target second;
  Target second_bias;
};

}  // namespace capo::run

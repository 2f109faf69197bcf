// kernels.cpp learns here how each kind of call is launched, and by which kernels it can have been
// launched: one pair of functions a kind, each in the file of its family.
//
// The file is private to gpu/kernels; others include kernels.h, and its tests test this.

#pragma once

#include "gpu/runtime/check.h"
#include "run/kernels/call.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace capo::gpu {

template <typename C>
using Kernel = void (*)(C);

template <typename C>
struct Launch {
  Kernel<C> kernel = nullptr;  ///< null: there is none for this call
  std::int64_t blocks = 1;
  int threads = 256;
  int shared_bytes = 0;  ///< besides what the kernel declares itself
  /// Blocks that the device holds at once, if blocks take turns over the work and each fills a
  /// multiprocessor; 0 if a kernel has as many blocks as there is work.
  std::int64_t at_once = 0;
  /// No kernel is to do the call as a whole: its parts are launched, one behind the other.
  bool apart = false;
  CudaStatus asked = {};  ///< a failure means that the device did not answer, and nothing launches
};

template <typename C>
using Kernels = std::span<const Kernel<C>>;

// products.cu
[[nodiscard]] Launch<run::GroupedProduct> launch_of(const run::GroupedProduct& call);
[[nodiscard]] Kernels<run::GroupedProduct> kernels_of(std::type_identity<run::GroupedProduct>);

// quantize.cu
[[nodiscard]] Launch<run::QuantizeRows> launch_of(const run::QuantizeRows& call);
[[nodiscard]] Kernels<run::QuantizeRows> kernels_of(std::type_identity<run::QuantizeRows>);
[[nodiscard]] Launch<run::QuantizeWeights> launch_of(const run::QuantizeWeights& call);
[[nodiscard]] Kernels<run::QuantizeWeights> kernels_of(std::type_identity<run::QuantizeWeights>);

// scaled.cu
[[nodiscard]] Launch<run::ScaledProduct> launch_of(const run::ScaledProduct& call);
[[nodiscard]] Kernels<run::ScaledProduct> kernels_of(std::type_identity<run::ScaledProduct>);

// norms.cu
[[nodiscard]] Launch<run::LayerNorm> launch_of(const run::LayerNorm& call);
[[nodiscard]] Kernels<run::LayerNorm> kernels_of(std::type_identity<run::LayerNorm>);
[[nodiscard]] Launch<run::LayerNormGradient> launch_of(const run::LayerNormGradient& call);
[[nodiscard]] Kernels<run::LayerNormGradient> kernels_of(
    std::type_identity<run::LayerNormGradient>);
[[nodiscard]] Launch<run::LayerNormWeightGradient> launch_of(
    const run::LayerNormWeightGradient& call);
[[nodiscard]] Kernels<run::LayerNormWeightGradient> kernels_of(
    std::type_identity<run::LayerNormWeightGradient>);

// activations.cu
[[nodiscard]] Launch<run::SwiGlu> launch_of(const run::SwiGlu& call);
[[nodiscard]] Kernels<run::SwiGlu> kernels_of(std::type_identity<run::SwiGlu>);
[[nodiscard]] Launch<run::SwiGluGradient> launch_of(const run::SwiGluGradient& call);
[[nodiscard]] Kernels<run::SwiGluGradient> kernels_of(std::type_identity<run::SwiGluGradient>);
[[nodiscard]] Launch<run::ProbabilityGradient> launch_of(const run::ProbabilityGradient& call);
[[nodiscard]] Kernels<run::ProbabilityGradient> kernels_of(
    std::type_identity<run::ProbabilityGradient>);

// attention.cu
[[nodiscard]] Launch<run::Attention> launch_of(const run::Attention& call);
[[nodiscard]] Kernels<run::Attention> kernels_of(std::type_identity<run::Attention>);
[[nodiscard]] Launch<run::AttentionQueryGradient> launch_of(
    const run::AttentionQueryGradient& call);
[[nodiscard]] Kernels<run::AttentionQueryGradient> kernels_of(
    std::type_identity<run::AttentionQueryGradient>);
[[nodiscard]] Launch<run::AttentionKeyGradient> launch_of(const run::AttentionKeyGradient& call);
[[nodiscard]] Kernels<run::AttentionKeyGradient> kernels_of(
    std::type_identity<run::AttentionKeyGradient>);

// biases.cu
[[nodiscard]] Launch<run::BiasAdd> launch_of(const run::BiasAdd& call);
[[nodiscard]] Kernels<run::BiasAdd> kernels_of(std::type_identity<run::BiasAdd>);
[[nodiscard]] Launch<run::BiasGradient> launch_of(const run::BiasGradient& call);
[[nodiscard]] Kernels<run::BiasGradient> kernels_of(std::type_identity<run::BiasGradient>);
[[nodiscard]] Launch<run::ScaleGradient> launch_of(const run::ScaleGradient& call);
[[nodiscard]] Kernels<run::ScaleGradient> kernels_of(std::type_identity<run::ScaleGradient>);

// routes.cu
[[nodiscard]] Launch<run::Route> launch_of(const run::Route& call);
[[nodiscard]] Kernels<run::Route> kernels_of(std::type_identity<run::Route>);
[[nodiscard]] Launch<run::SortRoutes> launch_of(const run::SortRoutes& call);
[[nodiscard]] Kernels<run::SortRoutes> kernels_of(std::type_identity<run::SortRoutes>);
[[nodiscard]] Launch<run::Combine> launch_of(const run::Combine& call);
[[nodiscard]] Kernels<run::Combine> kernels_of(std::type_identity<run::Combine>);
[[nodiscard]] Launch<run::RouteGradient> launch_of(const run::RouteGradient& call);
[[nodiscard]] Kernels<run::RouteGradient> kernels_of(std::type_identity<run::RouteGradient>);

// adds.cu
[[nodiscard]] Launch<run::Add> launch_of(const run::Add& call);
[[nodiscard]] Kernels<run::Add> kernels_of(std::type_identity<run::Add>);

// bytes.cu
[[nodiscard]] Launch<run::Gather> launch_of(const run::Gather& call);
[[nodiscard]] Kernels<run::Gather> kernels_of(std::type_identity<run::Gather>);
[[nodiscard]] Launch<run::Copy> launch_of(const run::Copy& call);
[[nodiscard]] Kernels<run::Copy> kernels_of(std::type_identity<run::Copy>);
[[nodiscard]] Launch<run::Fill> launch_of(const run::Fill& call);
[[nodiscard]] Kernels<run::Fill> kernels_of(std::type_identity<run::Fill>);
[[nodiscard]] Launch<run::Differ> launch_of(const run::Differ& call);
[[nodiscard]] Kernels<run::Differ> kernels_of(std::type_identity<run::Differ>);

// draws.cu
[[nodiscard]] Launch<run::DrawInto> launch_of(const run::DrawInto& call);
[[nodiscard]] Kernels<run::DrawInto> kernels_of(std::type_identity<run::DrawInto>);

/// A table of kernels, indexed by DataType, has these many.
inline constexpr std::size_t kTypes = 3;
static_assert(static_cast<int>(DataType::Bf16) == 0 && static_cast<int>(DataType::Fp16) == 1 &&
              static_cast<int>(DataType::Fp32) == 2);

/// The kernel for a type, null for one that is none.
template <typename C>
[[nodiscard]] Kernel<C> of_type(const Kernel<C> (&table)[kTypes], DataType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < kTypes ? table[at] : nullptr;
}
/// The kernel for two types, from a table that is indexed by the one and then the other.
template <typename C>
[[nodiscard]] Kernel<C> of_types(const Kernel<C> (&table)[kTypes * kTypes], DataType first,
                                 DataType second) {
  const auto at = static_cast<std::size_t>(first);
  const auto then = static_cast<std::size_t>(second);
  return at < kTypes && then < kTypes ? table[at * kTypes + then] : nullptr;
}

/// Blocks that go over their work in strides: at least one, so that every call is a node of the
/// graph that captures it, and no more than keep any device busy.
[[nodiscard]] inline std::int64_t blocks_for(std::int64_t pieces) {
  constexpr std::int64_t kMost = 4096;
  return std::clamp<std::int64_t>(pieces, 1, kMost);
}

/// Threads of a block that takes one row at a time, eight columns a thread. The order of a row's
/// sum follows from their number, and so from the columns alone.
[[nodiscard]] inline int threads_for(std::int64_t columns) {
  return static_cast<int>(std::clamp<std::int64_t>((columns + 255) / 256 * 32, 32, 256));
}

}  // namespace capo::gpu

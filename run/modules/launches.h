// RowLaunches makes calls over the rows of a layer, group by group if its sizes are on the host.
//
// It is private to modules/, whose files share it. Tested by
// tests/run/steps/named_schedules_test.cpp.

#pragma once

#include "run/engine/engine.h"
#include "run/modules/layer.h"

#include <cstddef>
#include <span>
#include <vector>

namespace capo::run {

/// Rows of a call, the first of them, and the first of their groups.
struct RowPart {
  Rows rows;
  std::int64_t from = 0;
  std::int64_t group = 0;
};

/// Launches calls that have rows. On a split path each becomes one a group, over its rows alone,
/// with the sizes baked in; a group without rows has one as well, so that its gradients are zeroed.
class RowLaunches {
 public:
  RowLaunches(const LayerShape& shape, const LayerSide& side, const Sink& launch)
      : shape_(shape), side_(side), launch_(launch) {}

  void product(GroupedProduct call, const Epilogue& epilogue = {}) const {
    call.epilogue = epilogue;
    for (const RowPart& part : parts()) launch_(of_part(call, part));
  }
  /// A product's part over some of its rows.
  [[nodiscard]] GroupedProduct of_part(GroupedProduct call, const RowPart& part) const {
    call.type = shape_.type;
    call.rows = part.rows;
    call.x = row(call.x, part.from, call.in);
    call.y = row(call.y, part.from, call.out);
    if (call.w != nullptr) call.w += part.group;
    Epilogue& then = call.epilogue;
    if (then.bias != nullptr) then.bias += part.group;
    if (then.scales != nullptr) then.scales += part.from;
    if (then.gated != nullptr) then.gated = row(then.gated, part.from, call.out / 2);
    if (then.probabilities != nullptr) then.probabilities += part.from;
    if (then.gates != nullptr) then.gates = row(then.gates, part.from, 2 * call.in);
    if (then.dgates != nullptr) then.dgates = row(then.dgates, part.from, 2 * call.in);
    if (then.dprobabilities != nullptr) then.dprobabilities += part.from;
    return call;
  }

  /// The bias that a layer of this shape adds to a product, if it has any.
  [[nodiscard]] Epilogue with_bias(void* const* bias) const {
    return shape_.bias ? Epilogue{.bias = bias, .scales = scales(0)} : Epilogue{};
  }

  void bias_gradient(const Target& target, std::byte* dy, std::int64_t columns) const {
    if (!target.wanted) return;
    for (const auto& [rows, from, group] : parts()) {
      launch_(BiasGradient{.type = shape_.type,
                           .gradient_type = target.type,
                           .write = target.write,
                           .rows = rows,
                           .columns = columns,
                           .dy = row(dy, from, columns),
                           .scales = scales(from),
                           .dbias = target.table + group});
    }
  }

  void scale_gradient(void* const* bias, std::byte* dy, std::int64_t columns) const {
    if (side_.grad_scales == nullptr) return;
    for (const auto& [rows, from, group] : parts()) {
      launch_(ScaleGradient{.type = shape_.type,
                            .rows = rows,
                            .columns = columns,
                            .dy = row(dy, from, columns),
                            .bias = bias + group,
                            .dscales = side_.grad_scales + from});
    }
  }

  /// The rows that one call takes, group by group on a split path.
  [[nodiscard]] std::vector<RowPart> parts() const {
    if (!shape_.grouped) return {{.rows = {.count = shape_.tokens}}};
    if (!shape_.split) return {{.rows = on_device()}};
    std::vector<RowPart> all;
    std::int64_t from = 0;
    for (const std::int64_t size : side_.sizes_on_host) {
      all.push_back({.rows = {.count = size}, .from = from, .group = std::ssize(all)});
      from += size;
    }
    return all;
  }

  /// All rows of all groups, whose order does not matter.
  [[nodiscard]] Rows all_rows() const {
    if (!shape_.grouped) return {.count = shape_.tokens};
    if (!shape_.split) return on_device();
    std::int64_t sum = 0;
    for (const std::int64_t size : side_.sizes_on_host) sum += size;
    return {.count = sum};
  }

 private:
  [[nodiscard]] Rows on_device() const {
    return {.count = shape_.tokens, .groups = shape_.groups, .sizes = side_.sizes};
  }
  [[nodiscard]] std::byte* row(void* of, std::int64_t at, std::int64_t columns) const {
    return static_cast<std::byte*>(of) + at * columns * bytes_of(shape_.type);
  }
  [[nodiscard]] const std::byte* row(const void* of, std::int64_t at, std::int64_t columns) const {
    return static_cast<const std::byte*>(of) + at * columns * bytes_of(shape_.type);
  }
  [[nodiscard]] const float* scales(std::int64_t from) const {
    return shape_.scale_bias ? side_.scales + from : nullptr;
  }

  const LayerShape& shape_;
  const LayerSide& side_;
  const Sink& launch_;
};

/// Gives out the sections of the kept memory, one after the other, each aligned. From nullptr all
/// sections are null, and what they take is known all the same.
class Sections {
 public:
  explicit Sections(std::byte* begin) : begin_(begin) {}

  std::byte* take(std::int64_t bytes) {
    std::byte* at = begin_ == nullptr ? nullptr : begin_ + taken_;
    taken_ += aligned(bytes);
    return at;
  }
  /// A section of `count` numbers.
  template <typename T>
  T* numbers(std::int64_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of numbers
    return reinterpret_cast<T*>(take(count * std::int64_t{sizeof(T)}));
  }
  [[nodiscard]] std::int64_t taken() const { return taken_; }

 private:
  std::byte* begin_;
  std::int64_t taken_ = 0;
};

/// A whole matrix of the layer's tokens.
[[nodiscard]] inline std::int64_t matrix_bytes(const LayerShape& shape, std::int64_t columns) {
  return shape.tokens * columns * bytes_of(shape.type);
}

inline void copy(const LayerShape& shape, std::byte* to, const std::byte* from,
                 std::int64_t columns, const Sink& launch) {
  launch(Copy{.bytes = matrix_bytes(shape, columns), .from = from, .to = to});
}

/// normed = norm(x)
void launch_norm(const LayerShape& shape, const LayerParameters& parameters, const std::byte* x,
                 std::byte* normed, const Sink& launch);
/// `gradient` holds the gradient of the norm's output. The gradients of the parameters come first,
/// since they need it as it is; then the gradient of the input takes its place.
void launch_norm_backward(const LayerShape& shape, const LayerParameters& parameters,
                          const LayerTargets& targets, const std::byte* x, std::byte* gradient,
                          const Sink& launch);

/// The gradient that W reads: the incoming one, or a copy that was put where kernels read it.
[[nodiscard]] std::byte* incoming_for_weights(const LayerShape& shape, const LayerPlaces& places,
                                              const Sink& launch);

/// A weight pass with the gradient that it reads.
struct WeightOperands {
  LayerPlaces places;
  LayerSide side;
  LayerTargets targets;
  std::byte* incoming = nullptr;
};

/// Launches one of a layer's products of weight gradients: passes that are added to one tensor, one
/// behind the other, are one call. `call_of` makes the call of one pass.
void launch_weight_products(const LayerShape& shape, std::span<const WeightOperands> passes,
                            Target LayerTargets::*target,
                            const std::function<GroupedProduct(const WeightOperands&)>& call_of,
                            const Sink& launch);
/// It also launches the gradient of the product's bias, behind it and for every pass.
inline void launch_weights_and_bias(
    const LayerShape& shape, std::span<const WeightOperands> passes, Target LayerTargets::*target,
    Target LayerTargets::*bias, const std::function<GroupedProduct(const WeightOperands&)>& call_of,
    const Sink& launch) {
  launch_weight_products(shape, passes, target, call_of, launch);
  for (const WeightOperands& pass : passes) {
    const GroupedProduct call = call_of(pass);
    RowLaunches(shape, pass.side, launch)
        .bias_gradient(pass.targets.*bias, static_cast<std::byte*>(call.y), call.out);
  }
}

/// The launches of a family of kinds, as module.h explains them. One file defines each.
struct Launches {
  std::int64_t (*kept_bytes)(const LayerShape& shape);
  void (*forward)(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                  const LayerParameters& parameters, const Sink& launch);
  void (*backward)(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                   const LayerParameters& parameters, const LayerTargets& targets,
                   const Sink& launch);
  void (*weight_gradients)(const LayerShape& shape, std::span<const WeightOperands> passes,
                           const Sink& launch);
  /// Null for families without a router.
  const std::int64_t* (*chosen_groups)(const LayerShape& shape,
                                       const LayerPlaces& places) = nullptr;
  /// Null for families without halves.
  BetweenHalves (*between_halves)(const LayerShape& shape, const LayerPlaces& places) = nullptr;
};

extern const Launches kOneProduct;      // one_product.cpp
extern const Launches kRouted;          // routed.cpp
extern const Launches kMlp;             // mlp.cpp
extern const Launches kAttention;       // attention.cpp
extern const Launches kTransformer;     // transformer.cpp
extern const Launches kCodedProduct;    // coded_product.cpp
extern const Launches kCodedRouted;     // coded_routed.cpp
extern const Launches kCodedMlp;        // coded_mlp.cpp
extern const Launches kCodedAttention;  // coded_attention.cpp

}  // namespace capo::run

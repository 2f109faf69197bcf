// RowLaunches makes calls over the rows of a layer, group by group if its sizes are on the host.
//
// It is private to modules/; one_product.cpp and mlp.cpp share it. Tested by
// tests/run/steps/named_schedules_test.cpp.

#pragma once

#include "run/modules/layer.h"

#include <cstddef>

namespace capo::run {

/// Launches calls that have rows. On a split path each becomes one a group, over its rows alone,
/// with the sizes baked in; a group without rows has one as well, so that its gradients are zeroed.
class RowLaunches {
 public:
  RowLaunches(const LayerShape& shape, const LayerSide& side, const Sink& launch)
      : shape_(shape), side_(side), launch_(launch) {}

  void product(GroupedProduct call) const {
    call.type = shape_.type;
    for_each_part([&](const Rows& rows, std::int64_t from, std::int64_t group) {
      GroupedProduct part = call;
      part.rows = rows;
      part.x = row(call.x, from, call.in);
      part.y = row(call.y, from, call.out);
      part.w += group;
      launch_(part);
    });
  }

  void bias_add(void* const* bias, std::byte* y, std::int64_t columns) const {
    for_each_part([&](const Rows& rows, std::int64_t from, std::int64_t group) {
      launch_(BiasAdd{.type = shape_.type,
                      .rows = rows,
                      .columns = columns,
                      .bias = bias + group,
                      .scales = scales(from),
                      .y = row(y, from, columns)});
    });
  }

  void bias_gradient(const Target& target, std::byte* dy, std::int64_t columns) const {
    if (!target.wanted) return;
    for_each_part([&](const Rows& rows, std::int64_t from, std::int64_t group) {
      launch_(BiasGradient{.type = shape_.type,
                           .gradient_type = target.type,
                           .write = target.write,
                           .rows = rows,
                           .columns = columns,
                           .dy = row(dy, from, columns),
                           .scales = scales(from),
                           .dbias = target.table + group});
    });
  }

  void scale_gradient(void* const* bias, std::byte* dy, std::int64_t columns) const {
    if (side_.grad_scales == nullptr) return;
    for_each_part([&](const Rows& rows, std::int64_t from, std::int64_t group) {
      launch_(ScaleGradient{.type = shape_.type,
                            .rows = rows,
                            .columns = columns,
                            .dy = row(dy, from, columns),
                            .bias = bias + group,
                            .dscales = side_.grad_scales + from});
    });
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
  // Calls visit(rows, the first of them, the first group).
  template <typename Visit>
  void for_each_part(Visit visit) const {
    if (!shape_.grouped) return visit(Rows{.count = shape_.tokens}, 0, 0);
    if (!shape_.split) return visit(on_device(), 0, 0);
    std::int64_t from = 0;
    for (std::size_t group = 0; group < side_.sizes_on_host.size(); ++group) {
      const std::int64_t size = side_.sizes_on_host[group];
      visit(Rows{.count = size}, from, static_cast<std::int64_t>(group));
      from += size;
    }
  }

  [[nodiscard]] Rows on_device() const {
    return {.count = shape_.tokens, .groups = shape_.groups, .sizes = side_.sizes};
  }
  [[nodiscard]] std::byte* row(void* of, std::int64_t at, std::int64_t columns) const {
    return static_cast<std::byte*>(of) + at * columns * bytes_of(shape_.type);
  }
  [[nodiscard]] const float* scales(std::int64_t from) const {
    return shape_.scale_bias ? side_.scales + from : nullptr;
  }

  const LayerShape& shape_;
  const LayerSide& side_;
  const Sink& launch_;
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

/// The launches of a family of kinds, as module.h explains them. One file defines each.
struct Launches {
  std::int64_t (*kept_bytes)(const LayerShape& shape);
  void (*forward)(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                  const LayerParameters& parameters, const Sink& launch);
  void (*backward)(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                   const LayerParameters& parameters, const LayerTargets& targets,
                   const Sink& launch);
  void (*weight_gradient)(const LayerShape& shape, const LayerPlaces& places, const LayerSide& side,
                          const LayerTargets& targets, std::byte* incoming, const Sink& launch);
};

extern const Launches kOneProduct;  // one_product.cpp
extern const Launches kMlp;         // mlp.cpp

}  // namespace capo::run

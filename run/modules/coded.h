// Layers whose products read codes: what they keep, and what they launch where others launch a
// product.
//
//   forward            x -> codes along columns, which the product reads, and along rows, which are
//                      kept for W
//   input's gradient   dy -> codes along columns, which the product reads, and along rows, for W
//   weight gradients   both codes along rows, of a group's own rows
//
// So nobody keeps x or dy as they were. Weights were quantized before the step, both ways, or are
// so by each F, for itself and its B. A product's bias is a call of its own behind it. SwiGLU and
// its gradient are made by the call that quantizes them, so that no tensor holds them. The layers
// are those of one product, MLPs, attention between its two products, and experts behind a router.
//
// On a split path every group's rows are a tensor of their own, in a part of the same memory that
// begins where its rows do, and its depths at a multiple of kGroupDepth.
//
// It is private to modules/, whose files share it. Tested by
// tests/run/steps/recipe_runs_test.cpp.

#pragma once

#include "run/kernels/coded_product.h"
#include "run/modules/launches.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace capo::run {

/// Codes of (tokens, columns) along the columns, and along the rows.
[[nodiscard]] Codes take_along_columns(Sections& sections, const LayerShape& shape,
                                       std::int64_t columns);
[[nodiscard]] Codes take_along_rows(Sections& sections, const LayerShape& shape,
                                    std::int64_t columns);

/// The codes of the incoming gradient along its rows, which B leaves to W: coded_gradient_bytes()
/// in the memory of operands.
[[nodiscard]] Codes coded_gradient(const LayerShape& shape, std::byte* at);

/// Rows that are quantized: those of a tensor, or such as are made of them.
struct CodedRows {
  const std::byte* x = nullptr;
  RowsMade made = {};
};

/// Those that come in: as they lie, or each of a token that a router named.
[[nodiscard]] CodedRows incoming_rows(const LayerSide& side, const std::byte* x);

/// The codes of a layer's weights; the second of a layer of one product are null.
struct CodedWeights {
  CodedWeight first;
  CodedWeight second;
};

/// Quantizes the weights into the microbatch's own memory; does nothing where it has none.
void quantize_weights(const LayerShape& shape, const LayerPlaces& places,
                      const LayerParameters& parameters, const Sink& launch);

/// The codes that a microbatch's products read: its own, or those made before the step.
[[nodiscard]] CodedWeights weights_of(const LayerShape& shape, const LayerPlaces& places,
                                      const LayerParameters& parameters);

/// The sizes of a product's matrices.
struct CodedSize {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// The two products of a layer that has two.
[[nodiscard]] inline CodedSize first_size(const LayerShape& shape) {
  return {.in = shape.hidden, .out = first_columns(shape)};
}
[[nodiscard]] inline CodedSize second_size(const LayerShape& shape) {
  return {.in = second_columns(shape), .out = shape.hidden};
}

/// Codes along rows that such a layer leaves to W, beside those of the incoming gradient.
struct LeftToW {
  Codes x;
  Codes active;    ///< what the second product read
  Codes gradient;  ///< of what the first one made
};

class CodedLaunches {
 public:
  CodedLaunches(const LayerShape& shape, const LayerSide& side, const Sink& launch)
      : shape_(shape), rows_(shape, side, launch), launch_(launch) {}

  /// Codes that are null are not made.
  void quantize(const CodedRows& of, std::int64_t columns, const Codes& along_columns,
                const Codes& along_rows) const;
  void forward(const CodedSize& size, const Codes& x, const CodedWeight& w, std::byte* y,
               const Epilogue& epilogue) const;
  void input_gradient(const CodedSize& size, const Codes& dy, const CodedWeight& w,
                      std::byte* dx) const;
  void weight_gradient(const CodedSize& size, const Codes& dy, const Codes& x,
                       const Target& target) const;
  /// Those of a layer of two products; `dy` is the incoming gradient.
  void weight_gradients(const LeftToW& left, const Codes& dy, const LayerTargets& targets) const;
  [[nodiscard]] const RowLaunches& rows() const { return rows_; }

 private:
  [[nodiscard]] ScaledProduct product(const CodedSize& size, GroupedProduct::Kind kind,
                                      const RowPart& part) const;

  const LayerShape& shape_;
  RowLaunches rows_;
  const Sink& launch_;
};

/// The weight gradients of a layer of two products, of which `left_in` knows the kept memory.
void launch_weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                             LeftToW (*left_in)(const LayerShape& shape, std::byte* activations),
                             const Sink& launch);

}  // namespace capo::run

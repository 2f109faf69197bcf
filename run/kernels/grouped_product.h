// The call that takes the time: y = x w^T, dx = dy w or dw = dy^T x, each group of rows with its
// own matrix. Its epilogue is what would follow in calls of its own. Rows in groups and Write are
// words of other calls too: call.h says how sums are added and rounded, and what holds for rows
// beyond the groups.
//
// Tested on the host by products_test.cpp.

#pragma once

#include "core/model/model.h"

#include <cstdint>

namespace capo::run {

enum class Write : std::uint8_t { Overwrite, Add };

/// The rows of a tensor, in groups one after another.
struct Rows {
  std::int64_t count = 0;  ///< rows that there is memory for
  std::int64_t groups = 1;
  const std::int64_t* sizes = nullptr;  ///< on the device, one a group, none negative, their sum at
                                        ///< most `count`; null: all rows are one group
};

/// A WeightGradient sums over the rows of so many microbatches at most.
inline constexpr int kMostBatches = 16;

/// A product goes on with its result, a Forward as BiasAdd and then SwiGlu would and an
/// InputGradient as SwiGluGradient would, and leaves the same to the bit. It is one call so that an
/// engine can do it while it still holds the result: each spares a pass over memory. Those that
/// cannot take it apart (for_each_part of call.h).
///
/// An InputGradient that goes on rounds its result as if it wrote it. Nobody may read its x
/// afterwards, where the result may stand, or anything else.
struct Epilogue {
  void* const* bias = nullptr;           ///< of BiasAdd; null: none is added
  const float* scales = nullptr;         ///< of BiasAdd
  void* gated = nullptr;                 ///< y of SwiGlu, (rows, out / 2); null: not wanted
  const float* probabilities = nullptr;  ///< of SwiGlu or SwiGluGradient
  const void* gates = nullptr;           ///< x of SwiGluGradient, (rows, 2 * in)
  void* dgates = nullptr;                ///< its dx, and may be `gates`; null: not wanted
  float* dprobabilities = nullptr;       ///< likewise
  bool leaves_sums = false;              ///< x then holds what ProbabilityGradient adds up

  [[nodiscard]] bool is_empty() const {
    return bias == nullptr && gated == nullptr && dgates == nullptr;
  }
};

/// Columns of SwiGLU whose terms in the gradient of a probability are added up by themselves.
inline constexpr std::int64_t kSummedColumns = 256;

/// x (rows, in), y (rows, out), w of each group (out, in), all contiguous. A WeightGradient goes on
/// with the rows of further microbatches, in their order, before it writes or adds the sum.
struct GroupedProduct {
  /// Rows in the same groups, with sizes of their own.
  struct Batch {
    void* x = nullptr;
    void* y = nullptr;
    std::int64_t count = 0;               ///< rows that there is memory for
    const std::int64_t* sizes = nullptr;  ///< of this batch's groups; null if those of Rows are
  };

  enum class Kind : std::uint8_t {
    Forward,         ///< writes y
    InputGradient,   ///< x is its gradient, and written; y is the incoming one
    WeightGradient,  ///< w is its gradient, and written; y is the incoming one
  };
  Kind kind = Kind::Forward;
  DataType type = DataType::Bf16;           ///< of x and y, and of w unless w is a gradient
  DataType gradient_type = DataType::Fp32;  ///< of w in a WeightGradient
  Write write = Write::Overwrite;           ///< of a WeightGradient; the others overwrite
  Rows rows;
  std::int64_t in = 0;
  std::int64_t out = 0;
  void* x = nullptr;
  void* y = nullptr;
  void* const* w = nullptr;  ///< on the device: a pointer for each group
  Epilogue epilogue = {};    ///< not of a WeightGradient
  int further = 0;           ///< batches behind that of x, y and rows
  Batch batches[kMostBatches - 1] = {};
};

}  // namespace capo::run

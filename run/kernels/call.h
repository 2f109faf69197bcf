// The calls that modules make: one plain value for each kernel launch, the same for every engine.
//
//   GroupedProduct   y = x w^T, dx = dy w, dw = dy^T x, each group of rows with its own matrix;
//                    its epilogue is what would follow in calls of its own
//   LayerNorm...     forward, gradient of the input, gradients of the two parameters
//   SwiGlu...        silu(gate) * linear * probability, and its gradients
//   Probability...   the end of such a gradient, where a product has left sums
//   Attention...     causal attention of grouped queries, and the gradients of its operands
//   Bias...          added to a product, and its gradients
//   Route...         the groups that each row chooses, and the gradient of what it chose by
//   Gather, Combine  rows in another order: tokens to their experts and back
//   Quantize...      rows and weights as codes of eight bits with a scale for each block
//   ScaledProduct    a GroupedProduct of operands that are codes
//   Add, Copy, Fill, Differ, DrawInto
//
// A call holds addresses of the engine's memory and never the numbers there: sizes of groups,
// tables of pointers, indices and probabilities are read on the device, and may differ at every
// replay. Numbers in a call are baked into a graph that captures it.
//
// Rounding. Every kernel computes in fp32 and rounds once, to nearest even, when it writes. A
// product adds in ascending order of the index it sums over, microbatch by microbatch. With
// Write::Add the sum is added in fp32 to what was there before it is rounded. No result depends on
// threads or streams.
//
// Rows beyond the sum of the sizes are neither read nor written, by any call that has Rows. A group
// of no rows contributes nothing: overwritten gradients are zero, added ones stay as they were.
//
// Tested on the host by kernels_test.cpp, products_test.cpp, norms_test.cpp, activations_test.cpp,
// biases_test.cpp, attention_test.cpp and routes_test.cpp.

#pragma once

#include "core/model/model.h"
#include "run/kernels/draw.h"

#include <cstdint>
#include <variant>

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
/// cannot take it apart (for_each_part).
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

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, by rows; variance over all columns.
struct LayerNorm {
  DataType type = DataType::Bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float epsilon = 0;
  const void* x = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
};

/// The gradient of LayerNorm's x. Mean and variance are computed again from x. dx may be dy.
struct LayerNormGradient {
  DataType type = DataType::Bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float epsilon = 0;
  const void* x = nullptr;
  const void* weight = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

/// The gradients of LayerNorm's weight and bias: sums over rows, in ascending order.
struct LayerNormWeightGradient {
  DataType type = DataType::Bf16;
  DataType gradient_type = DataType::Bf16;
  Write write = Write::Overwrite;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float epsilon = 0;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dweight = nullptr;
  void* dbias = nullptr;
};

/// y = silu(gate) * linear * probability, where a row of x is `columns` of gate and then as many of
/// linear; silu(a) = a / (1 + exp(-a)).
struct SwiGlu {
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;  ///< of y
  const void* x = nullptr;
  const float* probabilities = nullptr;  ///< one a row; null: 1
  void* y = nullptr;
};

/// dx may be x, and is null if only the probabilities' gradients are wanted. Their terms are added
/// by kSummedColumns columns, and these sums in ascending order.
struct SwiGluGradient {
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;
  const void* x = nullptr;
  const float* probabilities = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  float* dprobabilities =
      nullptr;  ///< one a row: sum of dy * silu(gate) * linear; null: not wanted
};

/// dprobabilities of a row = the sum, in ascending order, of the floats that an epilogue has left
/// in x (rows, columns), one at every kSummedColumns-th column. Columns are even.
struct ProbabilityGradient {
  DataType type = DataType::Bf16;  ///< of x, 16 bits
  Rows rows;
  std::int64_t columns = 0;
  const void* x = nullptr;
  float* dprobabilities = nullptr;
};

/// Rows are the tokens of sequences, one sequence after another. A row of qkv has the queries of
/// all heads, then the keys of all kv heads, then their values: (heads + 2 * kv_heads) * head_dim
/// columns. As many heads in a row share a kv head: with 4 heads and 2 kv heads, 0 and 1 read kv
/// head 0. A row of y has heads * head_dim columns.
struct AttentionShape {
  std::int64_t rows = 0;
  std::int64_t sequence = 0;  ///< tokens of each but the last, which may have fewer; 0: one has all
  std::int64_t heads = 1;     ///< a multiple of kv_heads
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
};

/// y of a token and head = softmax(q k^T / sqrt(head_dim)) v over the tokens of its sequence up to
/// itself, in ascending order. Gradients compute the probabilities again from log_sums, so that
/// nothing of the size of rows by rows is kept.
struct Attention {
  DataType type = DataType::Bf16;
  AttentionShape shape;
  const void* qkv = nullptr;
  void* y = nullptr;
  float* log_sums = nullptr;  ///< (rows, heads): the logarithm of the sum of exp(score)
};

/// The gradient of the queries: a row's own sum, over the tokens that it read, in ascending order.
/// It writes the queries' columns of dqkv alone. `inner` is for AttentionKeyGradient.
struct AttentionQueryGradient {
  DataType type = DataType::Bf16;
  AttentionShape shape;
  const void* qkv = nullptr;
  const void* y = nullptr;
  const float* log_sums = nullptr;
  const void* dy = nullptr;
  void* dqkv = nullptr;    ///< laid out as qkv, and not qkv itself, which is read again
  float* inner = nullptr;  ///< (rows, heads): the inner product of dy and y, written
};

/// The gradients of the keys and values: for each token the sum over the heads that read it, and
/// for each of them over the tokens from itself on, both in ascending order. It writes the columns
/// of dqkv that AttentionQueryGradient leaves.
struct AttentionKeyGradient {
  DataType type = DataType::Bf16;
  AttentionShape shape;
  const void* qkv = nullptr;
  const float* log_sums = nullptr;
  const float* inner = nullptr;
  const void* dy = nullptr;
  void* dqkv = nullptr;
};

/// y += scale * bias of the row's group, rounded once more.
struct BiasAdd {
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;
  void* const* bias = nullptr;    ///< on the device: a pointer for each group, to (columns)
  const float* scales = nullptr;  ///< one a row; null: 1
  void* y = nullptr;
};

/// dbias of a group = sum over its rows, ascending, of scale * dy.
struct BiasGradient {
  DataType type = DataType::Bf16;
  DataType gradient_type = DataType::Bf16;
  Write write = Write::Overwrite;
  Rows rows;
  std::int64_t columns = 0;
  const void* dy = nullptr;
  const float* scales = nullptr;
  void* const* dbias = nullptr;  ///< on the device
};

/// dscale of a row = sum over columns of dy * bias.
struct ScaleGradient {
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;
  const void* dy = nullptr;
  void* const* bias = nullptr;  ///< on the device
  float* dscales = nullptr;
};

/// Rows that choose groups, as tokens do experts: each `top_k` of them. A choice is a row and one
/// of its groups; those of row r are choices r * top_k and on.
struct RouteShape {
  std::int64_t rows = 0;
  std::int64_t groups = 1;
  std::int64_t top_k = 1;  ///< at most `groups`

  [[nodiscard]] constexpr std::int64_t choices() const { return rows * top_k; }
};

/// The groups of the largest logits of each row, the largest first; of equal ones the lower comes
/// first, on every engine, since logits are compared as they are stored. A probability is the
/// group's share of a softmax over all groups, chosen or not. Logits that are no numbers lead to
/// some groups, each chosen once.
struct Route {
  DataType type = DataType::Bf16;
  RouteShape shape;
  const void* logits = nullptr;    ///< (rows, groups)
  std::int64_t* groups = nullptr;  ///< by choice
  float* probabilities = nullptr;  ///< by choice
};

/// Sorts choices by group, and those of a group by row: the sorted rows of a GroupedProduct, whose
/// sizes it writes. All of it is decided on the device, at every replay anew.
struct SortRoutes {
  RouteShape shape;
  const std::int64_t* groups = nullptr;  ///< by choice, like the next one
  const float* probabilities = nullptr;
  std::int64_t* sizes = nullptr;          ///< by group
  std::int64_t* places = nullptr;         ///< by choice: its sorted row
  std::int64_t* sources = nullptr;        ///< by sorted row: the row that chose
  float* sorted_probabilities = nullptr;  ///< by sorted row
};

/// y of a row = the sum over its choices, in their order, of the sorted rows; with Write::Add it is
/// added to what is there.
struct Combine {
  DataType type = DataType::Bf16;
  Write write = Write::Overwrite;
  RouteShape shape;
  std::int64_t columns = 0;
  const std::int64_t* places = nullptr;
  const void* x = nullptr;  ///< (choices, columns), sorted
  void* y = nullptr;        ///< (rows, columns)
};

/// The gradient of the logits: p * (g - sum of p * g over the choices), where g is the gradient of
/// the probability p of a choice, and 0 for groups that were not chosen.
struct RouteGradient {
  DataType type = DataType::Bf16;
  RouteShape shape;
  const void* logits = nullptr;
  const std::int64_t* groups = nullptr;
  const std::int64_t* places = nullptr;
  const float* dprobabilities = nullptr;  ///< by sorted row
  void* dlogits = nullptr;                ///< may be `logits`
};

/// How blocks get their scales, as codes.h says it.
enum class Scaling : std::uint8_t {
  Block,  ///< 128 codes along the depth; of weights 128 x 128
  Mxfp8,  ///< 32 codes along the depth
};
/// Codes of a block along the depth.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t block_depth(Scaling scaling) {
  return scaling == Scaling::Block ? 128 : 32;
}
/// Vectors that share a scale in a matrix of weights.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t block_width(Scaling scaling) {
  return scaling == Scaling::Block ? 128 : 1;
}
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t scale_bytes(Scaling scaling) {
  return scaling == Scaling::Block ? 4 : 1;
}
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t whole_blocks(std::int64_t count,
                                                                   std::int64_t of) {
  return (count + of - 1) / of;
}

/// Vectors of E4m3 codes along a depth, that a product sums over: `codes` of a vector lie side by
/// side, and vectors behind one another. Scales are floats or E8m0, those of one block of the depth
/// side by side.
struct Codes {
  std::uint8_t* codes = nullptr;
  void* scales = nullptr;
};

/// Bytes of the scales of `count` vectors of a depth, of which `width` share one.
[[nodiscard]] constexpr std::int64_t bytes_of_scales(Scaling scaling, std::int64_t count,
                                                     std::int64_t depth, std::int64_t width = 1) {
  return whole_blocks(depth, block_depth(scaling)) * whole_blocks(count, width) *
         scale_bytes(scaling);
}

/// Depths that are rows begin a group at a multiple of so many: no block is of two groups, and
/// codes of a group lie well. Codes between groups are zero.
inline constexpr std::int64_t kGroupDepth = 128;
/// Depth of all groups of rows together, whatever their sizes are.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t depth_of(const Rows& rows) {
  const std::int64_t most = rows.sizes == nullptr ? whole_blocks(rows.count, kGroupDepth)
                                                  : rows.count / kGroupDepth + rows.groups;
  return most * kGroupDepth;
}

/// Rows that are made as they are quantized, from x as SwiGlu, SwiGluGradient or Gather would, each
/// number rounded to the type before anything else. It spares their tensor, and a pass over memory.
struct RowsMade {
  enum class By : std::uint8_t {
    Nobody,          ///< x (rows, columns) is what is quantized
    SwiGlu,          ///< y (rows, columns) of x (rows, 2 * columns)
    SwiGluGradient,  ///< dx (rows, columns) of x (rows, columns) and dy (rows, columns / 2)
    Gather,          ///< row i is row sources[i] of x (from_rows, columns)
  };
  By by = By::Nobody;
  const float* probabilities = nullptr;   ///< one a row; null: 1
  const void* dy = nullptr;               ///< of a SwiGluGradient
  const std::int64_t* sources = nullptr;  ///< of a Gather, on the device: one a row
  std::int64_t from_rows = 0;             ///< likewise: that a source may name
};

/// Rows (rows, columns) as codes, for products that sum over their columns and for those that sum
/// over the rows.
struct QuantizeRows {
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;
  const void* x = nullptr;
  RowsMade made = {};
  Codes along_columns;  ///< codes (rows, columns); without codes not wanted, like the next one
  Codes along_rows;     ///< codes (columns, depth_of(rows))
};

/// Weights (out, in) of each group as codes, for products that sum over `in` and over `out`. Groups
/// follow one another, and so do those of scales, each (blocks of depth, blocks of vectors).
struct QuantizeWeights {
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;
  std::int64_t groups = 1;
  std::int64_t in = 0;
  std::int64_t out = 0;
  void* const* w = nullptr;  ///< on the device
  Codes along_in;            ///< codes (groups, out, in)
  Codes along_out;           ///< codes (groups, in, out)
};

/// A GroupedProduct whose operands are codes, each times its scale. Sums are in fp32; those of one
/// block of depth may be added before they are added to the others.
struct ScaledProduct {
  GroupedProduct::Kind kind = GroupedProduct::Kind::Forward;
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;  ///< of what is written
  Write write = Write::Overwrite;  ///< of a WeightGradient; the others overwrite
  Rows rows;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Codes x;                 ///< of a Forward along columns, of a WeightGradient along rows
  Codes y;                 ///< of an InputGradient along columns, of a WeightGradient along rows
  Codes w;                 ///< of a Forward along `in`, of an InputGradient along `out`
  void* result = nullptr;  ///< y of a Forward, x of an InputGradient
  void* const* gradients = nullptr;  ///< of a WeightGradient: on the device, one a group
};

/// Row i of `to` is row index[i] of `from`.
struct Gather {
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  const std::int64_t* index = nullptr;  ///< on the device
  std::int64_t from_rows = 0;           ///< that an index may name; 0: as many as `rows`
  const void* from = nullptr;
  void* to = nullptr;
};

/// to[i] += from[i], each as its own type; rounded to the type of `to`.
struct Add {
  DataType to_type = DataType::Fp32;
  DataType from_type = DataType::Fp32;
  std::int64_t count = 0;
  const void* from = nullptr;
  void* to = nullptr;
};

struct Copy {
  std::int64_t bytes = 0;
  const void* from = nullptr;
  void* to = nullptr;
};

struct Fill {
  std::int64_t bytes = 0;
  std::uint8_t value = 0;
  void* to = nullptr;
};

/// Sets *differs to 1 if any byte of the rows differs, and otherwise leaves it.
struct Differ {
  Rows rows;
  std::int64_t row_bytes = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  std::int32_t* differs = nullptr;  ///< on the device
};

/// to[i] is the drawing's number first + i, rounded once; NaN if that is beyond what is drawn.
struct DrawInto {
  DataType type = DataType::Bf16;
  std::int64_t count = 0;
  std::int64_t first = 0;
  Drawing numbers;
  void* to = nullptr;
};

using Call =
    std::variant<GroupedProduct, LayerNorm, LayerNormGradient, LayerNormWeightGradient, SwiGlu,
                 SwiGluGradient, ProbabilityGradient, Attention, AttentionQueryGradient,
                 AttentionKeyGradient, BiasAdd, BiasGradient, ScaleGradient, Route, SortRoutes,
                 Combine, RouteGradient, QuantizeRows, QuantizeWeights, ScaledProduct, Gather, Add,
                 Copy, Fill, Differ, DrawInto>;

/// Visits the calls that an epilogue of a product stands for.
template <typename Visit>
void for_each_of_epilogue(const GroupedProduct& call, Visit visit) {
  const Epilogue& epilogue = call.epilogue;
  if (epilogue.bias != nullptr) {
    visit(BiasAdd{.type = call.type,
                  .rows = call.rows,
                  .columns = call.out,
                  .bias = epilogue.bias,
                  .scales = epilogue.scales,
                  .y = call.y});
  }
  if (epilogue.gated != nullptr) {
    visit(SwiGlu{.type = call.type,
                 .rows = call.rows,
                 .columns = call.out / 2,
                 .x = call.y,
                 .probabilities = epilogue.probabilities,
                 .y = epilogue.gated});
  }
  if (epilogue.dgates != nullptr) {
    visit(SwiGluGradient{.type = call.type,
                         .rows = call.rows,
                         .columns = call.in,
                         .x = epilogue.gates,
                         .probabilities = epilogue.probabilities,
                         .dy = call.x,
                         .dx = epilogue.dgates,
                         .dprobabilities = epilogue.dprobabilities});
  }
}

/// Visits a product by itself, and then the calls that its epilogue stands for, which leave no
/// sums.
template <typename Visit>
void for_each_part(GroupedProduct call, Visit visit) {
  const GroupedProduct whole = call;
  call.epilogue = {};
  visit(call);
  for_each_of_epilogue(whole, visit);
}

/// Visits the call that writes to `rows` what a QuantizeRows would make itself, and then the one
/// that quantizes what lies there. Of a Gather every row that has memory has a source.
template <typename Visit>
void for_each_part(QuantizeRows call, void* rows, Visit visit) {
  const RowsMade made = call.made;
  if (made.by == RowsMade::By::SwiGlu) {
    visit(SwiGlu{.type = call.type,
                 .rows = call.rows,
                 .columns = call.columns,
                 .x = call.x,
                 .probabilities = made.probabilities,
                 .y = rows});
  }
  if (made.by == RowsMade::By::SwiGluGradient) {
    visit(SwiGluGradient{.type = call.type,
                         .rows = call.rows,
                         .columns = call.columns / 2,
                         .x = call.x,
                         .probabilities = made.probabilities,
                         .dy = made.dy,
                         .dx = rows});
  }
  if (made.by == RowsMade::By::Gather) {
    visit(Gather{.rows = call.rows.count,
                 .row_bytes = call.columns * (call.type == DataType::Fp32 ? 4 : 2),
                 .index = made.sources,
                 .from_rows = made.from_rows,
                 .from = call.x,
                 .to = rows});
  }
  if (made.by != RowsMade::By::Nobody) call.x = rows;
  call.made = {};
  visit(call);
}

}  // namespace capo::run

// The calls that modules make: one plain value for each kernel launch, the same for every engine.
//
//   GroupedProduct   each group of rows with its own matrix (grouped_product.h)
//   LayerNorm...     forward, gradient of the input, gradients of the two parameters
//   SwiGlu...        silu(gate) * linear * probability, and its gradients
//   Probability...   the end of such a gradient, where a product has left sums
//   Attention...     causal attention of grouped queries, and the gradients of its operands
//   Bias...          added to a product, and its gradients
//   Route...         the groups that each row chooses, and the gradient of what it chose by
//   Gather, Combine  rows in another order: tokens to their experts and back
//   Quantize...      rows and weights as codes of eight bits (coded_product.h)
//   ScaledProduct    a GroupedProduct of operands that are codes (likewise)
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
#include "run/kernels/coded_product.h"
#include "run/kernels/draw.h"
#include "run/kernels/grouped_product.h"

#include <cstdint>
#include <variant>

namespace capo::run {

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

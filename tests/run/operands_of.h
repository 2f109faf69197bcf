// A call of a captured graph taken apart: every address in it with the bytes that it may touch, and
// the numbers that are baked in.
//
//   Copy{.bytes = 256, .from = a, .to = b}   ->   read a 256, write b 256
//
// Bytes are the most there can be: all the rows that there is memory for. Tables of pointers are
// read from the engine and followed, as kernels follow them; what stands in them belongs to the
// call as well, since nobody changes them.

#pragma once

#include "run/engine/engine.h"
#include "run/modules/layer.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {

enum class Touch : std::uint8_t { Read, Write };

struct Operand {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  Touch touch = Touch::Read;

  friend bool operator==(const Operand&, const Operand&) = default;
};

/// All that two calls have to agree in to be the same.
struct Operands {
  std::size_t call = 0;  ///< index in Call
  std::vector<Operand> list;
  std::vector<std::int64_t> numbers;

  friend bool operator==(const Operands&, const Operands&) = default;
};

class TakenApart {
 public:
  TakenApart(const Call& call, Engine& engine)
      : engine_(engine), all_{.call = call.index(), .list = {}, .numbers = {}} {
    std::visit(*this, call);
  }
  [[nodiscard]] Operands all() && { return std::move(all_); }

  void operator()(const GroupedProduct& call) {
    rows(call.rows);
    numbers({static_cast<std::int64_t>(call.kind), static_cast<std::int64_t>(call.write), call.in,
             call.out});
    using enum GroupedProduct::Kind;
    const bool weight = call.kind == WeightGradient;
    add(call.x, matrix(call, call.in), call.kind == InputGradient ? Touch::Write : Touch::Read);
    add(call.y, matrix(call, call.out), call.kind == Forward ? Touch::Write : Touch::Read);
    for (int at = 0; at < call.further; ++at) {
      const GroupedProduct::Batch& batch = call.batches[at];
      rows({.count = batch.count, .groups = call.rows.groups, .sizes = batch.sizes});
      add(batch.x, batch.count * call.in * bytes_of(call.type), Touch::Read);
      add(batch.y, batch.count * call.out * bytes_of(call.type), Touch::Read);
    }
    table(call.w, call.rows.groups,
          call.in * call.out * bytes_of(weight ? call.gradient_type : call.type),
          weight ? Touch::Write : Touch::Read);
    if (call.epilogue.bias != nullptr) {
      table(call.epilogue.bias, call.rows.groups, call.out * bytes_of(call.type), Touch::Read);
    }
    read(call.epilogue.scales, call.rows.count * 4);
    read(call.epilogue.probabilities, call.rows.count * 4);
    write(call.epilogue.gated, matrix(call, call.out / 2));
    read(call.epilogue.gates, matrix(call, 2 * call.in));
    write(call.epilogue.dgates, matrix(call, 2 * call.in));
    write(call.epilogue.dprobabilities, call.rows.count * 4);
  }
  void operator()(const QuantizeRows& call) {
    rows(call.rows);
    numbers({static_cast<std::int64_t>(call.scaling), call.columns,
             static_cast<std::int64_t>(call.made.by)});
    const bool is_named = call.made.by == RowsMade::By::Gather;
    read(call.x, is_named ? call.made.from_rows * call.columns * bytes_of(call.type)
                          : matrix(call, call.made.by == RowsMade::By::SwiGlu ? 2 * call.columns
                                                                              : call.columns));
    read(call.made.sources, call.rows.count * 8);
    read(call.made.probabilities, call.rows.count * 4);
    read(call.made.dy, matrix(call, call.columns / 2));
    of_codes(call.scaling, call.along_columns, call.rows.count, call.columns, 1, Touch::Write);
    of_codes(call.scaling, call.along_rows, call.columns, depth_of(call.rows), 1, Touch::Write);
  }
  void operator()(const QuantizeWeights& call) {
    numbers({static_cast<std::int64_t>(call.scaling), call.groups, call.in, call.out});
    table(call.w, call.groups, call.in * call.out * bytes_of(call.type), Touch::Read);
    const std::int64_t width = block_width(call.scaling);
    of_codes(call.scaling, call.along_in, call.out, call.in, width, Touch::Write, call.groups);
    of_codes(call.scaling, call.along_out, call.in, call.out, width, Touch::Write, call.groups);
  }
  void operator()(const ScaledProduct& call) {
    rows(call.rows);
    numbers({static_cast<std::int64_t>(call.kind), static_cast<std::int64_t>(call.scaling),
             static_cast<std::int64_t>(call.write), call.in, call.out});
    const std::int64_t count = call.rows.count;
    const std::int64_t width = block_width(call.scaling);
    using enum GroupedProduct::Kind;
    if (call.kind == WeightGradient) {
      of_codes(call.scaling, call.x, call.in, depth_of(call.rows), 1, Touch::Read);
      of_codes(call.scaling, call.y, call.out, depth_of(call.rows), 1, Touch::Read);
      table(call.gradients, call.rows.groups, call.in * call.out * bytes_of(call.type),
            Touch::Write);
      return;
    }
    const bool forward = call.kind == Forward;
    const std::int64_t depth = forward ? call.in : call.out;
    const std::int64_t across = forward ? call.out : call.in;
    of_codes(call.scaling, forward ? call.x : call.y, count, depth, 1, Touch::Read);
    of_codes(call.scaling, call.w, across, depth, width, Touch::Read, call.rows.groups);
    write(call.result, count * across * bytes_of(call.type));
  }
  void operator()(const LayerNorm& call) {
    numbers({call.rows, call.columns});
    const std::int64_t row = call.columns * bytes_of(call.type);
    read(call.x, call.rows * row);
    read(call.weight, row);
    read(call.bias, row);
    write(call.y, call.rows * row);
  }
  void operator()(const LayerNormGradient& call) {
    numbers({call.rows, call.columns});
    const std::int64_t row = call.columns * bytes_of(call.type);
    read(call.x, call.rows * row);
    read(call.weight, row);
    read(call.dy, call.rows * row);
    write(call.dx, call.rows * row);
  }
  void operator()(const LayerNormWeightGradient& call) {
    numbers({call.rows, call.columns, static_cast<std::int64_t>(call.write)});
    const std::int64_t row = call.columns * bytes_of(call.type);
    read(call.x, call.rows * row);
    read(call.dy, call.rows * row);
    write(call.dweight, call.columns * bytes_of(call.gradient_type));
    write(call.dbias, call.columns * bytes_of(call.gradient_type));
  }
  void operator()(const SwiGlu& call) {
    rows(call.rows);
    numbers({call.columns});
    read(call.x, matrix(call, 2 * call.columns));
    read(call.probabilities, call.rows.count * 4);
    write(call.y, matrix(call, call.columns));
  }
  void operator()(const SwiGluGradient& call) {
    rows(call.rows);
    numbers({call.columns});
    read(call.x, matrix(call, 2 * call.columns));
    read(call.probabilities, call.rows.count * 4);
    read(call.dy, matrix(call, call.columns));
    write(call.dx, matrix(call, 2 * call.columns));
    write(call.dprobabilities, call.rows.count * 4);
  }
  void operator()(const ProbabilityGradient& call) {
    rows(call.rows);
    numbers({call.columns});
    read(call.x, matrix(call, call.columns));
    write(call.dprobabilities, call.rows.count * 4);
  }
  void operator()(const Attention& call) {
    shape(call.shape);
    read(call.qkv, qkv_bytes(call));
    write(call.y, y_bytes(call));
    write(call.log_sums, call.shape.rows * call.shape.heads * 4);
  }
  void operator()(const AttentionQueryGradient& call) {
    shape(call.shape);
    read(call.qkv, qkv_bytes(call));
    read(call.y, y_bytes(call));
    read(call.log_sums, call.shape.rows * call.shape.heads * 4);
    read(call.dy, y_bytes(call));
    write(call.dqkv, qkv_bytes(call));
    write(call.inner, call.shape.rows * call.shape.heads * 4);
  }
  void operator()(const AttentionKeyGradient& call) {
    shape(call.shape);
    read(call.qkv, qkv_bytes(call));
    read(call.log_sums, call.shape.rows * call.shape.heads * 4);
    read(call.inner, call.shape.rows * call.shape.heads * 4);
    read(call.dy, y_bytes(call));
    write(call.dqkv, qkv_bytes(call));
  }
  void operator()(const BiasAdd& call) {
    rows(call.rows);
    numbers({call.columns});
    table(call.bias, call.rows.groups, call.columns * bytes_of(call.type), Touch::Read);
    read(call.scales, call.rows.count * 4);
    write(call.y, matrix(call, call.columns));
  }
  void operator()(const BiasGradient& call) {
    rows(call.rows);
    numbers({call.columns, static_cast<std::int64_t>(call.write)});
    read(call.dy, matrix(call, call.columns));
    read(call.scales, call.rows.count * 4);
    table(call.dbias, call.rows.groups, call.columns * bytes_of(call.gradient_type), Touch::Write);
  }
  void operator()(const ScaleGradient& call) {
    rows(call.rows);
    numbers({call.columns});
    read(call.dy, matrix(call, call.columns));
    table(call.bias, call.rows.groups, call.columns * bytes_of(call.type), Touch::Read);
    write(call.dscales, call.rows.count * 4);
  }
  void operator()(const Route& call) {
    shape(call.shape);
    read(call.logits, call.shape.rows * call.shape.groups * bytes_of(call.type));
    write(call.groups, call.shape.choices() * 8);
    write(call.probabilities, call.shape.choices() * 4);
  }
  void operator()(const SortRoutes& call) {
    shape(call.shape);
    read(call.groups, call.shape.choices() * 8);
    read(call.probabilities, call.shape.choices() * 4);
    write(call.sizes, call.shape.groups * 8);
    write(call.places, call.shape.choices() * 8);
    write(call.sources, call.shape.choices() * 8);
    write(call.sorted_probabilities, call.shape.choices() * 4);
  }
  void operator()(const Combine& call) {
    shape(call.shape);
    numbers({call.columns, static_cast<std::int64_t>(call.write)});
    read(call.places, call.shape.choices() * 8);
    read(call.x, call.shape.choices() * call.columns * bytes_of(call.type));
    write(call.y, call.shape.rows * call.columns * bytes_of(call.type));
  }
  void operator()(const RouteGradient& call) {
    shape(call.shape);
    const std::int64_t logits = call.shape.rows * call.shape.groups * bytes_of(call.type);
    read(call.logits, logits);
    read(call.groups, call.shape.choices() * 8);
    read(call.places, call.shape.choices() * 8);
    read(call.dprobabilities, call.shape.choices() * 4);
    write(call.dlogits, logits);
  }
  void operator()(const Gather& call) {
    numbers({call.rows, call.row_bytes, call.from_rows});
    read(call.index, call.rows * 8);
    read(call.from, (call.from_rows == 0 ? call.rows : call.from_rows) * call.row_bytes);
    write(call.to, call.rows * call.row_bytes);
  }
  void operator()(const Add& call) {
    numbers({call.count});
    read(call.from, call.count * bytes_of(call.from_type));
    write(call.to, call.count * bytes_of(call.to_type));
  }
  void operator()(const Copy& call) {
    read(call.from, call.bytes);
    write(call.to, call.bytes);
  }
  void operator()(const Fill& call) {
    numbers({call.value});
    write(call.to, call.bytes);
  }
  void operator()(const Differ& call) {
    rows(call.rows);
    read(call.a, call.rows.count * call.row_bytes);
    read(call.b, call.rows.count * call.row_bytes);
    write(call.differs, 4);
  }
  void operator()(const DrawInto& call) {
    numbers({call.count, call.first});
    write(call.to, call.count * bytes_of(call.type));
  }

 private:
  void add(const void* begin, std::int64_t bytes, Touch touch) {
    if (begin == nullptr) return;
    all_.list.push_back({static_cast<const std::byte*>(begin), bytes, touch});
  }
  void read(const void* begin, std::int64_t bytes) { add(begin, bytes, Touch::Read); }
  void write(const void* begin, std::int64_t bytes) { add(begin, bytes, Touch::Write); }
  void numbers(const std::vector<std::int64_t>& values) {
    all_.numbers.insert(all_.numbers.end(), values.begin(), values.end());
  }
  void shape(const RouteShape& of) { numbers({of.rows, of.groups, of.top_k}); }
  void shape(const AttentionShape& of) {
    numbers({of.rows, of.sequence, of.heads, of.kv_heads, of.head_dim});
  }
  template <typename OfAttention>
  [[nodiscard]] static std::int64_t y_bytes(const OfAttention& call) {
    return call.shape.rows * call.shape.heads * call.shape.head_dim * bytes_of(call.type);
  }
  template <typename OfAttention>
  [[nodiscard]] static std::int64_t qkv_bytes(const OfAttention& call) {
    return call.shape.rows * (call.shape.heads + 2 * call.shape.kv_heads) * call.shape.head_dim *
           bytes_of(call.type);
  }
  void of_codes(Scaling scaling, const Codes& codes, std::int64_t count, std::int64_t depth,
                std::int64_t width, Touch touch, std::int64_t groups = 1) {
    add(codes.codes, groups * count * depth, touch);
    add(codes.scales, groups * bytes_of_scales(scaling, count, depth, width), touch);
  }
  void rows(const Rows& of) {
    numbers({of.count, of.groups});
    read(of.sizes, of.groups * 8);
  }
  void table(void* const* of, std::int64_t groups, std::int64_t bytes, Touch touch) {
    add(of, groups * 8, Touch::Read);
    std::vector<void*> parts(static_cast<std::size_t>(groups));
    engine_.read(parts.data(), of, groups * 8);
    for (const void* part : parts) add(part, bytes, touch);
  }
  template <typename WithRows>
  [[nodiscard]] static std::int64_t matrix(const WithRows& call, std::int64_t columns) {
    return call.rows.count * columns * bytes_of(call.type);
  }

  Engine& engine_;
  Operands all_;
};

/// The operands of a call in this engine's memory.
[[nodiscard]] inline Operands operands_of(const Call& call, Engine& engine) {
  return TakenApart(call, engine).all();
}

}  // namespace capo::run

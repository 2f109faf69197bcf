// Attention and its gradients on the device, against the host's.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

using run::AttentionShape;

// Tiles of 16 tokens and of 32 are full, begun or alone; sequences end within a tile and at its
// end; heads are narrower and wider than a warp, up to the widest that is served.
const std::vector<AttentionShape> kShapes{
    {.rows = 1, .sequence = 0, .heads = 1, .kv_heads = 1, .head_dim = 1},
    {.rows = 33, .sequence = 0, .heads = 2, .kv_heads = 1, .head_dim = 7},
    {.rows = 70, .sequence = 33, .heads = 4, .kv_heads = 2, .head_dim = 32},
    {.rows = 64, .sequence = 16, .heads = 3, .kv_heads = 3, .head_dim = 33},
    {.rows = 9, .sequence = 1, .heads = 2, .kv_heads = 2, .head_dim = 8},
    {.rows = 130, .sequence = 0, .heads = 6, .kv_heads = 2, .head_dim = 64},
    {.rows = 40, .sequence = 100, .heads = 2, .kv_heads = 1, .head_dim = 256},
    {.rows = 0, .sequence = 0, .heads = 2, .kv_heads = 1, .head_dim = 8},
};

// NaNs lie behind the rows. The host has made what a gradient reads.
struct Problem {
  Problem(DataType the_type, const AttentionShape& the_shape) : type(the_type), shape(the_shape) {
    const std::int64_t rows = shape.rows + kBehind;
    const std::int64_t y_columns = shape.heads * shape.head_dim;
    Tensor qkv_values = at_random(type, rows * columns(), 1);
    Tensor dy_values = at_random(type, rows * y_columns, 2);
    qkv_values.spoil_from(shape.rows * columns());
    dy_values.spoil_from(shape.rows * y_columns);
    Tensor y_values = at_random(type, rows * y_columns, 3);
    Tensor log_sum_values = at_random(DataType::Fp32, rows * shape.heads, 4);
    Tensor inner_values = log_sum_values;
    Tensor dqkv_values = at_random(type, rows * columns(), 5);
    const auto floats = [](Tensor& tensor) { return static_cast<float*>(tensor.data()); };
    run::host::execute(run::Attention{.type = type,
                                      .shape = shape,
                                      .qkv = qkv_values.data(),
                                      .y = y_values.data(),
                                      .log_sums = floats(log_sum_values)});
    Tensor unused = dqkv_values;
    run::host::execute(run::AttentionQueryGradient{.type = type,
                                                   .shape = shape,
                                                   .qkv = qkv_values.data(),
                                                   .y = y_values.data(),
                                                   .log_sums = floats(log_sum_values),
                                                   .dy = dy_values.data(),
                                                   .dqkv = unused.data(),
                                                   .inner = floats(inner_values)});
    qkv = twins.add(qkv_values);
    dy = twins.add(dy_values);
    y = twins.add(y_values);
    log_sums = twins.add(log_sum_values);
    inner = twins.add(inner_values);
    dqkv = twins.add(dqkv_values);
    made_y = twins.add(at_random(type, rows * y_columns, 6));
    made_sums = twins.add(at_random(DataType::Fp32, rows * shape.heads, 7));
  }

  [[nodiscard]] std::int64_t columns() const {
    return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  }
  [[nodiscard]] std::int64_t y_count() const { return shape.rows * shape.heads * shape.head_dim; }
  [[nodiscard]] Part of_heads(const Slot& slot) const {
    return first_of(slot, shape.rows * shape.heads);
  }
  // Each row of dqkv has the same columns.
  [[nodiscard]] std::vector<Part> columns_of_dqkv(std::int64_t first, std::int64_t count) const {
    std::vector<Part> parts;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      parts.push_back({.slot = dqkv, .first = row * columns() + first, .count = count});
    }
    return parts;
  }
  [[nodiscard]] run::Attention forward(const Memory& m) const {
    return {.type = type,
            .shape = shape,
            .qkv = m.at(qkv),
            .y = m.at(made_y),
            .log_sums = m.as<float>(made_sums)};
  }

  static constexpr std::int64_t kBehind = 2;
  DataType type;
  AttentionShape shape;
  Twins twins;
  Slot qkv, dy, y, log_sums, inner, dqkv, made_y, made_sums;
};

using Attentions = Kernels;

TEST_F(Attentions, Forward) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << shape.head_dim << " columns");
      Problem p(type, shape);
      p.twins.expect_same([&](const Memory& m) { return p.forward(m); },
                          {first_of(p.made_y, p.y_count()), p.of_heads(p.made_sums)});
    }
  }
}

TEST_F(Attentions, QueryGradient) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << shape.head_dim << " columns");
      Problem p(type, shape);
      std::vector<Part> written = p.columns_of_dqkv(0, shape.heads * shape.head_dim);
      written.push_back(p.of_heads(p.made_sums));
      p.twins.expect_same(
          [&](const Memory& m) {
            return run::AttentionQueryGradient{.type = type,
                                               .shape = shape,
                                               .qkv = m.at(p.qkv),
                                               .y = m.at(p.y),
                                               .log_sums = m.as<float>(p.log_sums),
                                               .dy = m.at(p.dy),
                                               .dqkv = m.at(p.dqkv),
                                               .inner = m.as<float>(p.made_sums)};
          },
          written);
    }
  }
}

TEST_F(Attentions, KeyGradients) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << shape.head_dim << " columns");
      Problem p(type, shape);
      p.twins.expect_same(
          [&](const Memory& m) {
            return run::AttentionKeyGradient{.type = type,
                                             .shape = shape,
                                             .qkv = m.at(p.qkv),
                                             .log_sums = m.as<float>(p.log_sums),
                                             .inner = m.as<float>(p.inner),
                                             .dy = m.at(p.dy),
                                             .dqkv = m.at(p.dqkv)};
          },
          p.columns_of_dqkv(shape.heads * shape.head_dim, 2 * shape.kv_heads * shape.head_dim));
    }
  }
}

TEST_F(Attentions, HeadsThatAreTooWideAreNotServed) {
  const auto status_of = [](const AttentionShape& shape) {
    return launch(run::Attention{.type = DataType::Fp32, .shape = shape}, nullptr);
  };
  EXPECT_TRUE(status_of({.rows = 0, .head_dim = 256}).ok());
  EXPECT_FALSE(status_of({.rows = 0, .head_dim = 257}).ok());
  EXPECT_FALSE(status_of({.rows = 0, .heads = 3, .kv_heads = 2}).ok());
}

}  // namespace
}  // namespace capo::gpu

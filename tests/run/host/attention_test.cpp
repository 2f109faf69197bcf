// Attention in double, by its definition; its gradients as differences of that, so that no formula
// of the kernels is here again.

#include "core/base/assert.h"
#include "core/model/model.h"
#include "tests/run/host/tensors.h"

#include <limits>

namespace capo::run::host {
namespace {

constexpr std::int64_t kBehind = 2;  // rows behind those of the call

std::int64_t qkv_columns(const AttentionShape& shape) {
  return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
}
std::int64_t y_columns(const AttentionShape& shape) {
  return shape.heads * shape.head_dim;
}
std::int64_t first_of_sequence(const AttentionShape& shape, std::int64_t row) {
  return shape.sequence == 0 ? 0 : row / shape.sequence * shape.sequence;
}

struct Attended {
  Values y;
  Values log_sums;
};

// Whole probabilities of each row and head, with no greatest score taken off.
Attended attended(const AttentionShape& shape, const Values& qkv) {
  const auto at = [&](std::int64_t row, std::int64_t head, std::int64_t i) {
    return qkv[static_cast<std::size_t>(row * qkv_columns(shape) + head * shape.head_dim + i)];
  };
  Attended result;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t key = shape.heads + head * shape.kv_heads / shape.heads;
      double sum = 0;
      Values y(static_cast<std::size_t>(shape.head_dim), 0.0);
      for (std::int64_t other = first_of_sequence(shape, row); other <= row; ++other) {
        double score = 0;
        for (std::int64_t i = 0; i < shape.head_dim; ++i)
          score += at(row, head, i) * at(other, key, i);
        const double weight = std::exp(score / std::sqrt(static_cast<double>(shape.head_dim)));
        sum += weight;
        for (std::size_t i = 0; i < y.size(); ++i) {
          y[i] += weight * at(other, key + shape.kv_heads, static_cast<std::int64_t>(i));
        }
      }
      for (const double value : y) result.y.push_back(value / sum);
      result.log_sums.push_back(std::log(sum));
    }
  }
  return result;
}

struct Problem {
  Problem(DataType the_type, const AttentionShape& the_shape)
      : type(the_type),
        shape(the_shape),
        qkv(at_random(type, (shape.rows + kBehind) * qkv_columns(shape), 1)),
        dy(at_random(type, (shape.rows + kBehind) * y_columns(shape), 2)),
        y(at_random(type, (shape.rows + kBehind) * y_columns(shape), 3)),
        dqkv(at_random(type, (shape.rows + kBehind) * qkv_columns(shape), 4)),
        log_sums(at_random(DataType::Fp32, (shape.rows + kBehind) * shape.heads, 5)),
        inner(at_random(DataType::Fp32, (shape.rows + kBehind) * shape.heads, 6)) {
    for (std::int64_t i = 0; i < qkv.count(); ++i) qkv.set(i, qkv.value(i) * 2);
    qkv.spoil_from(shape.rows * qkv_columns(shape));
    dy.spoil_from(shape.rows * y_columns(shape));
  }

  [[nodiscard]] Attention forward() {
    return {.type = type,
            .shape = shape,
            .qkv = qkv.data(),
            .y = y.data(),
            .log_sums = floats(log_sums)};
  }
  [[nodiscard]] AttentionQueryGradient query_gradient() {
    return {.type = type,
            .shape = shape,
            .qkv = qkv.data(),
            .y = y.data(),
            .log_sums = floats(log_sums),
            .dy = dy.data(),
            .dqkv = dqkv.data(),
            .inner = floats(inner)};
  }
  [[nodiscard]] AttentionKeyGradient key_gradient() {
    return {.type = type,
            .shape = shape,
            .qkv = qkv.data(),
            .log_sums = floats(log_sums),
            .inner = floats(inner),
            .dy = dy.data(),
            .dqkv = dqkv.data()};
  }
  // The values of the call's rows.
  [[nodiscard]] Values given() const {
    Values values = qkv.values();
    values.resize(static_cast<std::size_t>(shape.rows * qkv_columns(shape)));
    return values;
  }
  static float* floats(Tensor& tensor) { return static_cast<float*>(tensor.data()); }

  DataType type;
  AttentionShape shape;
  Tensor qkv;
  Tensor dy;
  Tensor y;
  Tensor dqkv;
  Tensor log_sums;
  Tensor inner;
};

// How fast the sum of dy * y changes with each number of qkv.
Values expected_dqkv(const Problem& p) {
  const auto weighed = [&](const Values& qkv) {
    double sum = 0;
    const Values y = attended(p.shape, qkv).y;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * p.dy.value(static_cast<std::int64_t>(i));
    return sum;
  };
  const Values given = p.given();
  Values slopes;
  for (std::size_t i = 0; i < given.size(); ++i) slopes.push_back(slope(weighed, given, i));
  return slopes;
}

// One sequence or several, the last of them shorter; of one token; heads alone, in pairs, all
// together; no rows at all.
const std::vector<AttentionShape> kShapes{
    {.rows = 6, .sequence = 0, .heads = 1, .kv_heads = 1, .head_dim = 3},
    {.rows = 9, .sequence = 4, .heads = 4, .kv_heads = 2, .head_dim = 3},
    {.rows = 7, .sequence = 7, .heads = 3, .kv_heads = 1, .head_dim = 5},
    {.rows = 8, .sequence = 3, .heads = 2, .kv_heads = 2, .head_dim = 6},
    {.rows = 5, .sequence = 1, .heads = 2, .kv_heads = 1, .head_dim = 4},
    {.rows = 3, .sequence = 100, .heads = 2, .kv_heads = 1, .head_dim = 4},
    {.rows = 0, .sequence = 0, .heads = 2, .kv_heads = 1, .head_dim = 4},
    {.rows = 0, .sequence = 4, .heads = 2, .kv_heads = 1, .head_dim = 4},
};

TEST(HostAttention, EveryTokenReadsItsSequenceUpToItself) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << name_of(type) << ", " << shape.rows
                                      << " rows in sequences of " << shape.sequence);
      Problem p(type, shape);
      const Problem before = p;
      const Attended expected = attended(shape, p.given());
      execute_twice(p.forward(), {p.y, p.log_sums});
      expect_near(p.y, before.y, expected.y);
      expect_near(p.log_sums, before.log_sums, expected.log_sums);
    }
  }
}

TEST(HostAttention, GradientsAreTheSlopesOfTheForward) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << name_of(type) << ", " << shape.rows
                                      << " rows in sequences of " << shape.sequence);
      Problem p(type, shape);
      const Tensor before = p.dqkv;
      const Values expected = expected_dqkv(p);
      execute(p.forward());
      execute_twice(p.query_gradient(), {p.dqkv, p.inner});
      execute_twice(p.key_gradient(), {p.dqkv});
      expect_near(p.dqkv, before, expected);
    }
  }
}

TEST(HostAttention, EachGradientWritesItsOwnColumns) {
  Problem p(DataType::Fp32, kShapes[1]);
  execute(p.forward());
  p.dqkv.spoil_from(0);
  execute(p.query_gradient());
  for (std::int64_t i = 0; i < p.dqkv.count(); ++i) {
    const bool of_queries =
        i < p.shape.rows * qkv_columns(p.shape) && i % qkv_columns(p.shape) < y_columns(p.shape);
    EXPECT_EQ(std::isnan(p.dqkv.value(i)), !of_queries) << i;
  }
  p.dqkv.spoil_from(0);
  execute(p.key_gradient());
  for (std::int64_t i = 0; i < p.dqkv.count(); ++i) {
    const bool of_others =
        i < p.shape.rows * qkv_columns(p.shape) && i % qkv_columns(p.shape) >= y_columns(p.shape);
    EXPECT_EQ(std::isnan(p.dqkv.value(i)), !of_others) << i;
  }
}

TEST(HostAttention, NoTokenReadsALaterOne) {
  for (const DataType type : kTypes) {
    Problem whole(type, {.rows = 8, .heads = 4, .kv_heads = 2, .head_dim = 3});
    Problem cut = whole;
    execute(whole.forward());
    cut.qkv.spoil_from(5 * qkv_columns(cut.shape));
    execute(cut.forward());
    for (std::int64_t i = 0; i < 5 * y_columns(cut.shape); ++i) {
      EXPECT_EQ(cut.y.value(i), whole.y.value(i)) << i;
    }
    EXPECT_TRUE(std::isnan(cut.y.value(5 * y_columns(cut.shape))));
  }
}

TEST(HostAttention, ATokenAloneIsItsValue) {
  Problem p(DataType::Bf16, kShapes[4]);
  execute(p.forward());
  for (std::int64_t row = 0; row < p.shape.rows; ++row) {
    for (std::int64_t i = 0; i < y_columns(p.shape); ++i) {
      EXPECT_EQ(p.y.value(row * 8 + i), p.qkv.value(row * 16 + 12 + i % 4)) << row << ", " << i;
    }
  }
}

TEST(HostAttention, FarScoresAreOneOrNothing) {
  // Scores of the second token: 40,000 and then -40,000; of the third: the other way round.
  Tensor qkv(DataType::Fp32, {200, 200, 7, 200, -200, 8, -200, -200, 9});
  Tensor y(DataType::Fp32, {0, 0, 0});
  Tensor log_sums(DataType::Fp32, {0, 0, 0});
  execute(Attention{.type = DataType::Fp32,
                    .shape = {.rows = 3},
                    .qkv = qkv.data(),
                    .y = y.data(),
                    .log_sums = Problem::floats(log_sums)});
  EXPECT_EQ(y.values(), (Values{7, 7, 8.5}));
  EXPECT_EQ(log_sums.values()[1], 40000);
}

TEST(HostAttention, HeadsThatDoNotDivideAreRefused) {
  const auto with_heads = [](std::int64_t heads, std::int64_t kv_heads) {
    return Attention{.type = DataType::Fp32, .shape = {.heads = heads, .kv_heads = kv_heads}};
  };
  execute(with_heads(4, 2));
  EXPECT_THROW(execute(with_heads(4, 3)), InternalError);
  EXPECT_THROW(execute(with_heads(2, 4)), InternalError);
  EXPECT_THROW(execute(with_heads(4, 0)), InternalError);
  EXPECT_THROW(execute(AttentionQueryGradient{.shape = {.heads = 3, .kv_heads = 2}}),
               InternalError);
  EXPECT_THROW(execute(AttentionKeyGradient{.shape = {.heads = 3, .kv_heads = 2}}), InternalError);
}

}  // namespace
}  // namespace capo::run::host

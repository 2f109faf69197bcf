// Causal attention of grouped queries, and its gradients: a head at a time, by the definition.
//
// The tensors of one sequence and head are widened to fp32 once, and then every sum is added in
// ascending order: over columns in a score, over tokens in a result, and over the heads that share
// keys in the gradients of keys and values. Each gradient belongs to one pass that writes it, so
// nothing is added up from two sides. A score above all others by far has probability one, since
// the greatest is subtracted before exp.
//
// The scores of a token with many others are added up together, column by column, each in its own
// order: a sum of one score alone waits for every addition before the next.

#include "core/base/index.h"
#include "run/host/parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace capo::run::host {

namespace {

/// Tokens of one sequence.
struct Tokens {
  std::int64_t first = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t count() const { return end - first; }
};

/// The columns of one head, of some tokens, in fp32.
class HeadRows {
 public:
  HeadRows(std::int64_t rows, std::int64_t columns)
      : columns_(columns), values_(as_index(rows * columns)) {}

  [[nodiscard]] float* row(std::int64_t at) { return values_.data() + at * columns_; }
  [[nodiscard]] const float* row(std::int64_t at) const { return values_.data() + at * columns_; }

 private:
  std::int64_t columns_;
  std::vector<float> values_;
};

/// These rows lie column by column, so that sums over columns of many tokens are added side by
/// side.
class HeadColumns {
 public:
  HeadColumns(const HeadRows& of, std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), values_(as_index(rows * columns)) {
    for (std::int64_t at = 0; at < rows; ++at) {
      for (std::int64_t i = 0; i < columns; ++i) values_[as_index(i * rows + at)] = of.row(at)[i];
    }
  }

  /// The inner product of `one` with the row of each token from `first` up to `end`.
  void multiply(const float* one, std::int64_t first, std::int64_t end,
                std::vector<float>& products) const {
    const std::int64_t count = end - first;
    products.assign(as_index(count), 0.0F);
    float* sums = products.data();
    for (std::int64_t i = 0; i < columns_; ++i) {
      const float factor = one[i];
      const float* column = values_.data() + i * rows_ + first;
      for (std::int64_t at = 0; at < count; ++at) sums[at] += factor * column[at];
    }
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<float> values_;
};

void require_sound(const AttentionShape& shape) {
  CAPO_ASSERT(shape.rows >= 0 && shape.sequence >= 0, "no sequence has fewer tokens than none");
  CAPO_ASSERT(shape.head_dim > 0 && shape.kv_heads > 0 && shape.heads > 0 &&
                  shape.heads % shape.kv_heads == 0,
              "as many heads share each kv head");
}

template <typename Visit>
void for_each_sequence(const AttentionShape& shape, Visit visit) {
  const std::int64_t length = shape.sequence == 0 ? shape.rows : shape.sequence;
  for (std::int64_t first = 0; first < shape.rows; first += length) {
    visit(Tokens{.first = first, .end = std::min(first + length, shape.rows)});
  }
}

std::int64_t qkv_columns(const AttentionShape& shape) {
  return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
}
std::int64_t y_columns(const AttentionShape& shape) {
  return shape.heads * shape.head_dim;
}
std::int64_t kv_head_of(const AttentionShape& shape, std::int64_t head) {
  return head / (shape.heads / shape.kv_heads);
}
std::int64_t query_column(const AttentionShape& shape, std::int64_t head) {
  return head * shape.head_dim;
}
std::int64_t key_column(const AttentionShape& shape, std::int64_t kv_head) {
  return (shape.heads + kv_head) * shape.head_dim;
}
std::int64_t value_column(const AttentionShape& shape, std::int64_t kv_head) {
  return (shape.heads + shape.kv_heads + kv_head) * shape.head_dim;
}
float scale_of(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
}

/// `columns` are those of a whole row, `column` is the head's first.
template <typename T>
HeadRows widened(const AttentionShape& shape, const Tokens& tokens, const void* from,
                 std::int64_t columns, std::int64_t column) {
  HeadRows rows(tokens.count(), shape.head_dim);
  for (std::int64_t at = 0; at < tokens.count(); ++at) {
    const T* row = static_cast<const T*>(from) + (tokens.first + at) * columns + column;
    float* to = rows.row(at);
    for (std::int64_t i = 0; i < shape.head_dim; ++i) to[i] = to_float(row[i]);
  }
  return rows;
}

float inner_product(const float* a, const float* b, std::int64_t count) {
  return sum_of(count, [&](std::int64_t i) { return a[i] * b[i]; });
}

void add_scaled(std::vector<float>& sums, float factor, const float* row) {
  for (float& sum : sums) sum += factor * *row++;
}

template <typename T>
void write_row(void* to, std::int64_t at, const std::vector<float>& sums, float factor) {
  T* row = static_cast<T*>(to) + at;
  for (const float sum : sums) *row++ = round_to<T>(sum * factor);
}

template <typename T>
void compute(const Attention& call, const Tokens& tokens, std::int64_t head) {
  const AttentionShape& shape = call.shape;
  const std::int64_t columns = qkv_columns(shape);
  const std::int64_t kv_head = kv_head_of(shape, head);
  const HeadRows q = widened<T>(shape, tokens, call.qkv, columns, query_column(shape, head));
  const HeadRows k = widened<T>(shape, tokens, call.qkv, columns, key_column(shape, kv_head));
  const HeadRows v = widened<T>(shape, tokens, call.qkv, columns, value_column(shape, kv_head));
  const HeadColumns keys(k, tokens.count(), shape.head_dim);
  std::vector<float> scores;
  std::vector<float> sums;
  for (std::int64_t at = 0; at < tokens.count(); ++at) {
    keys.multiply(q.row(at), 0, at + 1, scores);
    for (float& score : scores) score *= scale_of(shape);
    const float greatest = *std::max_element(scores.begin(), scores.end());
    sums.assign(as_index(shape.head_dim), 0.0F);
    float sum = 0;
    for (std::int64_t other = 0; other <= at; ++other) {
      const float weight = std::exp(scores[as_index(other)] - greatest);
      sum += weight;
      add_scaled(sums, weight, v.row(other));
    }
    const std::int64_t token = tokens.first + at;
    write_row<T>(call.y, token * y_columns(shape) + query_column(shape, head), sums, 1.0F / sum);
    call.log_sums[token * shape.heads + head] = greatest + std::log(sum);
  }
}

/// All that both gradients read of a sequence and a head.
template <typename T>
struct HeadOperands {
  template <typename Gradient>
  HeadOperands(const Gradient& call, const Tokens& tokens, std::int64_t head)
      : HeadOperands(call.shape, call, tokens, head, kv_head_of(call.shape, head)) {}

  template <typename Gradient>
  HeadOperands(const AttentionShape& shape, const Gradient& call, const Tokens& tokens,
               std::int64_t head, std::int64_t kv_head)
      : q(widened<T>(shape, tokens, call.qkv, qkv_columns(shape), query_column(shape, head))),
        k(widened<T>(shape, tokens, call.qkv, qkv_columns(shape), key_column(shape, kv_head))),
        v(widened<T>(shape, tokens, call.qkv, qkv_columns(shape), value_column(shape, kv_head))),
        dy(widened<T>(shape, tokens, call.dy, y_columns(shape), query_column(shape, head))),
        log_sums(call.log_sums + tokens.first * shape.heads + head),
        heads(shape.heads),
        scale(scale_of(shape)) {}

  /// With which probability a token reads another, of the inner product of query and key.
  [[nodiscard]] float probability(std::int64_t at, float product) const {
    return std::exp(product * scale - log_sums[at * heads]);
  }

  HeadRows q, k, v, dy;
  const float* log_sums;
  std::int64_t heads;
  float scale;
};

template <typename T>
void compute(const AttentionQueryGradient& call, const Tokens& tokens, std::int64_t head) {
  const AttentionShape& shape = call.shape;
  const HeadOperands<T> of(call, tokens, head);
  const HeadRows y = widened<T>(shape, tokens, call.y, y_columns(shape), query_column(shape, head));
  const HeadColumns keys(of.k, tokens.count(), shape.head_dim);
  const HeadColumns values(of.v, tokens.count(), shape.head_dim);
  std::vector<float> scores;
  std::vector<float> incoming;
  std::vector<float> sums;
  for (std::int64_t at = 0; at < tokens.count(); ++at) {
    const float inner = inner_product(of.dy.row(at), y.row(at), shape.head_dim);
    keys.multiply(of.q.row(at), 0, at + 1, scores);
    values.multiply(of.dy.row(at), 0, at + 1, incoming);
    sums.assign(as_index(shape.head_dim), 0.0F);
    for (std::int64_t other = 0; other <= at; ++other) {
      const float probability = of.probability(at, scores[as_index(other)]);
      add_scaled(sums, probability * (incoming[as_index(other)] - inner), of.k.row(other));
    }
    const std::int64_t token = tokens.first + at;
    write_row<T>(call.dqkv, token * qkv_columns(shape) + query_column(shape, head), sums,
                 scale_of(shape));
    call.inner[token * shape.heads + head] = inner;
  }
}

/// A head with what its readers' scores and gradients are added up from.
template <typename T>
struct ReadingHead {
  ReadingHead(const AttentionKeyGradient& call, const Tokens& tokens, std::int64_t head)
      : of(call, tokens, head),
        queries(of.q, tokens.count(), call.shape.head_dim),
        incoming(of.dy, tokens.count(), call.shape.head_dim),
        inner(call.inner + tokens.first * call.shape.heads + head) {}

  HeadOperands<T> of;
  HeadColumns queries;
  HeadColumns incoming;
  const float* inner;
};

template <typename T>
void compute(const AttentionKeyGradient& call, const Tokens& tokens, std::int64_t kv_head) {
  const AttentionShape& shape = call.shape;
  const std::int64_t sharing = shape.heads / shape.kv_heads;
  std::vector<ReadingHead<T>> of_heads;
  for (std::int64_t i = 0; i < sharing; ++i) {
    of_heads.emplace_back(call, tokens, kv_head * sharing + i);
  }
  std::vector<float> scores;
  std::vector<float> incoming;
  std::vector<float> dk;
  std::vector<float> dv;
  for (std::int64_t at = 0; at < tokens.count(); ++at) {
    dk.assign(as_index(shape.head_dim), 0.0F);
    dv.assign(as_index(shape.head_dim), 0.0F);
    for (const ReadingHead<T>& head : of_heads) {
      head.queries.multiply(head.of.k.row(at), at, tokens.count(), scores);
      head.incoming.multiply(head.of.v.row(at), at, tokens.count(), incoming);
      for (std::int64_t reader = at; reader < tokens.count(); ++reader) {
        const float probability = head.of.probability(reader, scores[as_index(reader - at)]);
        const float slope =
            probability * (incoming[as_index(reader - at)] - head.inner[reader * shape.heads]);
        add_scaled(dk, slope, head.of.q.row(reader));
        add_scaled(dv, probability, head.of.dy.row(reader));
      }
    }
    const std::int64_t row = (tokens.first + at) * qkv_columns(shape);
    write_row<T>(call.dqkv, row + key_column(shape, kv_head), dk, scale_of(shape));
    write_row<T>(call.dqkv, row + value_column(shape, kv_head), dv, 1.0F);
  }
}

/// Computes a call for each of so many heads of every sequence.
template <typename AnyCall>
void for_each_head(const AnyCall& call, std::int64_t heads) {
  require_sound(call.shape);
  with_element(call.type, [&](auto element) {
    for_each_sequence(call.shape, [&](const Tokens& tokens) {
      for (std::int64_t head = 0; head < heads; ++head) {
        compute<decltype(element)>(call, tokens, head);
      }
    });
  });
}

}  // namespace

void compute(const Attention& call) {
  for_each_head(call, call.shape.heads);
}

void compute(const AttentionQueryGradient& call) {
  for_each_head(call, call.shape.heads);
}

void compute(const AttentionKeyGradient& call) {
  for_each_head(call, call.shape.kv_heads);
}

}  // namespace capo::run::host

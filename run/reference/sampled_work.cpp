// The multiply-adds of a sample, by what sampled_reference.cpp and sampled_heads.h look at.

#include "run/reference/sampled_reference.h"

#include <algorithm>

namespace capo::run {

namespace {

double number(std::int64_t value) {
  return static_cast<double>(value);
}

double work_of_rows(const LayerShape& shape, std::int32_t microbatches, std::int64_t count) {
  const double rows = number(std::min(shape.tokens, count)) * microbatches;
  const double weights =
      number(first_columns(shape) + second_columns(shape)) * number(shape.hidden);
  // A row goes forward and back.
  return (2 * rows + std::min(rows, number(shape.groups))) * weights;
}

double work_of_columns(const LayerShape& shape, std::int32_t microbatches, std::int64_t count) {
  // A group meets so many parts of the sample; its rows are looked at for each.
  const std::int64_t parts = shape.groups > 1 ? count / shape.groups + 2 : count;
  const double columns = number(std::min({count, parts, shape.ffn}));
  const double products = is_mlp(shape.kind) ? 7 : 2;
  return columns * products * number(shape.tokens) * number(shape.hidden) * microbatches;
}

double work_of_heads(const LayerShape& shape, std::int32_t microbatches, std::int64_t count) {
  const double hidden = number(shape.hidden);
  const double first = number(first_columns(shape)) * hidden;
  const double second = number(second_columns(shape)) * hidden;
  // A row reads half of its sequence on average, in seven products of a head's columns: two
  // forward, and a score, a gradient of it and three sums back.
  const double attended = 3.5 * number(shape.sequence) * number(second_columns(shape));
  const bool all_rows = shape.tokens <= count;
  const double rows = number(all_rows ? shape.tokens : shape.sequence) * microbatches;
  const bool all_heads = second_columns(shape) <= count;
  const double share = all_heads ? 1 : 1 / number(shape.kv_heads);
  const double tokens = number(shape.tokens) * microbatches;
  return (2 * rows + 1) * (first + second) + rows * attended +
         share * (first + second + tokens * (2 * first + 3 * second + attended));
}

}  // namespace

double sampled_work(const StepLayers& layers, std::int32_t microbatches, std::int64_t count) {
  double work = 0;
  for (const StepLayer& layer : layers.all()) {
    work += is_attention(layer.shape.kind) ? work_of_heads(layer.shape, microbatches, count)
                                           : work_of_rows(layer.shape, microbatches, count) +
                                                 work_of_columns(layer.shape, microbatches, count);
  }
  return work;
}

}  // namespace capo::run

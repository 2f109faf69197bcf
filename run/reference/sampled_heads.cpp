#include "run/reference/sampled_heads.h"

#include "core/base/index.h"

#include <numeric>
#include <set>
#include <utility>

namespace capo::run {

namespace {

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> all(as_index(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

// Places that lie side by side are one slice.
void append_place(std::vector<Slice>& slices, std::int64_t at) {
  if (!slices.empty() && slices.back().first + slices.back().count == at) {
    ++slices.back().count;
  } else {
    slices.push_back({.first = at, .count = 1});
  }
}

}  // namespace

std::vector<std::int64_t> parts_of_sample(const FloatSample& sample, std::int64_t places,
                                          std::int64_t parts, std::uint64_t stream) {
  if (places <= sample.count) return all_of(parts);
  return FloatSample{.seed = sample.seed, .count = 1}.of(parts, stream);
}

SampledHeads::SampledHeads(const LayerShape& shape, std::int64_t kv_head,
                           std::vector<std::int64_t> columns)
    : shape_(shape), kv_head_(kv_head), columns_(std::move(columns)) {
  std::set<std::int64_t> rows;
  for (const std::int64_t column : columns_) {
    const std::int64_t of_head = column % shape.head_dim;
    rows.insert({column, width() + of_head, width() + shape.head_dim + of_head});
  }
  rows_.assign(rows.begin(), rows.end());
}

reference::LayerForm SampledHeads::form(reference::LayerForm of) const {
  of.heads = sharing();
  of.kv_heads = 1;
  return of;
}

// The row of the whole first weight that is this one of the kv head's: of queries, then of its
// keys, then of its values.
std::int64_t SampledHeads::row_of_first(std::int64_t row) const {
  const std::int64_t dim = shape_.head_dim;
  if (row < width()) return kv_head_ * width() + row;
  const bool key = row < width() + dim;
  const std::int64_t begin = shape_.heads + (key ? 0 : shape_.kv_heads) + kv_head_;
  return begin * dim + row - width() - (key ? 0 : dim);
}

std::vector<Slice> SampledHeads::slices(Role role, const std::vector<std::int64_t>& rows,
                                        const std::vector<std::int64_t>& columns) const {
  const std::int64_t hidden = shape_.hidden;
  std::vector<Slice> all;
  switch (role) {
    case Role::First:
      for (const std::int64_t row : rows) {
        all.push_back({.first = row_of_first(row) * hidden, .count = hidden});
      }
      break;
    case Role::FirstBias:
      for (const std::int64_t row : rows) all.push_back({.first = row_of_first(row), .count = 1});
      break;
    case Role::Second:
      for (std::int64_t row = 0; row < hidden; ++row) {
        const std::int64_t begin = row * second_columns(shape_) + kv_head_ * width();
        for (const std::int64_t column : columns) append_place(all, begin + column);
      }
      break;
    default:
      all.push_back({.first = 0, .count = hidden});
  }
  return all;
}

std::vector<Slice> SampledHeads::weights(Role role) const {
  return slices(role, all_of(width() + 2 * shape_.head_dim), all_of(width()));
}

std::vector<Slice> SampledHeads::looked_at(Role role, bool first) const {
  if (role == Role::SecondBias && !first) return {};
  return slices(role, rows_, columns_);
}

std::vector<std::int64_t> SampledHeads::places(Role role, bool first) const {
  const std::int64_t hidden = shape_.hidden;
  std::vector<std::int64_t> all;
  switch (role) {
    case Role::First:
      for (const std::int64_t row : rows_) {
        for (std::int64_t column = 0; column < hidden; ++column) {
          all.push_back(row * hidden + column);
        }
      }
      return all;
    case Role::FirstBias:
      return rows_;
    case Role::Second:
      for (std::int64_t row = 0; row < hidden; ++row) {
        for (const std::int64_t column : columns_) all.push_back(row * width() + column);
      }
      return all;
    default:
      return first ? all_of(hidden) : all;
  }
}

}  // namespace capo::run

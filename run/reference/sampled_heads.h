// A sample of an attention: whole sequences, since a row reads those before it, and whole kv heads,
// since a score takes all columns of a head.
//
//   heads 4, kv_heads 2, head_dim 2      kv head 1 is read by heads 2 and 3
//   rows of the qkv weight     queries 4 to 7, keys 10 and 11, values 14 and 15
//   columns of the second      4 to 7
//
// A sample without room for all rows of a microbatch is one sequence of each, and one without room
// for all columns of the heads is one kv head of each layer, both drawn. Of a
// sequence all rows are looked at, and of a kv head the columns in the sample: rows of queries of
// these, the rows of keys and values that belong to them, and columns of the second weight.
//
// Tested by tests/run/reference/sampled_reference_test.cpp and tests/run/steps/sampled_test.cpp.

#pragma once

#include "run/kernels/stored.h"
#include "run/reference/float_sample.h"
#include "run/reference/layer_reference.h"
#include "run/setup/parameters.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// Which of `parts` equal parts of so many places are looked at: all if the sample has room for all
/// places, else one.
[[nodiscard]] std::vector<std::int64_t> parts_of_sample(const FloatSample& sample,
                                                        std::int64_t places, std::int64_t parts,
                                                        std::uint64_t stream);

/// A kv head with the heads that read it, as a layer of its own, and its columns in the sample.
class SampledHeads {
 public:
  /// `columns` are those of its queries, from 0 on, ascending.
  SampledHeads(const LayerShape& shape, std::int64_t kv_head, std::vector<std::int64_t> columns);

  [[nodiscard]] reference::LayerForm form(reference::LayerForm of) const;
  /// Its part of a parameter, in the order of its layer.
  [[nodiscard]] std::vector<Slice> weights(Role role) const;
  /// The part of a parameter's gradient that is looked at, and where it is in that of its layer;
  /// nothing of the second bias unless it is the first kv head.
  [[nodiscard]] std::vector<Slice> looked_at(Role role, bool first) const;
  [[nodiscard]] std::vector<std::int64_t> places(Role role, bool first) const;

 private:
  [[nodiscard]] std::int64_t sharing() const { return shape_.heads / shape_.kv_heads; }
  [[nodiscard]] std::int64_t width() const { return sharing() * shape_.head_dim; }
  [[nodiscard]] std::int64_t row_of_first(std::int64_t row) const;
  [[nodiscard]] std::vector<Slice> slices(Role role, const std::vector<std::int64_t>& rows,
                                          const std::vector<std::int64_t>& columns) const;

  LayerShape shape_;
  std::int64_t kv_head_;
  std::vector<std::int64_t> columns_;  // of the second weight of its layer
  std::vector<std::int64_t> rows_;     // of the first
};

}  // namespace capo::run

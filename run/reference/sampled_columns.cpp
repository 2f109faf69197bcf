#include "core/base/index.h"
#include "run/reference/sampled_heads.h"
#include "run/reference/sampled_parts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

namespace capo::run {

namespace {

using Numbers = std::vector<double>;

// Kept apart from the streams of numbers, and from that of rows, by their highest bits.
std::uint64_t stream_of_columns(std::size_t layer) {
  return (std::uint64_t{3} << 62) + layer;
}
std::uint64_t stream_of_heads(std::size_t layer) {
  return (std::uint64_t{7} << 61) + layer;
}

GroupRows rows_of_group(const LayerShape& shape, const StepValues::Side& side, std::int64_t group) {
  if (!shape.grouped) return {.count = shape.tokens};
  const auto begin = side.sizes.begin();
  return {.first = std::accumulate(begin, begin + group, std::int64_t{0}),
          .count = side.sizes[as_index(group)]};
}

// The columns in the sample of the weights of one layer.
class ColumnsOfLayer {
 public:
  ColumnsOfLayer(SampledStep& of, std::size_t number) : of_(of), number_(number) {}

  void take() {
    const LayerShape& shape = of_.layer(number_).shape;
    if (is_attention(shape.kind)) return take_heads();
    std::map<std::int64_t, std::vector<std::int64_t>> by_group;
    for (const std::int64_t at :
         of_.sample.of(shape.groups * shape.ffn, stream_of_columns(number_))) {
      by_group[at / shape.ffn].push_back(at % shape.ffn);
    }
    for (const auto& [group, columns] : by_group) {
      load_columns(group, columns);
      for (std::int32_t m = 0; m < of_.microbatches; ++m) {
        take_columns_of(group, columns, m);
      }
    }
  }

  // Returns the columns of the first product that make these: of an MLP gate and then linear.
  [[nodiscard]] static std::vector<std::int64_t> made_by_first(
      const LayerShape& shape, const std::vector<std::int64_t>& columns) {
    std::vector<std::int64_t> rows = columns;
    if (!is_mlp(shape.kind)) return rows;
    for (const std::int64_t column : columns) rows.push_back(shape.ffn + column);
    return rows;
  }

  // The weights of a group as those of a layer that is as wide as the columns are many, and the
  // places of their gradients.
  void load_columns(std::int64_t group, const std::vector<std::int64_t>& columns) {
    const LayerShape& shape = of_.layer(number_).shape;
    const std::vector<std::int64_t> rows = made_by_first(shape, columns);
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(of_.weights, role);
      into.clear();
      const std::uint32_t parameter = of_.layer(number_).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      const std::int64_t begin = group * of_.layers.parameters()[parameter].elements;
      const auto take = [&](const Slice& slice) {
        append(into, of_.parameters[parameter], slice);
        if (is_of_norm(role)) return;
        auto& at = of_.result.gradients[parameter].at;
        for (std::int64_t i = 0; i < slice.count; ++i) at.push_back(slice.first + i * slice.step);
      };
      switch (role) {
        default:  // no sample is taken of layers that have others
          break;
        case Role::NormWeight:
        case Role::NormBias:
        case Role::SecondBias:
          take({.first = begin, .count = shape.hidden});
          break;
        case Role::First:
          for (const std::int64_t row : rows) {
            take({.first = begin + row * shape.hidden, .count = shape.hidden});
          }
          break;
        case Role::FirstBias:
          for (const std::int64_t row : rows) take({.first = begin + row, .count = 1});
          break;
        case Role::Second:
          take_second(begin, shape, columns, take);
          break;
      }
      if (role == Role::First || role == Role::SecondBias) {
        of_.result.gradients[parameter].columns = shape.hidden;
      }
    }
  }

  // A layer of these columns has its weight row by row, and so has its gradient.
  template <typename Take>
  static void take_second(std::int64_t begin, const LayerShape& shape,
                          const std::vector<std::int64_t>& columns, Take take) {
    for (std::int64_t row = 0; row < shape.hidden; ++row) {
      for (const std::int64_t column : columns) {
        take({.first = begin + row * shape.ffn + column, .count = 1});
      }
    }
  }

  void take_columns_of(std::int64_t group, const std::vector<std::int64_t>& columns,
                       std::int32_t m) {
    const LayerShape& shape = of_.layer(number_).shape;
    const GroupRows rows = rows_of_group(shape, of_.side(number_, m), group);
    reference::LayerForm form = form_of(shape);
    form.tokens = rows.count;
    form.groups = 1;
    form.ffn = std::ssize(columns);
    reference::LayerWeights grads = of_.weights;  // zeros of their sizes, if the group has no rows
    for (const Role role : kHalfRoles) std::ranges::fill(of_role(grads, role), 0.0);
    if (rows.count > 0) {
      const auto input = widened(of_.stored.operands(number_, m, false, rows.first, rows.count));
      auto grad_output = widened(of_.stored.operands(number_, m, true, rows.first, rows.count));
      if (!is_mlp(shape.kind)) grad_output = picked(grad_output, shape.ffn, columns);
      const auto side = side_of_rows(of_.side(number_, m), rows);
      const auto saved =
          reference::forward(form, of_.weights, side, input, reference::Rounding::AsStored);
      grads = reference::backward(form, of_.weights, side, input, saved, grad_output,
                                  reference::Rounding::AsStored, nullptr,
                                  reference::Wanted::WeightGradients)
                  .grads;
    }
    add_contributions(m, grads, [](Numbers& to, Role, const Numbers& gradient) {
      to.insert(to.end(), gradient.begin(), gradient.end());
    });
  }

  // Calls add(to, role, gradient) for what each weight of a product, and each bias, gets of a
  // microbatch.
  template <typename Add>
  void add_contributions(std::int32_t m, const reference::LayerWeights& grads, Add add) {
    for (const Role role : {Role::First, Role::FirstBias, Role::Second, Role::SecondBias}) {
      const std::uint32_t parameter = of_.layer(number_).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      add(of_.contributions[parameter][MicrobatchId(m).index()], role, of_role(grads, role));
    }
  }

  // The weights of a kv head and of the heads that read it are those of a layer by themselves: no
  // score has anything of another kv head's. Its columns in the sample are looked at.
  void take_heads() {
    const LayerShape& shape = of_.layer(number_).shape;
    const std::int64_t columns = second_columns(shape);
    bool first = true;
    for (const std::int64_t kv_head :
         parts_of_sample(of_.sample, columns, shape.kv_heads, stream_of_heads(number_))) {
      const SampledHeads heads(shape, kv_head,
                               of_.sample.of(columns / shape.kv_heads, stream_of_columns(number_)));
      load_heads(heads, first);
      for (std::int32_t m = 0; m < of_.microbatches; ++m) take_heads_of(heads, m, first);
      first = false;
    }
  }

  // Every kv head's layer has the whole bias of the second product, which is looked at once.
  void load_heads(const SampledHeads& heads, bool first) {
    const std::int64_t hidden = of_.layer(number_).shape.hidden;
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(of_.weights, role);
      into.clear();
      const std::uint32_t parameter = of_.layer(number_).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      for (const Slice& slice : heads.weights(role)) append(into, of_.parameters[parameter], slice);
      SampledTensor& tensor = of_.result.gradients[parameter];
      for (const Slice& slice : heads.looked_at(role, first)) {
        for (std::int64_t i = 0; i < slice.count; ++i) {
          tensor.at.push_back(slice.first + i * slice.step);
        }
      }
      if (role == Role::First || role == Role::SecondBias) tensor.columns = hidden;
    }
  }

  void take_heads_of(const SampledHeads& heads, std::int32_t m, bool first) {
    const LayerShape& shape = of_.layer(number_).shape;
    const reference::LayerForm form = heads.form(form_of(shape));
    const Numbers input = widened(of_.stored.operands(number_, m, false, 0, shape.tokens));
    const Numbers grad_output = widened(of_.stored.operands(number_, m, true, 0, shape.tokens));
    const auto saved =
        reference::forward(form, of_.weights, {}, input, reference::Rounding::AsStored);
    const auto grads = reference::backward(form, of_.weights, {}, input, saved, grad_output,
                                           reference::Rounding::AsStored, nullptr,
                                           reference::Wanted::WeightGradients)
                           .grads;
    add_contributions(m, grads, [&](Numbers& to, Role role, const Numbers& gradient) {
      for (const std::int64_t at : heads.places(role, first)) to.push_back(gradient[as_index(at)]);
    });
  }

  // Some columns of a matrix.
  static Numbers picked(const Numbers& from, std::int64_t width,
                        const std::vector<std::int64_t>& columns) {
    Numbers some;
    for (std::int64_t row = 0; row * width < std::ssize(from); ++row) {
      for (const std::int64_t column : columns)
        some.push_back(from[as_index(row * width + column)]);
    }
    return some;
  }

  SampledStep& of_;
  std::size_t number_;
};

}  // namespace

void append(std::vector<double>& to, const DrawnTensor& from, Slice slice) {
  constexpr std::int64_t kAtOnce = 1 << 14;
  while (slice.count > 0) {
    const std::int64_t count = std::min(slice.count, kAtOnce);
    const auto values = values_of(from, {.first = slice.first, .count = count, .step = slice.step});
    to.insert(to.end(), values.begin(), values.end());
    slice.first += count * slice.step;
    slice.count -= count;
  }
}

reference::LayerSide side_of_rows(const StepValues::Side& side, GroupRows rows) {
  const auto part = [&](const std::vector<float>& of) {
    if (of.empty()) return Numbers{};
    const auto from = of.begin() + rows.first;
    return Numbers(from, from + rows.count);
  };
  return {.probabilities = part(side.probabilities), .scales = part(side.scales)};
}

void take_columns(SampledStep& step, std::size_t number) {
  ColumnsOfLayer(step, number).take();
}

}  // namespace capo::run

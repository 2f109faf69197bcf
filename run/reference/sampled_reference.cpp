#include "run/reference/sampled_reference.h"

#include "core/base/index.h"
#include "run/reference/compare.h"
#include "run/reference/other_ways.h"
#include "run/reference/sampled_heads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace capo::run {

namespace {

using Numbers = std::vector<double>;

// Beyond so many rows an engine is wrong, and every row that is tried takes seconds.
constexpr std::size_t kMostSettled = 16;

// Streams of a sample's draws: kept apart from those of numbers by their highest bit.
std::uint64_t stream_of_rows(std::int32_t microbatch) {
  return (std::uint64_t{1} << 63) + static_cast<std::uint64_t>(microbatch);
}
std::uint64_t stream_of_columns(std::size_t layer) {
  return (std::uint64_t{3} << 62) + layer;
}
std::uint64_t stream_of_heads(std::size_t layer) {
  return (std::uint64_t{7} << 61) + layer;
}

// Appends the numbers of a slice, without a second copy of a tensor that is gigabytes.
void append(Numbers& to, const DrawnTensor& from, Slice slice) {
  constexpr std::int64_t kAtOnce = 1 << 14;
  while (slice.count > 0) {
    const std::int64_t count = std::min(slice.count, kAtOnce);
    const auto values = values_of(from, {.first = slice.first, .count = count, .step = slice.step});
    to.insert(to.end(), values.begin(), values.end());
    slice.first += count * slice.step;
    slice.count -= count;
  }
}

// A group has so many rows, which begin there among those of its microbatch.
struct GroupRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

GroupRows rows_of_group(const LayerShape& shape, const StepValues::Side& side, std::int64_t group) {
  if (!shape.grouped) return {.count = shape.tokens};
  const auto begin = side.sizes.begin();
  return {.first = std::accumulate(begin, begin + group, std::int64_t{0}),
          .count = side.sizes[as_index(group)]};
}

std::int64_t group_of_row(const LayerShape& shape, const StepValues::Side& side, std::int64_t row) {
  if (!shape.grouped) return 0;
  std::int64_t group = 0;
  for (std::int64_t end = side.sizes[0]; row >= end; end += side.sizes[as_index(group)]) ++group;
  return group;
}

// The side of some rows as those of one group.
reference::LayerSide side_of_rows(const StepValues::Side& side, GroupRows rows) {
  const auto part = [&](const std::vector<float>& of) {
    if (of.empty()) return Numbers{};
    const auto from = of.begin() + rows.first;
    return Numbers(from, from + rows.count);
  };
  return {.probabilities = part(side.probabilities), .scales = part(side.scales)};
}

class SampleOfStep {
 public:
  SampleOfStep(const PlannedStep& step, const StepLayers& layers,
               const std::vector<DrawnTensor>& parameters, const StepValues& given,
               const StoredRows& stored, const FloatSample& sample)
      : step_(step),
        layers_(layers),
        parameters_(parameters),
        given_(given),
        stored_(stored),
        sample_(sample),
        table_(step.view().table()),
        cells_(table_),
        contributions_(layers.parameters().size()) {
    result.gradients.resize(layers.parameters().size());
    result.grad_inputs.resize(cells_.count());
    for (auto& of_parameter : contributions_) of_parameter.resize(as_index(microbatches()));
  }

  void run() {
    for (std::size_t number = 0; number < layers_.all().size(); ++number) {
      result.sides.emplace_back(as_index(microbatches()));
      take_rows(number);
      take_columns(number);
    }
    add_up();
  }

  SampledReference result;

 private:
  // A row, or several that are looked at together.
  struct RowOf {
    std::int32_t microbatch = 0;
    std::int64_t row = 0;
    std::int64_t count = 1;
  };
  // The errors of the rows of one tensor.
  struct Rows {
    Numbers should;
    Numbers sizes;
    std::vector<float> is;
    std::int64_t columns = 0;
    double bound = 0;
  };

  [[nodiscard]] std::int32_t microbatches() const { return table_.microbatches(); }
  [[nodiscard]] const StepLayer& layer(std::size_t number) const { return layers_.all()[number]; }
  [[nodiscard]] const StepValues::Side& side(std::size_t number, std::int32_t microbatch) const {
    return given_.sides[number][MicrobatchId(microbatch).index()];
  }

  void take_rows(std::size_t number) {
    const LayerShape& shape = layer(number).shape;
    std::map<std::int64_t, std::vector<RowOf>> by_group;
    whole_ = true;
    for (std::int32_t m = 0; m < microbatches(); ++m) {
      const std::int64_t live = live_rows(shape, side(number, m));
      whole_ = whole_ && live <= sample_.count;
      for (const RowOf& of : rows_in_sample(shape, m, live)) {
        by_group[group_of_row(shape, side(number, m), of.row)].push_back(of);
        compare_given(number, of);
      }
    }
    if (whole_ && has_norm(shape.kind)) begin_norms(number);
    for (const auto& [group, rows] : by_group) {
      load(number, group);
      for (const RowOf& of : rows) take_row(number, of);
    }
    for (auto& [key, rows] : handed_on_) tell(key.first, key.second, rows);
    handed_on_.clear();
  }

  // An attention's rows are looked at by whole sequences.
  [[nodiscard]] std::vector<RowOf> rows_in_sample(const LayerShape& shape, std::int32_t m,
                                                  std::int64_t live) const {
    const std::int64_t together = reference::rows_of_one_result(form_of(shape));
    const std::uint64_t stream = stream_of_rows(m);
    std::vector<RowOf> rows;
    for (const std::int64_t at : is_attention(shape.kind)
                                     ? parts_of_sample(sample_, live, live / together, stream)
                                     : sample_.of(live, stream)) {
      rows.push_back({.microbatch = m, .row = at * together, .count = together});
    }
    return rows;
  }

  // The step's own inputs, which the first layers read.
  void compare_given(std::size_t number, const RowOf& rows) {
    const StepLayer& of = layer(number);
    const std::uint32_t cell = cells_.of(of.rank, of.chunk, rows.microbatch);
    const auto given = [&](bool gradient, const DrawnTensor& drawn, std::int64_t columns) {
      const auto values =
          values_of(drawn, {.first = rows.row * columns, .count = rows.count * columns});
      const Numbers should = widened(values);
      note(number, rows, gradient, should, should, stored_rows(number, rows, gradient),
           error_bound(of.shape.type));
    };
    if (!next_to(number, -1)) given(false, given_.inputs[cell], of.shape.hidden);
    if (!next_to(number, 1)) {
      given(true, given_.grad_outputs[cell], output_columns(of.shape));
    }
  }

  [[nodiscard]] std::vector<float> stored_rows(std::size_t number, const RowOf& of,
                                               bool gradient) const {
    return stored_.operands(number, of.microbatch, gradient, of.row, of.count);
  }

  // The weights of a group as those of a layer of one group.
  void load(std::size_t number, std::int64_t group) {
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(weights_, role);
      into.clear();
      const std::uint32_t parameter = layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      const std::int64_t elements = layers_.parameters()[parameter].elements;
      into.reserve(as_index(elements));
      append(into, parameters_[parameter], {.first = group * elements, .count = elements});
    }
  }

  void take_row(std::size_t number, const RowOf& of) {
    const LayerShape& shape = layer(number).shape;
    reference::LayerForm form = form_of(shape);
    form.tokens = of.count;
    form.groups = 1;
    const reference::LayerSide side =
        side_of_rows(this->side(number, of.microbatch), {.first = of.row, .count = of.count});
    const Numbers input = widened(stored_rows(number, of, false));
    const Numbers grad_output = widened(stored_rows(number, of, true));
    reference::LayerRun run{.form = form, .weights = weights_, .side = side, .input = input};
    std::vector<reference::Edge> ways;
    const auto forward = [&] {
      reference::Edges edges{.other_way = ways};
      return reference::forward(form, weights_, side, input, reference::Rounding::AsStored, &edges);
    };
    reference::LayerForward made = forward();
    if (const auto reader = next_to(number, 1)) {
      const auto is = stored_rows(*reader, of, false);
      const double bound = bound_between(number, *reader);
      if (settle(run, ways, {made.output, is, sizes_in(made.output, shape.type), bound})) {
        made = forward();
      }
      note(*reader, of, false, made.output, made.output, is, bound);
    }
    run.grad_output = &grad_output;
    take_gradient(number, of, run, made, std::move(ways));
  }

  void take_gradient(std::size_t number, const RowOf& of, const reference::LayerRun& run,
                     const reference::LayerForward& made, std::vector<reference::Edge> ways) {
    const DataType type = layer(number).shape.type;
    const auto backward = [&](const reference::LayerForward& saved) {
      reference::Edges edges{.other_way = ways};
      return reference::backward(run.form, run.weights, run.side, run.input, saved,
                                 *run.grad_output, reference::Rounding::AsStored, &edges,
                                 reference::Wanted::InputGradient);
    };
    reference::LayerBackward back = backward(made);
    const std::optional<std::size_t> reader = next_to(number, -1);
    const std::uint32_t cell = cells_.of(layer(number).rank, layer(number).chunk, of.microbatch);
    const auto is = reader ? stored_rows(*reader, of, true) : given_out(cell, of);
    if (!is.empty()) {
      const double bound = reader ? bound_between(number, *reader) : error_bound(type);
      const Numbers sizes = sizes_in(back.grad_input_magnitudes, type);
      if (settle(run, ways, {back.grad_input, is, sizes, bound})) {
        reference::Edges edges{.other_way = ways};
        back = backward(reference::forward(run.form, run.weights, run.side, run.input,
                                           reference::Rounding::AsStored, &edges));
      }
      if (reader) {
        note(*reader, of, true, back.grad_input, back.grad_input_magnitudes, is, bound);
      } else {
        give_out(cell, of, back);
      }
    }
    take_sides(number, of, back);
    if (whole_ && has_norm(layer(number).shape.kind)) add_norms(number, of.microbatch, back);
  }

  // Empty if it does not leave the step.
  [[nodiscard]] std::vector<float> given_out(std::uint32_t cell, const RowOf& of) const {
    std::vector<float> all;
    for (std::int64_t row = of.row; row < of.row + of.count; ++row) {
      const std::vector<float> one = stored_.given_out(cell, row);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  // Tells whether roundings go the engine's way from here on.
  bool settle(const reference::LayerRun& run, std::vector<reference::Edge>& ways,
              const reference::Made& made) {
    if (relative_error(made.should, made.is, made.sizes) <= made.bound) return false;
    if (settled_ == kMostSettled) return false;
    ++settled_;
    const auto more = reference::other_ways(run, ways, made);
    result.other_ways += more.size();
    ways.insert(ways.end(), more.begin(), more.end());
    return !more.empty();
  }

  [[nodiscard]] double bound_between(std::size_t maker, std::size_t reader) const {
    return std::max(error_bound(layer(maker).shape.type), error_bound(layer(reader).shape.type));
  }

  // The layer behind (1) or in front of (-1) another in its pipeline, nullopt at either end; chunks
  // may have no layers.
  [[nodiscard]] std::optional<std::size_t> next_to(std::size_t number, std::int32_t by) const {
    const StepLayer& of = layer(number);
    const std::int32_t at = of.layer + by;
    if (at >= 0 && at < table_.layers(of.rank, of.chunk)) {
      return layers_.number(of.rank, of.chunk, at);
    }
    const StageMap& map = *step_.replayed().map;
    StageId stage = map.stage_of(of.rank, of.chunk);
    for (stage = by > 0 ? map.after(stage) : map.before(stage); stage != kNoStage;
         stage = by > 0 ? map.after(stage) : map.before(stage)) {
      const StageMap::Place& home = map.home(stage);
      const std::int32_t count = table_.layers(home.rank, home.chunk);
      if (count > 0) return layers_.number(home.rank, home.chunk, by > 0 ? 0 : count - 1);
    }
    return std::nullopt;
  }

  void note(std::size_t reader, const RowOf& of, bool gradient, const Numbers& should,
            const Numbers& sizes, const std::vector<float>& is, double bound) {
    Rows& rows = handed_on_[{{of.microbatch, gradient}, reader}];
    const Numbers relative_to = sizes_in(sizes, layer(reader).shape.type);
    rows.should.insert(rows.should.end(), should.begin(), should.end());
    rows.sizes.insert(rows.sizes.end(), relative_to.begin(), relative_to.end());
    rows.is.insert(rows.is.end(), is.begin(), is.end());
    rows.columns = std::ssize(should) / of.count;
    rows.bound = bound;
  }

  void tell(const std::pair<std::int32_t, bool>& of, std::size_t reader, const Rows& rows) {
    result.handed_on.push_back(
        {.layer = reader,
         .microbatch = of.first,
         .gradient = of.second,
         .error = relative_error(rows.should, rows.is, rows.sizes),
         .bound = rows.bound,
         .element_error = worst_element(rows.should, rows.is, rows.sizes, rows.columns),
         .elements = std::ssize(rows.should)});
  }

  void give_out(std::uint32_t cell, const RowOf& of, const reference::LayerBackward& back) {
    SampledTensor& tensor = result.grad_inputs[cell];
    tensor.columns = std::ssize(back.grad_input) / of.count;
    for (std::int64_t i = 0; i < std::ssize(back.grad_input); ++i) {
      add_element(tensor, of.row * tensor.columns + i, back.grad_input[as_index(i)],
                  back.grad_input_magnitudes[as_index(i)]);
    }
  }

  void take_sides(std::size_t number, const RowOf& of, const reference::LayerBackward& back) {
    auto& sides = result.sides[number][MicrobatchId(of.microbatch).index()];
    if (!back.grad_probabilities.empty()) {
      add_element(sides.probabilities, of.row, back.grad_probabilities[0],
                  back.probability_magnitudes[0]);
    }
    if (!back.grad_scales.empty()) {
      add_element(sides.scales, of.row, back.grad_scales[0], back.grad_scales[0]);
    }
  }

  static void add_element(SampledTensor& tensor, std::int64_t at, double should, double size) {
    tensor.at.push_back(at);
    tensor.should.push_back(should);
    tensor.sizes.push_back(size);
  }

  // Calls visit(parameter, gradient) of a layer's norm.
  template <typename Visit>
  void for_each_norm(std::size_t number, Visit visit) const {
    for (const Role role : {Role::NormWeight, Role::NormBias}) {
      visit(layer(number).parameter[as_index(role)], role);
    }
  }

  void begin_norms(std::size_t number) {
    for_each_norm(number, [&](std::uint32_t parameter, Role) {
      const auto elements = as_index(layers_.parameters()[parameter].elements);
      SampledTensor& tensor = result.gradients[parameter];
      tensor.at.resize(elements);
      std::iota(tensor.at.begin(), tensor.at.end(), std::int64_t{0});
      tensor.columns = std::ssize(tensor.at);
      for (Numbers& one : contributions_[parameter]) one.assign(elements, 0);
    });
  }

  void add_norms(std::size_t number, std::int32_t microbatch, reference::LayerBackward& back) {
    for_each_norm(number, [&](std::uint32_t parameter, Role role) {
      Numbers& sum = contributions_[parameter][MicrobatchId(microbatch).index()];
      const Numbers& one = of_role(back.grads, role);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    });
  }

  void take_columns(std::size_t number) {
    const LayerShape& shape = layer(number).shape;
    if (is_attention(shape.kind)) return take_heads(number);
    std::map<std::int64_t, std::vector<std::int64_t>> by_group;
    for (const std::int64_t at : sample_.of(shape.groups * shape.ffn, stream_of_columns(number))) {
      by_group[at / shape.ffn].push_back(at % shape.ffn);
    }
    for (const auto& [group, columns] : by_group) {
      load_columns(number, group, columns);
      for (std::int32_t m = 0; m < microbatches(); ++m) {
        take_columns_of(number, group, columns, m);
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
  void load_columns(std::size_t number, std::int64_t group,
                    const std::vector<std::int64_t>& columns) {
    const LayerShape& shape = layer(number).shape;
    const std::vector<std::int64_t> rows = made_by_first(shape, columns);
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(weights_, role);
      into.clear();
      const std::uint32_t parameter = layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      const std::int64_t begin = group * layers_.parameters()[parameter].elements;
      const auto take = [&](const Slice& slice) {
        append(into, parameters_[parameter], slice);
        if (is_of_norm(role)) return;
        auto& at = result.gradients[parameter].at;
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
        result.gradients[parameter].columns = shape.hidden;
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

  void take_columns_of(std::size_t number, std::int64_t group,
                       const std::vector<std::int64_t>& columns, std::int32_t m) {
    const LayerShape& shape = layer(number).shape;
    const GroupRows rows = rows_of_group(shape, side(number, m), group);
    reference::LayerForm form = form_of(shape);
    form.tokens = rows.count;
    form.groups = 1;
    form.ffn = std::ssize(columns);
    reference::LayerWeights grads = weights_;  // zeros of their sizes, if the group has no rows
    for (const Role role : kHalfRoles) std::ranges::fill(of_role(grads, role), 0.0);
    if (rows.count > 0) {
      const auto input = widened(stored_.operands(number, m, false, rows.first, rows.count));
      auto grad_output = widened(stored_.operands(number, m, true, rows.first, rows.count));
      if (!is_mlp(shape.kind)) grad_output = picked(grad_output, shape.ffn, columns);
      const auto side = side_of_rows(this->side(number, m), rows);
      const auto saved =
          reference::forward(form, weights_, side, input, reference::Rounding::AsStored);
      grads = reference::backward(form, weights_, side, input, saved, grad_output,
                                  reference::Rounding::AsStored, nullptr,
                                  reference::Wanted::WeightGradients)
                  .grads;
    }
    for (const Role role : {Role::First, Role::FirstBias, Role::Second, Role::SecondBias}) {
      const std::uint32_t parameter = layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      Numbers& to = contributions_[parameter][MicrobatchId(m).index()];
      to.insert(to.end(), of_role(grads, role).begin(), of_role(grads, role).end());
    }
  }

  // The weights of a kv head and of the heads that read it are those of a layer by themselves: no
  // score has anything of another kv head's. Its columns in the sample are looked at.
  void take_heads(std::size_t number) {
    const LayerShape& shape = layer(number).shape;
    const std::int64_t columns = second_columns(shape);
    bool first = true;
    for (const std::int64_t kv_head :
         parts_of_sample(sample_, columns, shape.kv_heads, stream_of_heads(number))) {
      const SampledHeads heads(shape, kv_head,
                               sample_.of(columns / shape.kv_heads, stream_of_columns(number)));
      load_heads(number, heads, first);
      for (std::int32_t m = 0; m < microbatches(); ++m) take_heads_of(number, heads, m, first);
      first = false;
    }
  }

  // Every kv head's layer has the whole bias of the second product, which is looked at once.
  void load_heads(std::size_t number, const SampledHeads& heads, bool first) {
    const std::int64_t hidden = layer(number).shape.hidden;
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(weights_, role);
      into.clear();
      const std::uint32_t parameter = layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      for (const Slice& slice : heads.weights(role)) append(into, parameters_[parameter], slice);
      SampledTensor& tensor = result.gradients[parameter];
      for (const Slice& slice : heads.looked_at(role, first)) {
        for (std::int64_t i = 0; i < slice.count; ++i) {
          tensor.at.push_back(slice.first + i * slice.step);
        }
      }
      if (role == Role::First || role == Role::SecondBias) tensor.columns = hidden;
    }
  }

  void take_heads_of(std::size_t number, const SampledHeads& heads, std::int32_t m, bool first) {
    const LayerShape& shape = layer(number).shape;
    const reference::LayerForm form = heads.form(form_of(shape));
    const Numbers input = widened(stored_.operands(number, m, false, 0, shape.tokens));
    const Numbers grad_output = widened(stored_.operands(number, m, true, 0, shape.tokens));
    const auto saved = reference::forward(form, weights_, {}, input, reference::Rounding::AsStored);
    const auto grads = reference::backward(form, weights_, {}, input, saved, grad_output,
                                           reference::Rounding::AsStored, nullptr,
                                           reference::Wanted::WeightGradients)
                           .grads;
    for (const Role role : {Role::First, Role::FirstBias, Role::Second, Role::SecondBias}) {
      const std::uint32_t parameter = layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      Numbers& to = contributions_[parameter][MicrobatchId(m).index()];
      const Numbers& from = of_role(grads, role);
      for (const std::int64_t at : heads.places(role, first)) to.push_back(from[as_index(at)]);
    }
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

  void add_up() {
    GradientSums sums = sums_of(step_, layers_, contributions_);
    for (std::uint32_t p = 0; p < layers_.parameters().size(); ++p) {
      SampledTensor& tensor = result.gradients[p];
      tensor.should = std::move(sums.gradients[p]);
      tensor.ascending = std::move(sums.ascending[p]);
      tensor.sizes = std::move(sums.magnitudes[p]);
      const Role role = layers_.parameters()[p].role;
      if (role == Role::FirstBias || role == Role::Second) {
        tensor.columns = std::max<std::int64_t>(1, std::ssize(tensor.at));
      }
    }
    for (auto& of_layer : result.sides) {
      for (auto& side : of_layer) {
        for (SampledTensor* tensor : {&side.probabilities, &side.scales}) {
          tensor->columns = std::max<std::int64_t>(1, std::ssize(tensor->at));
        }
      }
    }
  }

  const PlannedStep& step_;
  const StepLayers& layers_;
  const std::vector<DrawnTensor>& parameters_;
  const StepValues& given_;
  const StoredRows& stored_;
  const FloatSample& sample_;
  const BufferTable& table_;
  Cells cells_;
  reference::LayerWeights weights_;  // of the group at hand
  bool whole_ = false;               // all rows of the layer at hand are in the sample
  std::size_t settled_ = 0;          // rows that were tried the other way
  std::map<std::pair<std::pair<std::int32_t, bool>, std::size_t>, Rows> handed_on_;
  Contributions contributions_;
};

}  // namespace

SampledReference sampled_reference(const PlannedStep& step, const StepLayers& layers,
                                   const std::vector<DrawnTensor>& parameters,
                                   const StepValues& given, const StoredRows& stored,
                                   const FloatSample& sample) {
  SampleOfStep of_step(step, layers, parameters, given, stored, sample);
  of_step.run();
  return std::move(of_step.result);
}

}  // namespace capo::run

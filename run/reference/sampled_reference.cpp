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

// Kept apart from the streams of numbers by its highest bit.
std::uint64_t stream_of_rows(std::int32_t microbatch) {
  return (std::uint64_t{1} << 63) + static_cast<std::uint64_t>(microbatch);
}

std::int64_t group_of_row(const LayerShape& shape, const StepValues::Side& side, std::int64_t row) {
  if (!shape.grouped) return 0;
  std::int64_t group = 0;
  for (std::int64_t end = side.sizes[0]; row >= end; end += side.sizes[as_index(group)]) ++group;
  return group;
}

class SampleOfStep {
 public:
  SampleOfStep(const PlannedStep& step, SampledStep& of)
      : step_(step), of_(of), table_(step.view().table()), cells_(table_) {
    of_.result.gradients.resize(of_.layers.parameters().size());
    of_.result.grad_inputs.resize(cells_.count());
    of_.contributions.resize(of_.layers.parameters().size());
    for (auto& of_parameter : of_.contributions) of_parameter.resize(as_index(of_.microbatches));
  }

  void run() {
    for (std::size_t number = 0; number < of_.layers.all().size(); ++number) {
      of_.result.sides.emplace_back(as_index(of_.microbatches));
      take_rows(number);
      take_columns(of_, number);
    }
    add_up();
  }

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

  void take_rows(std::size_t number) {
    const LayerShape& shape = of_.layer(number).shape;
    std::map<std::int64_t, std::vector<RowOf>> by_group;
    whole_ = true;
    for (std::int32_t m = 0; m < of_.microbatches; ++m) {
      const std::int64_t live = live_rows(shape, of_.side(number, m));
      whole_ = whole_ && live <= of_.sample.count;
      for (const RowOf& of : rows_in_sample(shape, m, live)) {
        by_group[group_of_row(shape, of_.side(number, m), of.row)].push_back(of);
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
                                     ? parts_of_sample(of_.sample, live, live / together, stream)
                                     : of_.sample.of(live, stream)) {
      rows.push_back({.microbatch = m, .row = at * together, .count = together});
    }
    return rows;
  }

  // The step's own inputs, which the first layers read.
  void compare_given(std::size_t number, const RowOf& rows) {
    const StepLayer& of = of_.layer(number);
    const std::uint32_t cell = cells_.of(of.rank, of.chunk, rows.microbatch);
    const auto given = [&](bool gradient, const DrawnTensor& drawn, std::int64_t columns) {
      const auto values =
          values_of(drawn, {.first = rows.row * columns, .count = rows.count * columns});
      const Numbers should = widened(values);
      note(number, rows, gradient, should, should, stored_rows(number, rows, gradient),
           error_bound(of.shape.type));
    };
    if (!next_to(number, -1)) given(false, of_.given.inputs[cell], of.shape.hidden);
    if (!next_to(number, 1)) {
      given(true, of_.given.grad_outputs[cell], output_columns(of.shape));
    }
  }

  [[nodiscard]] std::vector<float> stored_rows(std::size_t number, const RowOf& of,
                                               bool gradient) const {
    return of_.stored.operands(number, of.microbatch, gradient, of.row, of.count);
  }

  // The weights of a group as those of a layer of one group.
  void load(std::size_t number, std::int64_t group) {
    for (const Role role : kHalfRoles) {
      Numbers& into = of_role(of_.weights, role);
      into.clear();
      const std::uint32_t parameter = of_.layer(number).parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      const std::int64_t elements = of_.layers.parameters()[parameter].elements;
      into.reserve(as_index(elements));
      append(into, of_.parameters[parameter], {.first = group * elements, .count = elements});
    }
  }

  void take_row(std::size_t number, const RowOf& of) {
    const LayerShape& shape = of_.layer(number).shape;
    reference::LayerForm form = form_of(shape);
    form.tokens = of.count;
    form.groups = 1;
    const reference::LayerSide side =
        side_of_rows(of_.side(number, of.microbatch), {.first = of.row, .count = of.count});
    const Numbers input = widened(stored_rows(number, of, false));
    const Numbers grad_output = widened(stored_rows(number, of, true));
    reference::LayerRun run{.form = form, .weights = of_.weights, .side = side, .input = input};
    std::vector<reference::Edge> ways;
    const auto forward = [&] {
      reference::Edges edges{.other_way = ways};
      return reference::forward(form, of_.weights, side, input, reference::Rounding::AsStored,
                                &edges);
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
    const DataType type = of_.layer(number).shape.type;
    const auto backward = [&](const reference::LayerForward& saved) {
      reference::Edges edges{.other_way = ways};
      return reference::backward(run.form, run.weights, run.side, run.input, saved,
                                 *run.grad_output, reference::Rounding::AsStored, &edges,
                                 reference::Wanted::InputGradient);
    };
    reference::LayerBackward back = backward(made);
    const std::optional<std::size_t> reader = next_to(number, -1);
    const std::uint32_t cell =
        cells_.of(of_.layer(number).rank, of_.layer(number).chunk, of.microbatch);
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
    if (whole_ && has_norm(of_.layer(number).shape.kind)) add_norms(number, of.microbatch, back);
  }

  // Empty if it does not leave the step.
  [[nodiscard]] std::vector<float> given_out(std::uint32_t cell, const RowOf& of) const {
    std::vector<float> all;
    for (std::int64_t row = of.row; row < of.row + of.count; ++row) {
      const std::vector<float> one = of_.stored.given_out(cell, row);
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
    of_.result.other_ways += more.size();
    ways.insert(ways.end(), more.begin(), more.end());
    return !more.empty();
  }

  [[nodiscard]] double bound_between(std::size_t maker, std::size_t reader) const {
    return std::max(error_bound(of_.layer(maker).shape.type),
                    error_bound(of_.layer(reader).shape.type));
  }

  // The layer behind (1) or in front of (-1) another in its pipeline, nullopt at either end; chunks
  // may have no layers.
  [[nodiscard]] std::optional<std::size_t> next_to(std::size_t number, std::int32_t by) const {
    const StepLayer& of = of_.layer(number);
    const std::int32_t at = of.layer + by;
    if (at >= 0 && at < table_.layers(of.rank, of.chunk)) {
      return of_.layers.number(of.rank, of.chunk, at);
    }
    const StageMap& map = *step_.replayed().map;
    StageId stage = map.stage_of(of.rank, of.chunk);
    for (stage = by > 0 ? map.after(stage) : map.before(stage); stage != kNoStage;
         stage = by > 0 ? map.after(stage) : map.before(stage)) {
      const StageMap::Place& home = map.home(stage);
      const std::int32_t count = table_.layers(home.rank, home.chunk);
      if (count > 0) return of_.layers.number(home.rank, home.chunk, by > 0 ? 0 : count - 1);
    }
    return std::nullopt;
  }

  void note(std::size_t reader, const RowOf& of, bool gradient, const Numbers& should,
            const Numbers& sizes, const std::vector<float>& is, double bound) {
    Rows& rows = handed_on_[{{of.microbatch, gradient}, reader}];
    const Numbers relative_to = sizes_in(sizes, of_.layer(reader).shape.type);
    rows.should.insert(rows.should.end(), should.begin(), should.end());
    rows.sizes.insert(rows.sizes.end(), relative_to.begin(), relative_to.end());
    rows.is.insert(rows.is.end(), is.begin(), is.end());
    rows.columns = std::ssize(should) / of.count;
    rows.bound = bound;
  }

  void tell(const std::pair<std::int32_t, bool>& of, std::size_t reader, const Rows& rows) {
    of_.result.handed_on.push_back(
        {.layer = reader,
         .microbatch = of.first,
         .gradient = of.second,
         .error = relative_error(rows.should, rows.is, rows.sizes),
         .bound = rows.bound,
         .element_error = worst_element(rows.should, rows.is, rows.sizes, rows.columns),
         .elements = std::ssize(rows.should)});
  }

  void give_out(std::uint32_t cell, const RowOf& of, const reference::LayerBackward& back) {
    SampledTensor& tensor = of_.result.grad_inputs[cell];
    tensor.columns = std::ssize(back.grad_input) / of.count;
    for (std::int64_t i = 0; i < std::ssize(back.grad_input); ++i) {
      add_element(tensor, of.row * tensor.columns + i, back.grad_input[as_index(i)],
                  back.grad_input_magnitudes[as_index(i)]);
    }
  }

  void take_sides(std::size_t number, const RowOf& of, const reference::LayerBackward& back) {
    auto& sides = of_.result.sides[number][MicrobatchId(of.microbatch).index()];
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
      visit(of_.layer(number).parameter[as_index(role)], role);
    }
  }

  void begin_norms(std::size_t number) {
    for_each_norm(number, [&](std::uint32_t parameter, Role) {
      const auto elements = as_index(of_.layers.parameters()[parameter].elements);
      SampledTensor& tensor = of_.result.gradients[parameter];
      tensor.at.resize(elements);
      std::iota(tensor.at.begin(), tensor.at.end(), std::int64_t{0});
      tensor.columns = std::ssize(tensor.at);
      for (Numbers& one : of_.contributions[parameter]) one.assign(elements, 0);
    });
  }

  void add_norms(std::size_t number, std::int32_t microbatch, reference::LayerBackward& back) {
    for_each_norm(number, [&](std::uint32_t parameter, Role role) {
      Numbers& sum = of_.contributions[parameter][MicrobatchId(microbatch).index()];
      const Numbers& one = of_role(back.grads, role);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    });
  }

  void add_up() {
    GradientSums sums = sums_of(step_, of_.layers, of_.contributions);
    for (std::uint32_t p = 0; p < of_.layers.parameters().size(); ++p) {
      SampledTensor& tensor = of_.result.gradients[p];
      tensor.should = std::move(sums.gradients[p]);
      tensor.ascending = std::move(sums.ascending[p]);
      tensor.sizes = std::move(sums.magnitudes[p]);
      const Role role = of_.layers.parameters()[p].role;
      if (role == Role::FirstBias || role == Role::Second) {
        tensor.columns = std::max<std::int64_t>(1, std::ssize(tensor.at));
      }
    }
    for (auto& of_layer : of_.result.sides) {
      for (auto& side : of_layer) {
        for (SampledTensor* tensor : {&side.probabilities, &side.scales}) {
          tensor->columns = std::max<std::int64_t>(1, std::ssize(tensor->at));
        }
      }
    }
  }

  const PlannedStep& step_;
  SampledStep& of_;
  const BufferTable& table_;
  Cells cells_;
  bool whole_ = false;       // all rows of the layer at hand are in the sample
  std::size_t settled_ = 0;  // rows that were tried the other way
  std::map<std::pair<std::pair<std::int32_t, bool>, std::size_t>, Rows> handed_on_;
};

}  // namespace

SampledReference sampled_reference(const PlannedStep& step, const StepLayers& layers,
                                   const std::vector<DrawnTensor>& parameters,
                                   const StepValues& given, const StoredRows& stored,
                                   const FloatSample& sample) {
  SampledStep of{.layers = layers,
                 .parameters = parameters,
                 .given = given,
                 .stored = stored,
                 .sample = sample,
                 .microbatches = step.view().table().microbatches()};
  SampleOfStep(step, of).run();
  return std::move(of.result);
}

}  // namespace capo::run

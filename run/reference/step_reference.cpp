#include "run/reference/step_reference.h"

#include "core/base/index.h"
#include "run/reference/compare.h"
#include "run/reference/other_ways.h"
#include "run/reference/step_parts.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace capo::run {

namespace {

using Doubles = std::vector<double>;
constexpr auto kStored = reference::Rounding::AsStored;

class Reference {
 public:
  Reference(const PlannedStep& step, const StepLayers& layers,
            const std::vector<std::vector<float>>& parameters, const StepValues& given,
            const StoredOperands& stored)
      : step_(step),
        layers_(layers),
        given_(given),
        stored_(stored),
        table_(step.view().table()),
        cells_(table_),
        contributions_(layers.parameters().size()),
        magnitudes_(layers.parameters().size()) {
    for (std::size_t number = 0; number < layers.all().size(); ++number) {
      first_.push_back(parts_.size());
      for (const Part& part : parts_of(number)) add(part, parameters);
      result.sides.emplace_back(as_index(table_.microbatches()));
    }
    first_.push_back(parts_.size());
    for (auto& of_parameter : contributions_) {
      of_parameter.resize(as_index(table_.microbatches()));
    }
    result.grad_inputs.resize(cells_.count());
    result.grad_input_magnitudes.resize(cells_.count());
  }

  void run() {
    const StageMap& map = *step_.replayed().map;
    for (std::int32_t m = 0; m < table_.microbatches(); ++m) {
      for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
        if (map.before(stage) != kNoStage) continue;
        Handed made;
        for (std::int32_t at = stage; at != kNoStage; at = map.after(at)) {
          made = forward_through(map.home(at), m, std::move(made), at == stage);
        }
      }
      for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
        if (map.after(stage) != kNoStage) continue;
        Handed made;
        for (std::int32_t at = stage; at != kNoStage; at = map.before(at)) {
          made = backward_through(map.home(at), m, std::move(made), at == stage);
        }
      }
    }
    GradientSums sums = sums_of(step_, layers_, contributions_);
    for (std::uint32_t parameter = 0; parameter < magnitudes_.size(); ++parameter) {
      if (!magnitudes_[parameter].empty())
        sums.magnitudes[parameter] = std::move(magnitudes_[parameter]);
    }
    reduce(step_, layers_, sums);
    result.gradients = std::move(sums.gradients);
    result.ascending = std::move(sums.ascending);
    result.magnitudes = std::move(sums.magnitudes);
  }

  StepReference result;

 private:
  // A layer, or a half of a transformer layer, which is a layer of its own here.
  struct Part {
    std::size_t layer = 0;
    reference::LayerForm form;
    bool is_attention_half = false;
  };
  struct Saved {
    Doubles input;
    Doubles grad_output;
    reference::LayerForward forward;
  };
  // The values that go from one layer to the next.
  struct Handed {
    Doubles values;
    Doubles sizes;                    // what its errors are relative to
    std::optional<std::size_t> from;  // the part that made it; nullopt: it is given
    bool gradient = false;
  };

  [[nodiscard]] std::vector<Part> parts_of(std::size_t number) const {
    const LayerShape& shape = layers_.all()[number].shape;
    if (!has_two_halves(shape.kind)) return {{.layer = number, .form = form_of(shape)}};
    Part attention{number, form_of(attention_half(shape)), true};
    Part second{number, form_of(second_half(shape))};
    attention.form.half = second.form.half = true;
    return {attention, second};
  }

  void add(const Part& part, const std::vector<std::vector<float>>& parameters) {
    parts_.push_back(part);
    reference::LayerWeights& weights = weights_.emplace_back();
    for (const Role role : kHalfRoles) {
      const std::uint32_t parameter = parameter_of(part, role);
      if (parameter != kNoParameter) of_role(weights, role) = widened(parameters[parameter]);
    }
    saved_.emplace_back(as_index(table_.microbatches()));
    other_ways_.emplace_back(as_index(table_.microbatches()));
  }

  [[nodiscard]] std::uint32_t parameter_of(const Part& part, Role role) const {
    const StepLayer& layer = layers_.all()[part.layer];
    if (!part.is_attention_half) return layer.parameter[as_index(role)];
    if (role == Role::Router) return kNoParameter;
    return layer.parameter[as_index(role_in_first_half(role))];
  }

  [[nodiscard]] const LayerShape& shape_of(std::size_t part) const {
    return layers_.all()[parts_[part].layer].shape;
  }
  [[nodiscard]] bool is_last_of_layer(std::size_t part) const {
    return first_[parts_[part].layer + 1] == part + 1;
  }
  [[nodiscard]] bool is_first_of_layer(std::size_t part) const {
    return first_[parts_[part].layer] == part;
  }

  // An attention half has no tensors that come with a microbatch.
  [[nodiscard]] reference::LayerSide side_of(std::size_t part, std::int32_t microbatch) const {
    if (parts_[part].is_attention_half) return {};
    const std::size_t number = parts_[part].layer;
    const StepValues::Side& side = given_.sides[number][MicrobatchId(microbatch).index()];
    return {.sizes = side.sizes,
            .probabilities = widened(side.probabilities),
            .scales = widened(side.scales),
            .choices = stored_.choices.empty()
                           ? std::vector<std::int64_t>()
                           : stored_.choices[number][MicrobatchId(microbatch).index()]};
  }

  // Rows beyond the live ones become zero, since they stand for nothing.
  [[nodiscard]] Doubles rows_of(std::size_t number, std::int32_t microbatch,
                                const std::vector<float>& values, std::int64_t columns) const {
    const LayerShape& shape = layers_.all()[number].shape;
    const auto& side = given_.sides[number][MicrobatchId(microbatch).index()];
    Doubles rows = widened(values);
    std::fill(rows.begin() + live_rows(shape, side) * columns, rows.end(), 0.0);
    return rows;
  }

  // Compares the values that a part read with those that it should have read.
  Doubles read(std::size_t part, std::int32_t microbatch, const std::vector<float>& values,
               std::int64_t columns, Handed should) {
    const std::size_t number = parts_[part].layer;
    Doubles is = rows_of(number, microbatch, values, columns);
    const DataType type = shape_of(part).type;
    const double bound = std::max(error_bound(shape_of(part)), bound_of(should));
    const double error =
        settle(should, microbatch, std::vector<float>(is.begin(), is.end()), type, bound);
    result.handed_on.push_back(
        {.layer = number,
         .microbatch = microbatch,
         .gradient = should.gradient,
         .between = should.gradient ? !is_last_of_layer(part) : !is_first_of_layer(part),
         .error = error,
         .bound = bound});
    forget(should, microbatch);
    return is;
  }

  [[nodiscard]] double bound_of(const Handed& made) const {
    return made.from ? error_bound(shape_of(*made.from)) : 0;
  }

  // The error of what was made. If it is beyond its bound, roundings of the layer that made it go
  // the engine's way, where they may, and all that it makes is made anew.
  double settle(Handed& made, std::int32_t microbatch, const std::vector<float>& is, DataType type,
                double bound) {
    const Doubles sizes = sizes_in(made.sizes, type);
    const double error = relative_error(made.values, is, sizes);
    if (error <= bound || !made.from) return error;
    const std::size_t part = *made.from;
    const auto m = MicrobatchId(microbatch).index();
    const reference::LayerSide side = side_of(part, microbatch);
    const Saved& saved = saved_[part][m];
    std::vector<reference::Edge>& known = other_ways_[part][m];
    const std::vector<reference::Edge> more =
        reference::other_ways({.form = parts_[part].form,
                               .weights = weights_[part],
                               .side = side,
                               .input = saved.input,
                               .grad_output = made.gradient ? &saved.grad_output : nullptr},
                              known, {made.values, is, sizes, bound});
    if (more.empty()) return error;
    result.other_ways += more.size();
    known.insert(known.end(), more.begin(), more.end());
    const bool gradient = made.gradient;
    made = forward_of(part, microbatch);
    if (gradient) made = backward_of(part, microbatch);
    return relative_error(made.values, is, sizes_in(made.sizes, type));
  }

  // Makes a part's output of the input that was read.
  Handed forward_of(std::size_t part, std::int32_t microbatch) {
    const auto m = MicrobatchId(microbatch).index();
    Saved& saved = saved_[part][m];
    reference::Edges edges{.other_way = other_ways_[part][m]};
    saved.forward = reference::forward(parts_[part].form, weights_[part], side_of(part, microbatch),
                                       saved.input, kStored, edges_of(edges));
    return {.values = saved.forward.output, .sizes = saved.forward.output, .from = part};
  }

  void ask_choices(std::size_t part, std::int32_t microbatch) {
    const std::int64_t refused = saved_[part][MicrobatchId(microbatch).index()].forward.refused;
    const std::int64_t tokens = shape_of(part).tokens;
    result.handed_on.push_back(
        {.layer = parts_[part].layer,
         .microbatch = microbatch,
         .choices = true,
         .error = static_cast<double>(refused) / static_cast<double>(tokens)});
  }

  static void add_up(const Doubles& one, Doubles& sum) {
    if (one.size() > sum.size()) sum.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
  }

  // Makes a part's gradients of the one that was read.
  Handed backward_of(std::size_t part, std::int32_t microbatch) {
    const auto m = MicrobatchId(microbatch).index();
    const Saved& saved = saved_[part][m];
    reference::Edges edges{.other_way = other_ways_[part][m]};
    reference::LayerBackward back = reference::backward(
        parts_[part].form, weights_[part], side_of(part, microbatch), saved.input, saved.forward,
        saved.grad_output, kStored, edges_of(edges));
    for (const Role role : kHalfRoles) {
      const std::uint32_t parameter = parameter_of(parts_[part], role);
      if (parameter == kNoParameter) continue;
      contributions_[parameter][m] = std::move(of_role(back.grads, role));
      add_up(of_role(back.magnitudes, role), magnitudes_[parameter]);
    }
    result.sides[parts_[part].layer][m] = {.probabilities = std::move(back.grad_probabilities),
                                           .magnitudes = std::move(back.probability_magnitudes),
                                           .scales = std::move(back.grad_scales)};
    return {.values = std::move(back.grad_input),
            .sizes = std::move(back.grad_input_magnitudes),
            .from = part,
            .gradient = true};
  }

  // Null where nothing goes another way, which takes less memory.
  static reference::Edges* edges_of(reference::Edges& edges) {
    return edges.other_way.empty() ? nullptr : &edges;
  }

  Handed forward_through(const StageMap::Place& home, std::int32_t microbatch, Handed made,
                         bool first) {
    const auto m = MicrobatchId(microbatch).index();
    for (std::int32_t at = 0; at < table_.layers(home.rank, home.chunk); ++at) {
      const std::size_t number = layers_.number(home.rank, home.chunk, at);
      const LayerShape& shape = layers_.all()[number].shape;
      if (first && at == 0) {
        made.values = rows_of(
            number, microbatch,
            values_of(given_.inputs[cells_.of(home.rank, home.chunk, microbatch)]), shape.hidden);
        made.sizes = made.values;
      }
      for (std::size_t part = first_[number]; part < first_[number + 1]; ++part) {
        const auto& stored = is_first_of_layer(part) ? stored_.inputs : stored_.sums;
        saved_[part][m].input =
            read(part, microbatch, stored[number][m], shape.hidden, std::move(made));
        made = forward_of(part, microbatch);
      }
      if (has_router(shape)) ask_choices(first_[number + 1] - 1, microbatch);
    }
    return made;
  }

  Handed backward_through(const StageMap::Place& home, std::int32_t microbatch, Handed made,
                          bool last) {
    const auto m = MicrobatchId(microbatch).index();
    const std::uint32_t cell = cells_.of(home.rank, home.chunk, microbatch);
    const std::int32_t layers = table_.layers(home.rank, home.chunk);
    for (std::int32_t at = layers; at-- > 0;) {
      const std::size_t number = layers_.number(home.rank, home.chunk, at);
      const StepLayer& layer = layers_.all()[number];
      const std::int64_t columns = output_columns(layer.shape);
      if (last && at == layers - 1) {
        made.values = rows_of(number, microbatch, values_of(given_.grad_outputs[cell]), columns);
        made.sizes = made.values;
        made.gradient = true;
      }
      for (std::size_t part = first_[number + 1]; part-- > first_[number];) {
        const auto& stored = is_last_of_layer(part) ? stored_.grad_outputs : stored_.sum_gradients;
        saved_[part][m].grad_output =
            read(part, microbatch, stored[number][m], columns, std::move(made));
        made = backward_of(part, microbatch);
      }
    }
    give_out(cell, microbatch, made);
    result.grad_inputs[cell] = made.values;
    result.grad_input_magnitudes[cell] = made.sizes;
    return made;
  }

  // The judge compares what leaves the step; here roundings go the engine's way.
  void give_out(std::uint32_t cell, std::int32_t microbatch, Handed& made) {
    if (stored_.given_out.empty() || stored_.given_out[cell].empty() || !made.from) return;
    std::vector<float> is = stored_.given_out[cell];
    is.resize(made.values.size());  // no row beyond is in use
    const DataType type = shape_of(*made.from).type;
    settle(made, microbatch, is, type, bound_of(made));
    forget(made, microbatch);
  }

  // Whoever made this is not asked again; at real sizes what it read is gigabytes.
  void forget(const Handed& made, std::int32_t microbatch) {
    if (!made.gradient || !made.from) return;
    saved_[*made.from][MicrobatchId(microbatch).index()].grad_output = {};
  }

  const PlannedStep& step_;
  const StepLayers& layers_;
  const StepValues& given_;
  const StoredOperands& stored_;
  const BufferTable& table_;
  Cells cells_;
  std::vector<Part> parts_;                       // layer after layer
  std::vector<std::size_t> first_;                // by layer, and where the last one's parts end
  std::vector<reference::LayerWeights> weights_;  // by part
  std::vector<std::vector<Saved>> saved_;         // by part and microbatch
  std::vector<std::vector<std::vector<reference::Edge>>> other_ways_;  // likewise
  Contributions contributions_;
  // Sums of the absolute values of the terms, by parameter, for those that are sums over rows.
  std::vector<Doubles> magnitudes_;
};

}  // namespace

StepReference reference_of(const PlannedStep& step, const StepLayers& layers,
                           const std::vector<std::vector<float>>& parameters,
                           const StepValues& given, const StoredOperands& stored) {
  Reference of_step(step, layers, parameters, given, stored);
  of_step.run();
  return std::move(of_step.result);
}

}  // namespace capo::run

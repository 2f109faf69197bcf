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
        contributions_(layers.parameters().size()) {
    for (const StepLayer& layer : layers.all()) {
      reference::LayerWeights& weights = weights_.emplace_back();
      for (const Role role : kAllRoles) {
        const std::uint32_t parameter = layer.parameter[as_index(role)];
        if (parameter != kNoParameter) of_role(weights, role) = widened(parameters[parameter]);
      }
      saved_.emplace_back(as_index(table_.microbatches()));
      other_ways_.emplace_back(as_index(table_.microbatches()));
      result.sides.emplace_back(as_index(table_.microbatches()));
    }
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
    result.gradients = std::move(sums.gradients);
    result.ascending = std::move(sums.ascending);
    result.magnitudes = std::move(sums.magnitudes);
  }

  StepReference result;

 private:
  struct Saved {
    Doubles input;
    Doubles grad_output;
    reference::LayerForward forward;
  };
  // The values that go from one layer to the next.
  struct Handed {
    Doubles values;
    Doubles sizes;                    // what its errors are relative to
    std::optional<std::size_t> from;  // the layer that made it; nullopt: it is given
    bool gradient = false;
  };

  [[nodiscard]] reference::LayerSide side_of(std::size_t number, std::int32_t microbatch) const {
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

  // Compares the values that a layer read with those that it should have read.
  Doubles read(std::size_t number, std::int32_t microbatch, const std::vector<float>& values,
               std::int64_t columns, Handed should) {
    Doubles is = rows_of(number, microbatch, values, columns);
    const DataType type = layers_.all()[number].shape.type;
    const double bound = std::max(error_bound(layers_.all()[number].shape), bound_of(should));
    const double error =
        settle(should, microbatch, std::vector<float>(is.begin(), is.end()), type, bound);
    result.handed_on.push_back({.layer = number,
                                .microbatch = microbatch,
                                .gradient = should.gradient,
                                .error = error,
                                .bound = bound});
    forget(should, microbatch);
    return is;
  }

  [[nodiscard]] double bound_of(const Handed& made) const {
    return made.from ? error_bound(layers_.all()[*made.from].shape) : 0;
  }

  // The error of what was made. If it is beyond its bound, roundings of the layer that made it go
  // the engine's way, where they may, and all that it makes is made anew.
  double settle(Handed& made, std::int32_t microbatch, const std::vector<float>& is, DataType type,
                double bound) {
    const Doubles sizes = sizes_in(made.sizes, type);
    const double error = relative_error(made.values, is, sizes);
    if (error <= bound || !made.from) return error;
    const std::size_t number = *made.from;
    const auto m = MicrobatchId(microbatch).index();
    const reference::LayerForm form = form_of(layers_.all()[number].shape);
    const reference::LayerSide side = side_of(number, microbatch);
    const Saved& saved = saved_[number][m];
    std::vector<reference::Edge>& known = other_ways_[number][m];
    const std::vector<reference::Edge> more =
        reference::other_ways({.form = form,
                               .weights = weights_[number],
                               .side = side,
                               .input = saved.input,
                               .grad_output = made.gradient ? &saved.grad_output : nullptr},
                              known, {made.values, is, sizes, bound});
    if (more.empty()) return error;
    result.other_ways += more.size();
    known.insert(known.end(), more.begin(), more.end());
    const bool gradient = made.gradient;
    made = forward_of(number, microbatch);
    if (gradient) made = backward_of(number, microbatch);
    return relative_error(made.values, is, sizes_in(made.sizes, type));
  }

  // Makes a layer's output of the input that was read.
  Handed forward_of(std::size_t number, std::int32_t microbatch) {
    const auto m = MicrobatchId(microbatch).index();
    Saved& saved = saved_[number][m];
    reference::Edges edges{.other_way = other_ways_[number][m]};
    saved.forward =
        reference::forward(form_of(layers_.all()[number].shape), weights_[number],
                           side_of(number, microbatch), saved.input, kStored, edges_of(edges));
    return {.values = saved.forward.output, .sizes = saved.forward.output, .from = number};
  }

  void ask_choices(std::size_t number, std::int32_t microbatch) {
    const std::int64_t refused = saved_[number][MicrobatchId(microbatch).index()].forward.refused;
    const std::int64_t tokens = layers_.all()[number].shape.tokens;
    result.handed_on.push_back(
        {.layer = number,
         .microbatch = microbatch,
         .choices = true,
         .error = static_cast<double>(refused) / static_cast<double>(tokens)});
  }

  // Makes a layer's gradients of the one that was read.
  Handed backward_of(std::size_t number, std::int32_t microbatch) {
    const auto m = MicrobatchId(microbatch).index();
    const StepLayer& layer = layers_.all()[number];
    const Saved& saved = saved_[number][m];
    reference::Edges edges{.other_way = other_ways_[number][m]};
    reference::LayerBackward back = reference::backward(
        form_of(layer.shape), weights_[number], side_of(number, microbatch), saved.input,
        saved.forward, saved.grad_output, kStored, edges_of(edges));
    for (const Role role : kAllRoles) {
      const std::uint32_t parameter = layer.parameter[as_index(role)];
      if (parameter == kNoParameter) continue;
      contributions_[parameter][m] = std::move(of_role(back.grads, role));
    }
    result.sides[number][m] = {.probabilities = std::move(back.grad_probabilities),
                               .magnitudes = std::move(back.probability_magnitudes),
                               .scales = std::move(back.grad_scales)};
    return {.values = std::move(back.grad_input),
            .sizes = std::move(back.grad_input_magnitudes),
            .from = number,
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
      saved_[number][m].input =
          read(number, microbatch, stored_.inputs[number][m], shape.hidden, std::move(made));
      made = forward_of(number, microbatch);
      if (has_router(shape)) ask_choices(number, microbatch);
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
      saved_[number][m].grad_output =
          read(number, microbatch, stored_.grad_outputs[number][m], columns, std::move(made));
      made = backward_of(number, microbatch);
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
    const DataType type = layers_.all()[*made.from].shape.type;
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
  std::vector<reference::LayerWeights> weights_;                       // by layer
  std::vector<std::vector<Saved>> saved_;                              // by layer and microbatch
  std::vector<std::vector<std::vector<reference::Edge>>> other_ways_;  // likewise
  Contributions contributions_;
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

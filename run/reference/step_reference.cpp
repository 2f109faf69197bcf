#include "run/reference/step_reference.h"

#include "core/base/index.h"
#include "run/reference/compare.h"
#include "run/reference/other_ways.h"
#include "run/reference/step_parts.h"

#include <algorithm>
#include <map>
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
    for (const StepValues::Experts& experts : given.experts) {
      for (const std::uint32_t cell : experts.cells) experts_[cell] = &experts;
    }
    result.grad_inputs.resize(cells_.count());
    result.grad_input_magnitudes.resize(cells_.count());
  }

  void run() {
    for (std::int32_t m = 0; m < table_.microbatches(); ++m) {
      go_through(m, Way::Forward);
      go_through(m, Way::Backward);
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
    std::optional<std::size_t> from;  // the part that made it; nullopt: it is given, or of several
    bool gradient = false;
    double bound = 0;  // of the errors of those that made it, if it is of several
  };
  // A cell of experts to which rows of all that they exchange with have yet to come.
  struct Waiting {
    std::int32_t stage = kNoStage;
    Handed made;
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
    return made.from ? error_bound(shape_of(*made.from)) : made.bound;
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

  // Goes through all stages from those that no other stands before; backwards from the last ones.
  void go_through(std::int32_t microbatch, Way way) {
    const StageMap& map = *step_.replayed().map;
    for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
      const std::int32_t maker = way == Way::Forward ? map.before(stage) : map.after(stage);
      if (maker == kNoStage)
        go_on(stage, microbatch, way, given_to(map.home(stage), microbatch, way));
    }
  }

  // Goes on from a stage that is handed something, up to experts whose rows are not all there.
  void go_on(std::int32_t stage, std::int32_t microbatch, Way way, Handed made) {
    for (; stage != kNoStage; stage = next(stage, way)) {
      const StageMap::Place& home = step_.replayed().map->home(stage);
      const std::uint32_t cell = cells_.of(home.rank, home.chunk, microbatch);
      if (const auto experts = experts_.find(cell); experts != experts_.end()) {
        waiting_[cell] = {stage, std::move(made)};
        return compute_together(*experts->second, microbatch, way);
      }
      made = through(home, microbatch, way, std::move(made));
      leave(cell, microbatch, way, made);
    }
  }

  [[nodiscard]] std::int32_t next(std::int32_t stage, Way way) const {
    const StageMap& map = *step_.replayed().map;
    return way == Way::Forward ? map.after(stage) : map.before(stage);
  }

  Handed through(const StageMap::Place& home, std::int32_t microbatch, Way way, Handed made) {
    return way == Way::Forward ? forward_through(home, microbatch, std::move(made))
                               : backward_through(home, microbatch, std::move(made));
  }

  // Experts compute on rows of all, which then go back to whence they came.
  void compute_together(const StepValues::Experts& experts, std::int32_t microbatch, Way way) {
    const auto& cells = experts.cells;
    if (!std::all_of(cells.begin(), cells.end(),
                     [&](auto cell) { return waiting_.contains(cell); }))
      return;
    std::vector<Handed> all;
    std::vector<std::int32_t> stages;
    for (const std::uint32_t cell : cells) {
      auto waited = waiting_.extract(cell);
      all.push_back(std::move(waited.mapped().made));
      stages.push_back(waited.mapped().stage);
    }
    all = moved(experts, all, microbatch, false);
    for (std::size_t at = 0; at < cells.size(); ++at) {
      const StageMap::Place& home = step_.replayed().map->home(stages[at]);
      all[at] = through(home, microbatch, way, std::move(all[at]));
    }
    all = moved(experts, all, microbatch, true);
    for (std::size_t at = 0; at < cells.size(); ++at) {
      leave(cells[at], microbatch, way, all[at]);
      go_on(next(stages[at], way), microbatch, way, std::move(all[at]));
    }
  }

  // Rows as they come to experts, or as they come `back` from them.
  std::vector<Handed> moved(const StepValues::Experts& experts, const std::vector<Handed>& all,
                            std::int32_t microbatch, bool back) {
    std::vector<Handed> moved;
    for (const Handed& made : all) {
      moved.push_back({.values = Doubles(made.values.size()),
                       .sizes = Doubles(made.sizes.size()),
                       .from = std::nullopt,
                       .gradient = made.gradient});
      for (const Handed& any : all)
        moved.back().bound = std::max(moved.back().bound, bound_of(any));
      forget(made, microbatch);
    }
    for (std::size_t there = 0; there < all.size(); ++there) {
      const std::size_t rows = experts.came[there].size();
      for (std::size_t row = 0; row < rows; ++row) {
        const auto [member, home] = experts.came[there][row];
        const Handed& from = all[back ? there : member];
        Handed& to = moved[back ? member : there];
        const std::size_t columns = from.values.size() / rows;
        const std::size_t read = (back ? row : home) * columns;
        const std::size_t written = (back ? home : row) * columns;
        std::copy_n(&from.values[read], columns, &to.values[written]);
        std::copy_n(&from.sizes[read], columns, &to.sizes[written]);
      }
    }
    return moved;
  }

  // The rows or the gradient that a step is given for a stage.
  [[nodiscard]] Handed given_to(const StageMap::Place& home, std::int32_t microbatch,
                                Way way) const {
    const std::int32_t layers = table_.layers(home.rank, home.chunk);
    if (layers == 0) return {};
    const bool forward = way == Way::Forward;
    const std::size_t number = layers_.number(home.rank, home.chunk, forward ? 0 : layers - 1);
    const LayerShape& shape = layers_.all()[number].shape;
    const std::uint32_t cell = cells_.of(home.rank, home.chunk, microbatch);
    const DrawnTensor& given = forward ? given_.inputs[cell] : given_.grad_outputs[cell];
    Doubles rows = rows_of(number, microbatch, values_of(given),
                           forward ? shape.hidden : output_columns(shape));
    return {.values = rows, .sizes = rows, .from = std::nullopt, .gradient = !forward};
  }

  Handed forward_through(const StageMap::Place& home, std::int32_t microbatch, Handed made) {
    const auto m = MicrobatchId(microbatch).index();
    for (std::int32_t at = 0; at < table_.layers(home.rank, home.chunk); ++at) {
      const std::size_t number = layers_.number(home.rank, home.chunk, at);
      const LayerShape& shape = layers_.all()[number].shape;
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

  Handed backward_through(const StageMap::Place& home, std::int32_t microbatch, Handed made) {
    const auto m = MicrobatchId(microbatch).index();
    for (std::int32_t at = table_.layers(home.rank, home.chunk); at-- > 0;) {
      const std::size_t number = layers_.number(home.rank, home.chunk, at);
      const std::int64_t columns = output_columns(layers_.all()[number].shape);
      for (std::size_t part = first_[number + 1]; part-- > first_[number];) {
        const auto& stored = is_last_of_layer(part) ? stored_.grad_outputs : stored_.sum_gradients;
        saved_[part][m].grad_output =
            read(part, microbatch, stored[number][m], columns, std::move(made));
        made = backward_of(part, microbatch);
      }
    }
    return made;
  }

  // A backward's gradient of its chunk's input is compared if it leaves the step.
  void leave(std::uint32_t cell, std::int32_t microbatch, Way way, Handed& made) {
    if (way == Way::Forward) return;
    give_out(cell, microbatch, made);
    result.grad_inputs[cell] = made.values;
    result.grad_input_magnitudes[cell] = made.sizes;
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
  std::map<std::uint32_t, const StepValues::Experts*> experts_;        // by cell
  std::map<std::uint32_t, Waiting> waiting_;                           // likewise
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

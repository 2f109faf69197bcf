#include "run/execute/step_inputs.h"

#include "core/base/index.h"
#include "run/execute/step_outputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace capo::run {

namespace {

// The numbers that are drawn; each kind has streams of its own.
enum class Drawn : std::uint64_t {
  Input,
  GradOutput,
  Rows,
  Sizes,
  Probabilities,
  Scales,
  Route,
  Parameter
};

Draw draw_of(std::uint64_t seed, Drawn what, std::uint64_t of, std::uint64_t replay) {
  return {.seed = seed, .stream = (replay << 40) + (of << 4) + static_cast<std::uint64_t>(what)};
}

// Rows beyond `rows` are NaN.
DrawnTensor matrix(const LayerShape& shape, std::int64_t rows, std::int64_t columns,
                   const Draw& draw) {
  return {.type = shape.type,
          .count = shape.tokens * columns,
          .numbers = {.draw = draw, .drawn = rows * columns}};
}

// The first and the last layer of a cell, whose shapes its tensors have; null if it has none.
struct EndLayers {
  const StepLayer* first = nullptr;
  const StepLayer* last = nullptr;
};

EndLayers ends_of(const BufferTable& table, const StepLayers& layers, const Cells::Cell& cell) {
  const std::int32_t count = table.layers(cell.rank, cell.chunk);
  if (count == 0) return {};
  return {&layers.at(cell.rank, cell.chunk, 0), &layers.at(cell.rank, cell.chunk, count - 1)};
}

}  // namespace

StepValues draw_values(const PlannedStep& step, const StepLayers& layers, const Program& program,
                       SizeKind sizes, std::uint64_t seed, std::uint32_t replay) {
  const BufferTable& table = step.view().table();
  const Cells cells(table);
  const std::int32_t microbatches = table.microbatches();
  StepValues given;
  // A microbatch has as many rows in each layer: all of them, unless every layer has groups.
  std::vector<double> filled(static_cast<std::size_t>(microbatches), 1);
  for (std::size_t m = 0; m < filled.size(); ++m) {
    if (layers.all_grouped() && sizes == SizeKind::Random) {
      filled[m] = 0.5 + 0.5 * draw_of(seed, Drawn::Rows, m, replay).unit(0);
    }
  }
  const auto rows_of = [&](std::int64_t tokens, std::int32_t microbatch) {
    return static_cast<std::int64_t>(
        std::floor(static_cast<double>(tokens) * filled[MicrobatchId(microbatch).index()]));
  };
  for (std::uint32_t at = 0; at < cells.count(); ++at) {
    const Cells::Cell cell = cells.at(at);
    const auto [first, last] = ends_of(table, layers, cell);
    auto& input = given.inputs.emplace_back();
    auto& grad_output = given.grad_outputs.emplace_back();
    if (first == nullptr) continue;
    const std::int64_t rows = rows_of(first->shape.tokens, cell.microbatch);
    input =
        matrix(first->shape, rows, first->shape.hidden, draw_of(seed, Drawn::Input, at, replay));
    grad_output = matrix(last->shape, rows, output_columns(last->shape),
                         draw_of(seed, Drawn::GradOutput, at, replay));
  }
  for (std::size_t number = 0; number < layers.all().size(); ++number) {
    const LayerShape& shape = layers.all()[number].shape;
    auto& sides = given.sides.emplace_back();
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      const std::uint64_t of = number * static_cast<std::uint64_t>(microbatches) +
                               static_cast<std::uint64_t>(microbatch);
      auto& side = sides.emplace_back();
      if (!shape.grouped) continue;
      side.sizes = group_sizes(sizes, shape.groups, rows_of(shape.tokens, microbatch),
                               draw_of(seed, Drawn::Sizes, of, replay));
      const auto positive = [&](Drawn what) {
        std::vector<float> values(as_index(shape.tokens));
        const Draw draw = draw_of(seed, what, of, replay);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<float>(0.25 + 0.75 * draw.unit(i));
        }
        return values;
      };
      if (is_mlp(shape.kind)) side.probabilities = positive(Drawn::Probabilities);
      if (shape.scale_bias) side.scales = positive(Drawn::Scales);
    }
  }
  for (std::uint32_t at = 0; at < program.exchanges.size(); ++at) {
    const Cells::Cell cell = cells.at(program.exchanges[at].cell);
    const std::int64_t tokens =
        layers.at(cell.rank, cell.chunk, program.exchanges[at].layer).shape.tokens;
    const std::int64_t rows = rows_of(tokens, cell.microbatch);
    auto& route = given.routes.emplace_back(as_index(tokens));
    std::iota(route.begin(), route.end(), std::int64_t{0});
    const Draw draw = draw_of(seed, Drawn::Route, at, replay);
    for (std::int64_t i = rows; i > 1; --i) {
      const auto last = static_cast<std::uint64_t>(i);
      std::swap(route[last - 1], route[draw.below(last, last)]);
    }
  }
  return given;
}

DrawnTensor draw_parameter(const StepLayers& layers, std::uint32_t parameter, std::uint64_t seed) {
  const ParameterForm& form = layers.parameters()[parameter];
  const bool norm = is_of_norm(form.role);
  // Weights are scaled so that a product makes numbers as large as it reads. SwiGLU makes numbers
  // smaller, and the norm before the next layer would blow their gradients up again, out of fp16 in
  // a long pipeline.
  const bool behind_norm = layers.layer_of(parameter).shape.kind == ModuleKind::LayerNormMlp;
  const double gain = behind_norm && form.role == Role::Second ? 2.5 : 1;
  const bool norm_weight = form.role == Role::NormWeight || form.role == Role::AttentionNormWeight;
  const double scale = norm ? 0.5 : gain * std::sqrt(3.0 / static_cast<double>(form.columns));
  const std::int64_t count = form.groups * form.elements;
  return {.type = form.type,
          .count = count,
          .numbers = {.draw = draw_of(seed, Drawn::Parameter, parameter, 0),
                      .scale = scale,
                      .offset = norm_weight ? 1.0F : 0.0F,
                      .drawn = count}};
}

StepInputs::StepInputs(Engine& engine, const PlannedStep& step, const StepLayers& layers,
                       const Program& program)
    : engine_(engine) {
  const BufferTable& table = step.view().table();
  const Cells cells(table);
  for (std::uint32_t at = 0; at < cells.count(); ++at) {
    const auto [first, last] = ends_of(table, layers, cells.at(at));
    const auto take = [&](const StepLayer* layer, std::int64_t columns, const char* what) {
      if (layer == nullptr) return static_cast<std::byte*>(nullptr);
      return engine.allocate(layer->shape.tokens * columns * bytes_of(layer->shape.type), what);
    };
    const std::int64_t in = first == nullptr ? 0 : first->shape.hidden;
    const std::int64_t out = last == nullptr ? 0 : output_columns(last->shape);
    inputs_.push_back(take(first, in, "inputs"));
    grad_outputs_.push_back(take(last, out, "incoming gradients"));
    landings_.push_back(take(first, in, "received inputs"));
    landings_.push_back(take(last, out, "received gradients"));
  }
  const auto words = [&](std::int64_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
    return reinterpret_cast<std::int64_t*>(engine.allocate(count * 8, "sizes and indices"));
  };
  const auto floats = [&](std::int64_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of floats
    return reinterpret_cast<float*>(engine.allocate(count * 4, "probabilities and scales"));
  };
  for (const Exchange& exchange : program.exchanges) {
    const Cells::Cell cell = cells.at(exchange.cell);
    const LayerShape& shape = layers.at(cell.rank, cell.chunk, exchange.layer).shape;
    const bool of_input = exchange.way == Way::Forward && !exchange.behind;
    const std::int64_t row_bytes =
        (of_input ? shape.hidden : output_columns(shape)) * bytes_of(shape.type);
    std::byte* const rows = engine.allocate(shape.tokens * row_bytes, "exchanged rows");
    routes_.push_back({.rows = rows,
                       .arrived = rows,
                       .back = rows,
                       .returned = engine.allocate(shape.tokens * row_bytes, "exchanged rows"),
                       .index = words(shape.tokens),
                       .inverse = words(shape.tokens),
                       .row_count = shape.tokens,
                       .row_bytes = row_bytes});
  }
  make_crossings(program);
  for (const StepLayer& layer : layers.all()) {
    const LayerShape& shape = layer.shape;
    auto& sides = sides_.emplace_back(as_index(table.microbatches()));
    for (LayerSide& side : sides) {
      if (!shape.grouped) continue;
      side.sizes = words(shape.groups);
      if (is_mlp(shape.kind)) side.probabilities = floats(shape.tokens);
      if (shape.scale_bias) side.scales = floats(shape.tokens);
    }
  }
}

// A layer may read what has arrived, as many rows as it has: an exchange that is never combined.
void StepInputs::make_crossings(const Program& program) {
  for (std::uint32_t id = 0; id < routes_.size(); ++id) {
    const Exchange& exchange = program.exchanges[id];
    if (!exchange.crosses()) continue;
    Route& route = routes_[id];
    const auto& among = exchange.among;
    const auto own =
        static_cast<std::int32_t>(std::find(among.begin(), among.end(), id) - among.begin());
    const Block last = block(exchange, static_cast<std::int32_t>(among.size()) - 1, own);
    route.bytes_away = std::max(last.lands + last.bytes, route.row_count * route.row_bytes);
    route.arrived = engine_.allocate(route.bytes_away, "exchanged rows");
    route.back = engine_.allocate(route.row_count * route.row_bytes, "exchanged rows");
  }
}

StepInputs::Block StepInputs::block(const Exchange& exchange, std::int32_t from,
                                    std::int32_t to) const {
  const auto members = static_cast<std::int64_t>(exchange.among.size());
  Block block;
  for (std::int32_t member = 0; member <= from; ++member) {
    const Route& route = routes_[exchange.among[as_index(member)]];
    const std::int64_t which = (member + to) % members;
    block.lands += block.bytes;
    block.begin = route.row_count * which / members * route.row_bytes;
    block.bytes = route.row_count * (which + 1) / members * route.row_bytes - block.begin;
  }
  return block;
}

void StepInputs::spoil_crossings() const {
  for (const Route& route : routes_) {
    if (route.arrived == route.rows) continue;
    engine_.launch(0, Fill{.bytes = route.bytes_away, .value = kPoison, .to = route.arrived});
    engine_.launch(
        0, Fill{.bytes = route.row_count * route.row_bytes, .value = kPoison, .to = route.back});
  }
}

void StepInputs::write(const StepValues& values) {
  const auto copy = [&](auto* to, const auto& from) {
    if (to == nullptr || from.empty()) return;
    engine_.write(const_cast<void*>(static_cast<const void*>(to)), from.data(),
                  static_cast<std::int64_t>(from.size() * sizeof(from[0])));
  };
  const auto draw = [&](const DrawnTensor& tensor, std::byte* to) {
    engine_.launch(
        0,
        DrawInto{.type = tensor.type, .count = tensor.count, .numbers = tensor.numbers, .to = to});
  };
  for (std::uint32_t cell = 0; cell < inputs_.size(); ++cell) {
    if (inputs_[cell] == nullptr) continue;
    draw(values.inputs[cell], inputs_[cell]);
    draw(values.grad_outputs[cell], grad_outputs_[cell]);
  }
  for (std::size_t layer = 0; layer < sides_.size(); ++layer) {
    for (std::size_t microbatch = 0; microbatch < sides_[layer].size(); ++microbatch) {
      const StepValues::Side& from = values.sides[layer][microbatch];
      LayerSide& to = sides_[layer][microbatch];
      copy(to.sizes, from.sizes);
      to.sizes_on_host = from.sizes;
      copy(to.probabilities, from.probabilities);
      copy(to.scales, from.scales);
    }
  }
  for (std::size_t at = 0; at < routes_.size(); ++at) {
    const std::vector<std::int64_t>& index = values.routes[at];
    std::vector<std::int64_t> inverse(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) {
      inverse[as_index(index[i])] = static_cast<std::int64_t>(i);
    }
    copy(routes_[at].index, index);
    copy(routes_[at].inverse, inverse);
  }
  engine_.synchronise();  // other streams read what was drawn on the first
}

}  // namespace capo::run

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

// The ends of cells that need memory, two a cell, one for each Way: those that are read as given,
// and those to which transfers bring something. At real sizes each takes as much as a layer's
// input.
struct UsedEnds {
  std::vector<bool> given;
  std::vector<bool> landed;
};

UsedEnds used_ends(const Program& program, const Cells& cells) {
  UsedEnds used{std::vector<bool>(cells.count() * 2), std::vector<bool>(cells.count() * 2)};
  for (const OpPart& part : program.parts) {
    const bool reads = part.kind == OpPart::Kind::Permute ||
                       (part.kind == OpPart::Kind::Work && part.work.kind != Kind::BackwardWeight);
    if (reads && part.origin.kind == Origin::Kind::Given)
      used.given[part.origin.id * 2 + as_index(part.way)] = true;
  }
  for (const Transfer& transfer : program.transfers) {
    if (transfer.from != kNoBuffer) used.landed[transfer.cell * 2 + as_index(transfer.way)] = true;
  }
  return used;
}

// Experts may make rows of another width than those that they read.
std::int64_t row_bytes_back(const BufferTable& table, const StepLayers& layers,
                            const Exchange& exchange, std::int64_t row_bytes) {
  if (!exchange.around_experts()) return row_bytes;
  const Buffer made = table.at(exchange.made);
  const LayerShape& shape = layers.at(made.rank, made.chunk, made.layer).shape;
  const bool forward = exchange.way == Way::Forward;
  return (forward ? output_columns(shape) : shape.hidden) * bytes_of(shape.type);
}

// The members of an exchange around experts, and the rows that come to each of them.
StepValues::Experts experts_of(const Program& program, std::uint32_t exchange,
                               const std::vector<std::vector<std::int64_t>>& routes) {
  const auto alone = std::vector<std::uint32_t>{exchange};
  const auto& among =
      program.exchanges[exchange].crosses() ? program.exchanges[exchange].among : alone;
  StepValues::Experts all;
  std::vector<std::int64_t> rows;
  for (const std::uint32_t member : among) {
    all.cells.push_back(program.exchanges[member].cell);
    rows.push_back(static_cast<std::int64_t>(routes[member].size()));
  }
  for (std::size_t to = 0; to < among.size(); ++to) {
    auto& came = all.came.emplace_back(routes[among[to]].size());
    for (std::size_t from = 0; from < among.size(); ++from) {
      const RowBlock block = block_between(rows, from, to);
      for (std::int64_t row = 0; row < block.rows; ++row) {
        const std::int64_t before = routes[among[from]][as_index(block.begin + row)];
        came[as_index(block.lands + row)] = {from, as_index(before)};
      }
    }
  }
  return all;
}

std::int64_t* words(Engine& engine, std::int64_t count) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
  return reinterpret_cast<std::int64_t*>(engine.allocate(count * 8, "sizes and indices"));
}

}  // namespace

RowBlock block_between(const std::vector<std::int64_t>& rows, std::size_t from, std::size_t to) {
  const auto members = static_cast<std::int64_t>(rows.size());
  const auto begin_of = [&](std::int64_t member, std::int64_t which) {
    return rows[as_index(member)] * which / members;
  };
  const std::int64_t own = static_cast<std::int64_t>(from + to) % members;
  RowBlock block;
  for (std::int64_t which = 0; which <= own; ++which) {
    const std::int64_t member = (which + members - static_cast<std::int64_t>(to)) % members;
    block.lands += block.rows;
    block.begin = begin_of(member, which);
    block.rows = begin_of(member, which + 1) - block.begin;
  }
  return block;
}

RowForm form_of_rows(const StepLayers& layers, const Cells& cells, const Exchange& exchange) {
  const Cells::Cell cell = cells.at(exchange.cell);
  const LayerShape& shape = layers.at(cell.rank, cell.chunk, exchange.layer).shape;
  const bool of_input = exchange.way == Way::Forward && exchange.rows != Exchange::Rows::Output;
  return {.count = shape.tokens,
          .columns = of_input ? shape.hidden : output_columns(shape),
          .type = shape.type};
}

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
  for (std::uint32_t at = 0; at < program.exchanges.size(); ++at) {
    const Exchange& exchange = program.exchanges[at];
    if (exchange.route != at) given.routes[at] = given.routes[exchange.route];
    const bool first = !exchange.crosses() || exchange.among.front() == at;
    if (first && exchange.around_experts() && exchange.way == Way::Forward)
      given.experts.push_back(experts_of(program, at, given.routes));
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
  const UsedEnds used = used_ends(program, cells);
  for (std::uint32_t at = 0; at < cells.count(); ++at) {
    const auto [first, last] = ends_of(table, layers, cells.at(at));
    const auto take = [&](bool is_used, const StepLayer* layer, std::int64_t columns,
                          const char* what) {
      if (!is_used || layer == nullptr) return Place();
      const std::int64_t bytes = layer->shape.tokens * columns * bytes_of(layer->shape.type);
      return Place{.memory = engine.allocate(bytes, what), .bytes = bytes};
    };
    const std::int64_t in = first == nullptr ? 0 : first->shape.hidden;
    const std::int64_t out = last == nullptr ? 0 : output_columns(last->shape);
    const std::size_t forward = at * std::size_t{2} + as_index(Way::Forward);
    const std::size_t backward = at * std::size_t{2} + as_index(Way::Backward);
    inputs_.push_back(take(used.given[forward], first, in, "inputs").memory);
    grad_outputs_.push_back(take(used.given[backward], last, out, "incoming gradients").memory);
    landings_.push_back(take(used.landed[forward], first, in, "received inputs"));
    landings_.push_back(take(used.landed[backward], last, out, "received gradients"));
  }
  const auto floats = [&](std::int64_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of floats
    return reinterpret_cast<float*>(engine.allocate(count * 4, "probabilities and scales"));
  };
  make_routes(table, layers, program);
  make_crossings(program);
  for (const StepLayer& layer : layers.all()) {
    const LayerShape& shape = layer.shape;
    auto& sides = sides_.emplace_back(as_index(table.microbatches()));
    for (LayerSide& side : sides) {
      if (!shape.grouped) continue;
      side.sizes = words(engine, shape.groups);
      if (is_mlp(shape.kind)) side.probabilities = floats(shape.tokens);
      if (shape.scale_bias) side.scales = floats(shape.tokens);
    }
  }
}

void StepInputs::make_routes(const BufferTable& table, const StepLayers& layers,
                             const Program& program) {
  const Cells cells(table);
  for (const Exchange& exchange : program.exchanges) {
    const RowForm form = form_of_rows(layers, cells, exchange);
    const std::int64_t row_bytes = form.columns * bytes_of(form.type);
    std::byte* const rows = engine_.allocate(form.count * row_bytes, "exchanged rows");
    routes_.push_back({.rows = rows,
                       .arrived = rows,
                       .back = rows,
                       .returned = engine_.allocate(form.count * row_bytes, "exchanged rows"),
                       .index = words(engine_, form.count),
                       .inverse = words(engine_, form.count),
                       .row_count = form.count,
                       .row_bytes = row_bytes,
                       .row_bytes_back = row_bytes_back(table, layers, exchange, row_bytes)});
  }
}

// A layer may read what has arrived, as many rows as it has.
void StepInputs::make_crossings(const Program& program) {
  for (std::uint32_t id = 0; id < routes_.size(); ++id) {
    const Exchange& exchange = program.exchanges[id];
    Route& route = routes_[id];
    if (exchange.crosses() || exchange.around_experts())
      route.back = engine_.allocate(route.row_count * route.row_bytes_back, "exchanged rows");
    if (!exchange.crosses()) continue;
    const auto& among = exchange.among;
    const auto own =
        static_cast<std::size_t>(std::find(among.begin(), among.end(), id) - among.begin());
    std::int64_t arrive = route.row_count;
    for (std::size_t member = 0; member < among.size(); ++member) {
      const RowBlock came = block(exchange, member, own);
      arrive = std::max(arrive, came.lands + came.rows);
    }
    route.bytes_away = arrive * route.row_bytes;
    route.arrived = engine_.allocate(route.bytes_away, "exchanged rows");
  }
}

RowBlock StepInputs::block(const Exchange& exchange, std::size_t from, std::size_t to) const {
  std::vector<std::int64_t> rows;
  for (const std::uint32_t member : exchange.among) rows.push_back(routes_[member].row_count);
  return block_between(rows, from, to);
}

void StepInputs::spoil_arrivals() const {
  const auto spoil = [&](std::byte* memory, std::int64_t bytes) {
    if (memory == nullptr) return;
    engine_.launch(0, Fill{.bytes = bytes, .value = kPoison, .to = memory});
  };
  for (const Place& landing : landings_) spoil(landing.memory, landing.bytes);
  for (const Route& route : routes_) {
    const std::int64_t bytes = route.row_count * route.row_bytes;
    spoil(route.rows, bytes);
    spoil(route.returned, bytes);
    if (route.arrived != route.rows) spoil(route.arrived, route.bytes_away);
    if (route.back != route.rows) spoil(route.back, route.row_count * route.row_bytes_back);
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
    if (inputs_[cell] != nullptr) draw(values.inputs[cell], inputs_[cell]);
    if (grad_outputs_[cell] != nullptr) draw(values.grad_outputs[cell], grad_outputs_[cell]);
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

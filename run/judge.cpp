#include "run/judge.h"

#include "core/base/index.h"
#include "run/reference/compare.h"
#include "run/reference/step_parts.h"
#include "run/reference/step_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::run {

namespace {

Victim victim_of(const Buffer& buffer) {
  return {.rank = buffer.rank, .chunk = buffer.chunk, .microbatch = buffer.microbatch};
}

std::set<Victim>& set_of(Victims& victims, HazardKind kind) {
  switch (kind) {
    case HazardKind::StaticInput:
      return victims.static_input;
    case HazardKind::GradOutput:
      return victims.grad_output;
    case HazardKind::P2pWindow:
      return victims.grad_input;
    default:
      return victims.other;
  }
}

Victims predicted_by(const CheckResult& result) {
  Victims victims;
  if (!result.plan) return victims;
  for (const FoundHazard& hazard : result.plan->hazards) {
    set_of(victims, hazard.kind).insert(victim_of(hazard.victim));
  }
  return victims;
}

// The bound of a gradient. If nothing is rounded to bf16 or fp16 between what the layer read and
// the gradient, only fp32 sums differ.
double bound_of(const StepLayer& layer, const ParameterForm& form) {
  if (layer.shape.scaling) return error_bound(layer.shape);
  const bool exact = form.fused && is_one_product(layer.shape.kind) && !has_norm(layer.shape.kind);
  return error_bound(exact ? DataType::Fp32 : layer.shape.type);
}

bool all_zero(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

}  // namespace

class Judge::Work {
 public:
  Work(const Compared& of, RunReport& report)
      : of_(of), report_(report), cells_(of.step.view().table()) {
    name_tensors();
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of a whole number
    differs_ = reinterpret_cast<std::int32_t*>(of.engine.allocate(4, "a comparison's result"));
  }

  void judge_eager(const StepValues& numbers) {
    numbers_ = &numbers;
    const StepReference reference =
        reference_of(of_.step, of_.layers, parameters(), *numbers_, stored_operands());
    report_.other_ways += reference.other_ways;
    for (const HandedOn& handed : reference.handed_on) {
      hold(handed.error, handed.bound, [&] { return name_of(handed); });
    }
    const auto judge = [&](TensorReport& tensor, const std::vector<float>& is, double error) {
      if (!is.empty()) tensor.zero = tensor.zero.value_or(true) && all_zero(is);
      tensor.float64_error = std::max(tensor.float64_error, error);
      hold(error, tensor.bound, [&] { return tensor.name; });
    };
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (is_frozen(p)) continue;
      const std::vector<float> is = held(of_.eager, of_.eager_deposits, p);
      const DataType type = of_.layers.parameters()[p].type;
      judge(report_.parameters[p], is,
            relative_error(reference.gradients[p], is, sizes_in(reference.magnitudes[p], type)));
      double& ascending = report_.parameters[p].ascending_error.emplace(
          report_.parameters[p].ascending_error.value_or(0));
      ascending = std::max(ascending, relative_error(reference.ascending[p], is,
                                                     sizes_in(reference.magnitudes[p], type)));
    }
    for (std::size_t i = 0; i < given_out_.size(); ++i) {
      const std::vector<float> is = given_out(of_.eager, given_out_[i]);
      std::vector<double> should = reference.grad_inputs[given_out_[i]];
      should.resize(is.size());
      std::vector<double> sizes = reference.grad_input_magnitudes[given_out_[i]];
      sizes.resize(is.size());
      judge(report_.input_gradients[i], is,
            relative_error(should, is, sizes_in(sizes, type_of(given_out_[i]))));
    }
    std::size_t at = first_side_;
    for_each_side(
        [&](const StepLayer& layer, std::size_t number, std::int32_t m, const char*, auto member) {
          const std::vector<float> is =
              side_values(layer, number, m, of_.eager.side(number, m).*member);
          const auto& side = reference.sides[number][as_index(m)];
          std::vector<double> should =
              member == &StepOutputs::SideGradients::scales ? side.scales : side.probabilities;
          std::vector<double> sizes =
              member == &StepOutputs::SideGradients::scales ? side.scales : side.magnitudes;
          should.resize(is.size());
          sizes.resize(is.size());
          judge(report_.input_gradients[at++], is,
                relative_error(should, is, sizes_in(sizes, layer.shape.type)));
        });
  }

  void judge_sample(const StepValues& numbers, const FloatSample& sample) {
    numbers_ = &numbers;
    report_.sampled = {.samples = sample.count, .seed = sample.seed};
    const SampledReference reference =
        sampled_reference(of_.step, of_.layers, of_.parameters, *numbers_, stored_rows(), sample);
    report_.other_ways += reference.other_ways;
    for (const HandedOn& handed : reference.handed_on) {
      hold(handed.error, handed.bound, [&] { return name_of(handed); });
      hold_element(handed.element_error, handed.bound, name_of(handed));
      count_sampled(handed.elements);
    }
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (is_frozen(p)) continue;
      const SampledTensor& tensor = reference.gradients[p];
      const auto is = held(of_.eager, of_.eager_deposits, p, tensor.at);
      TensorReport& report = report_.parameters[p];
      const DataType type = of_.layers.parameters()[p].type;
      judge_sampled(report, tensor, is, type);
      if (tensor.at.empty()) continue;
      report.ascending_error = relative_error(tensor.ascending, is, sizes_in(tensor.sizes, type));
    }
    for (std::size_t i = 0; i < given_out_.size(); ++i) {
      const SampledTensor& tensor = reference.grad_inputs[given_out_[i]];
      const auto is = values_at(of_.engine, given_out_tensor(of_.eager, given_out_[i]), tensor.at);
      judge_sampled(report_.input_gradients[i], tensor, is, type_of(given_out_[i]));
    }
    std::size_t at = first_side_;
    for_each_side(
        [&](const StepLayer& layer, std::size_t number, std::int32_t m, const char*, auto member) {
          const auto& side = reference.sides[number][as_index(m)];
          const SampledTensor& tensor =
              member == &StepOutputs::SideGradients::scales ? side.scales : side.probabilities;
          const auto all = side_values(layer, number, m, of_.eager.side(number, m).*member);
          std::vector<float> is;
          for (const std::int64_t row : tensor.at) is.push_back(all[as_index(row)]);
          judge_sampled(report_.input_gradients[at++], tensor, is, layer.shape.type);
        });
  }

  void compare(std::uint32_t replay, const StepValues& numbers, const PlannedMemory& memory) {
    numbers_ = &numbers;
    const auto note = [&](TensorReport& tensor, const std::optional<Difference>& found) {
      if (!found) return;
      report_.bit_equal = false;
      if (tensor.difference) return;
      tensor.difference = found;
      tensor.replay = replay;
    };
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (!replayed(of_.layers.layer_of(p).rank)) continue;
      const ParameterForm& form = of_.layers.parameters()[p];
      const DataType type = form.fused ? DataType::Fp32 : form.type;
      if (same(pieces_held(of_.eager, of_.eager_deposits, p),
               pieces_held(of_.replayed, of_.replayed_deposits, p))) {
        continue;
      }
      note(report_.parameters[p], difference(held(of_.eager, of_.eager_deposits, p),
                                             held(of_.replayed, of_.replayed_deposits, p), type));
    }
    for (std::size_t i = 0; i < given_out_.size(); ++i) {
      const Cells::Cell cell = cells_.at(given_out_[i]);
      if (!replayed(cell.rank)) continue;
      if (same(pieces_of(given_out_tensor(of_.eager, given_out_[i])),
               pieces_of(given_out_tensor(of_.replayed, given_out_[i])))) {
        continue;
      }
      const auto found =
          difference(given_out(of_.eager, given_out_[i]), given_out(of_.replayed, given_out_[i]),
                     of_.layers.at(cell.rank, cell.chunk, 0).shape.type);
      note(report_.input_gradients[i], found);
    }
    std::size_t at = first_side_;
    for_each_side([&](const StepLayer& layer, std::size_t number, std::int32_t m, const char*,
                      auto member) {
      TensorReport& tensor = report_.input_gradients[at++];
      if (!replayed(layer.rank)) return;
      const std::int64_t bytes = live_side(layer, number, m) * 4;
      if (same({{of_.eager.side(number, m).*member, bytes}},
               {{of_.replayed.side(number, m).*member, bytes}})) {
        return;
      }
      note(tensor, difference(side_values(layer, number, m, of_.eager.side(number, m).*member),
                              side_values(layer, number, m, of_.replayed.side(number, m).*member),
                              DataType::Fp32));
    });
    if (of_.late != nullptr) name_victims(memory);
  }

 private:
  // Bytes on the engine that go into a comparison.
  struct Piece {
    const void* begin = nullptr;
    std::int64_t bytes = 0;
  };
  using Pieces = std::vector<Piece>;

  [[nodiscard]] const BufferTable& table() const { return of_.step.view().table(); }

  [[nodiscard]] bool replayed(std::int32_t rank) const {
    return !of_.only || of_.only->contains(rank);
  }

  // Whether the engine finds the same bytes; pieces of other lengths are taken for different.
  [[nodiscard]] bool same(const Pieces& a, const Pieces& b) {
    const auto as_long = [](const Piece& x, const Piece& y) { return x.bytes == y.bytes; };
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), as_long)) return false;
    of_.engine.launch(0, Fill{.bytes = 4, .value = 0, .to = differs_});
    for (std::size_t i = 0; i < a.size(); ++i) {
      of_.engine.launch(0, Differ{.rows = {.count = 1},
                                  .row_bytes = a[i].bytes,
                                  .a = a[i].begin,
                                  .b = b[i].begin,
                                  .differs = differs_});
    }
    std::int32_t differs = 1;
    of_.engine.read(&differs, differs_, 4);
    return differs == 0;
  }

  [[nodiscard]] static Pieces pieces_of(const GroupedTensor& tensor) {
    Pieces pieces;
    for (const std::byte* part : tensor.parts) pieces.push_back({part, tensor.part_bytes()});
    return pieces;
  }

  // Holds an error against its bound, and names the tensor if it is beyond.
  template <typename Name>
  void hold(double error, double bound, Name name) {
    report_.worst_relative_error = std::max(report_.worst_relative_error, error);
    if (error <= bound) return;
    report_.within_bounds = false;
    const std::string of = name();
    auto& beyond = report_.beyond;
    const auto known = std::find_if(beyond.begin(), beyond.end(),
                                    [&](const BeyondBound& one) { return one.name == of; });
    if (known == beyond.end()) {
      beyond.push_back({.name = of, .error = error, .bound = bound});
    } else {
      known->error = std::max(known->error, error);
    }
  }

  // Holds the worst of single elements against their bound.
  void hold_element(double error, double bound, const std::string& name) {
    report_.sampled->worst_element = std::max(report_.sampled->worst_element, error);
    if (error <= kElementBounds * bound) return;
    report_.within_bounds = false;
    report_.beyond.push_back(
        {.name = "one element of " + name, .error = error, .bound = kElementBounds * bound});
  }

  void count_sampled(std::int64_t elements) {
    if (elements == 0) return;
    ++report_.sampled->tensors;
    report_.sampled->elements += elements;
  }

  void judge_sampled(TensorReport& report, const SampledTensor& tensor,
                     const std::vector<float>& is, DataType type) {
    const std::vector<double> sizes = sizes_in(tensor.sizes, type);
    report.float64_elements = std::ssize(tensor.at);
    report.float64_error = relative_error(tensor.should, is, sizes);
    // Some zeros do not make a tensor zero.
    if (report.float64_elements == report.elements) report.zero = all_zero(is);
    hold(report.float64_error, report.bound, [&] { return report.name; });
    hold_element(worst_element(tensor.should, is, sizes, tensor.columns), report.bound,
                 report.name);
    count_sampled(*report.float64_elements);
  }

  [[nodiscard]] std::string name_of(const HandedOn& handed) const {
    const StepLayer& layer = of_.layers.all()[handed.layer];
    if (handed.between) {
      return fmt::format("{} between the halves of layer {} of chunk {} of rank {}, microbatch {}",
                         handed.gradient ? "gradient" : "sum", layer.layer, layer.chunk, layer.rank,
                         handed.microbatch);
    }
    return fmt::format("{} that layer {} of chunk {} of rank {} {}, microbatch {}",
                       handed.choices    ? "choices"
                       : handed.gradient ? "gradient"
                                         : "input",
                       layer.layer, layer.chunk, layer.rank, handed.choices ? "made" : "read",
                       handed.microbatch);
  }

  // The values of all parameters, which the engine has and float64 needs here.
  [[nodiscard]] const std::vector<std::vector<float>>& parameters() {
    if (parameters_.empty()) {
      for (const DrawnTensor& drawn : of_.parameters) parameters_.push_back(values_of(drawn));
    }
    return parameters_;
  }

  void name_tensors() {
    report_.predicted = predicted_by(of_.step.result());
    const auto& parameters = of_.layers.parameters();
    for (std::uint32_t p = 0; p < parameters.size(); ++p) {
      report_.parameters.push_back({.name = parameters[p].name,
                                    .elements = parameters[p].groups * parameters[p].elements,
                                    .bound = bound_of(of_.layers.layer_of(p), parameters[p])});
    }
    for (std::uint32_t at = 0; at < cells_.count(); ++at) {
      const Cells::Cell cell = cells_.at(at);
      if (!gives_out(cell)) continue;
      const LayerShape& shape = of_.layers.at(cell.rank, cell.chunk, 0).shape;
      given_out_.push_back(at);
      report_.input_gradients.push_back(
          {.name = fmt::format("input of chunk {} of rank {}, microbatch {}", cell.chunk, cell.rank,
                               cell.microbatch),
           .elements = shape.tokens * shape.hidden,
           .bound = error_bound(shape)});
    }
    first_side_ = report_.input_gradients.size();
    for_each_side(
        [&](const StepLayer& layer, std::size_t, std::int32_t microbatch, const char* what, auto) {
          report_.input_gradients.push_back(
              {.name = fmt::format("{} of layer {} of chunk {} of rank {}, microbatch {}", what,
                                   layer.layer, layer.chunk, layer.rank, microbatch),
               .elements = layer.shape.tokens,
               .bound = error_bound(layer.shape)});
        });
  }

  // Tells whether a chunk's input gradient leaves the step and is wanted.
  [[nodiscard]] bool gives_out(const Cells::Cell& cell) const {
    if (table().layers(cell.rank, cell.chunk) == 0) return false;
    if (!of_.layers.at(cell.rank, cell.chunk, 0).shape.needs_grad_input) return false;
    const StageMap& map = *of_.step.replayed().map;
    return !map.wired() || map.before(map.stage_of(cell.rank, cell.chunk)) == kNoStage;
  }

  // The tensors whose sum a reader such as Megatron's finds at the end of a step: main_grad, and
  // .grad unless the flag says that it is in main_grad already.
  [[nodiscard]] std::vector<const GroupedTensor*> summands(const StepOutputs& outcome,
                                                           const Deposits& deposits,
                                                           std::uint32_t parameter) const {
    const GradientMemory& memory = outcome.gradients(parameter);
    const GradientBook& book = deposits.book(parameter);
    const bool fused = of_.layers.parameters()[parameter].fused;
    const bool zeroed = of_.layers.layer_of(parameter).flags.zero_out_wgrad;
    std::vector<const GroupedTensor*> all;
    if (fused) all.push_back(&memory.main_grad);
    if (!book.has_grad() || (fused && book.flag() && !zeroed)) return all;
    const bool view = fused && book.grad_is_view();
    all.push_back(view                      ? &memory.main_grad
                  : book.grad_is_returned() ? &memory.returned
                                            : &memory.grad);
    return all;
  }

  [[nodiscard]] std::vector<float> held(const StepOutputs& outcome, const Deposits& deposits,
                                        std::uint32_t parameter) const {
    return sum_of(summands(outcome, deposits, parameter),
                  as_index(report_.parameters[parameter].elements),
                  [&](const GroupedTensor& tensor) { return values_of(of_.engine, tensor); });
  }

  // Some elements of it.
  [[nodiscard]] std::vector<float> held(const StepOutputs& outcome, const Deposits& deposits,
                                        std::uint32_t parameter,
                                        const std::vector<std::int64_t>& at) const {
    return sum_of(summands(outcome, deposits, parameter), at.size(),
                  [&](const GroupedTensor& tensor) { return values_at(of_.engine, tensor, at); });
  }

  template <typename Values>
  static std::vector<float> sum_of(const std::vector<const GroupedTensor*>& tensors,
                                   std::size_t elements, Values values_of_one) {
    std::vector<float> sum;
    for (const GroupedTensor* tensor : tensors) {
      std::vector<float> values = values_of_one(*tensor);
      if (sum.empty()) {
        sum = std::move(values);
      } else {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
      }
    }
    sum.resize(elements, 0.0F);
    return sum;
  }

  [[nodiscard]] Pieces pieces_held(const StepOutputs& outcome, const Deposits& deposits,
                                   std::uint32_t parameter) const {
    Pieces pieces;
    for (const GroupedTensor* tensor : summands(outcome, deposits, parameter)) {
      const Pieces more = pieces_of(*tensor);
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
    return pieces;
  }

  // The rows that are in use of what a cell gives out.
  [[nodiscard]] GroupedTensor given_out_tensor(const StepOutputs& outcome,
                                               std::uint32_t cell) const {
    const Cells::Cell of = cells_.at(cell);
    const LayerShape& shape = of_.layers.at(of.rank, of.chunk, 0).shape;
    const std::size_t number = of_.layers.number(of.rank, of.chunk, 0);
    const std::int64_t rows =
        live_rows(shape, numbers_->sides[number][MicrobatchId(of.microbatch).index()]);
    return {
        .type = shape.type, .elements = rows * shape.hidden, .parts = {outcome.collected(cell)}};
  }

  [[nodiscard]] std::vector<float> given_out(const StepOutputs& outcome, std::uint32_t cell) const {
    return values_of(of_.engine, given_out_tensor(outcome, cell));
  }

  [[nodiscard]] DataType type_of(std::uint32_t cell) const {
    const Cells::Cell of = cells_.at(cell);
    return of_.layers.at(of.rank, of.chunk, 0).shape.type;
  }

  [[nodiscard]] StoredRows stored_rows() const {
    const auto rows_at = [this](const std::byte* begin, DataType type, std::int64_t columns,
                                std::int64_t first, std::int64_t count) {
      std::vector<std::byte> bytes(as_index(count * columns * bytes_of(type)));
      of_.engine.read(bytes.data(), begin + first * columns * bytes_of(type), std::ssize(bytes));
      return from_stored(bytes, type);
    };
    const auto operands = [this, rows_at](std::size_t number, std::int32_t m, bool gradient,
                                          std::int64_t first, std::int64_t count) {
      const LayerShape& shape = of_.layers.all()[number].shape;
      const auto* begin =
          gradient ? of_.expected.grad_output(number, m) : of_.expected.input(number, m);
      return rows_at(begin, shape.type, gradient ? output_columns(shape) : shape.hidden, first,
                     count);
    };
    const auto given_out = [this, rows_at](std::uint32_t cell, std::int64_t row) {
      const Cells::Cell of = cells_.at(cell);
      if (!gives_out(of)) return std::vector<float>();
      const LayerShape& shape = of_.layers.at(of.rank, of.chunk, 0).shape;
      return rows_at(of_.eager.collected(cell), shape.type, shape.hidden, row, 1);
    };
    return {.operands = operands, .given_out = given_out};
  }

  [[nodiscard]] StoredOperands stored_operands() const {
    StoredOperands stored;
    for (std::size_t number = 0; number < of_.layers.all().size(); ++number) {
      const LayerShape& shape = of_.layers.all()[number].shape;
      auto& inputs = stored.inputs.emplace_back();
      auto& grad_outputs = stored.grad_outputs.emplace_back();
      auto& choices = stored.choices.emplace_back();
      auto& sums = stored.sums.emplace_back();
      auto& sum_gradients = stored.sum_gradients.emplace_back();
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        const auto values = [&](std::byte* from, std::int64_t columns) {
          return values_of(
              of_.engine,
              {.type = shape.type, .elements = shape.tokens * columns, .parts = {from}});
        };
        inputs.push_back(values(of_.expected.input(number, m), shape.hidden));
        grad_outputs.push_back(values(of_.expected.grad_output(number, m), output_columns(shape)));
        const BetweenHalves between = of_.expected.between(number, m);
        if (between.sum != nullptr) {
          sums.push_back(values(between.sum, shape.hidden));
          sum_gradients.push_back(values(between.gradient, shape.hidden));
        }
        const std::byte* chosen = of_.expected.chosen(number, m);
        auto& of_tokens = choices.emplace_back();
        if (chosen == nullptr) continue;
        of_tokens.resize(as_index(product_rows(shape)));
        of_.engine.read(of_tokens.data(), chosen, std::ssize(of_tokens) * 8);
      }
    }
    stored.given_out.resize(cells_.count());
    for (const std::uint32_t cell : given_out_) stored.given_out[cell] = given_out(of_.eager, cell);
    return stored;
  }

  [[nodiscard]] bool is_frozen(std::uint32_t parameter) const {
    const ParameterCells cells =
        cells_of(of_.layers.layer_of(parameter), of_.layers.parameters()[parameter].role,
                 gradients::Contract::Sound);
    return cells.whole.written == gradients::Written::Never &&
           cells.whole.returned == gradients::Returned::Nothing;
  }

  // Calls visit(layer, its number, microbatch, name, member) for gradients of probabilities and of
  // scales, which are inputs too.
  template <typename Visit>
  void for_each_side(Visit visit) const {
    for (std::size_t number = 0; number < of_.layers.all().size(); ++number) {
      const StepLayer& layer = of_.layers.all()[number];
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        if (of_.eager.side(number, m).probabilities != nullptr) {
          visit(layer, number, m, "probabilities", &StepOutputs::SideGradients::probabilities);
        }
        if (of_.eager.side(number, m).scales != nullptr) {
          visit(layer, number, m, "scales", &StepOutputs::SideGradients::scales);
        }
      }
    }
  }

  [[nodiscard]] std::int64_t live_side(const StepLayer& layer, std::size_t number,
                                       std::int32_t microbatch) const {
    return live_rows(layer.shape, numbers_->sides[number][MicrobatchId(microbatch).index()]);
  }

  // The values of the rows that are in use.
  [[nodiscard]] std::vector<float> side_values(const StepLayer& layer, std::size_t number,
                                               std::int32_t microbatch, const float* of) const {
    std::vector<float> values(as_index(live_side(layer, number, microbatch)));
    of_.engine.read(values.data(), of, static_cast<std::int64_t>(values.size() * sizeof(float)));
    return values;
  }

  void name_victims(const PlannedMemory& memory) {
    for (const LateReads::Late& late : of_.late->seen()) {
      const Buffer buffer = table().at(late.buffer);
      const bool sent = late.reader == Reader::Send;
      auto& into = sent && buffer.kind == BufferKind::GradInput ? report_.victims.grad_input
                   : buffer.kind == BufferKind::StaticInput     ? report_.victims.static_input
                   : buffer.kind == BufferKind::GradOutput      ? report_.victims.grad_output
                                                                : report_.victims.other;
      if (into.insert(victim_of(buffer)).second) tell(late, memory);
    }
    tell_unseen(memory);
    for (std::uint32_t p = 0; p < of_.layers.parameters().size(); ++p) {
      const StepLayer& layer = of_.layers.layer_of(p);
      if (!replayed(layer.rank)) continue;
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        if (!writes(of_.eager_deposits, p, m)) continue;
        if (!writes(of_.replayed_deposits, p, m)) {  // the replay loses it
          report_.wrong_gradients.insert({layer.rank, layer.chunk, m});
          continue;
        }
        const auto pieces = [&](const StepOutputs& outcome) {
          return pieces_of(outcome.gradients(p).own[as_index(m)]);
        };
        if (!same(pieces(of_.eager), pieces(of_.replayed))) {
          report_.wrong_gradients.insert({layer.rank, layer.chunk, m});
        }
      }
    }
  }

  // Tells whether some action of the microbatch leaves a gradient that is kept.
  [[nodiscard]] static bool writes(const Deposits& deposits, std::uint32_t parameter,
                                   std::int32_t microbatch) {
    for (const bool weight : {false, true}) {
      const Deposit::Into into = deposits.of(parameter, microbatch, weight).into;
      if (into != Deposit::Into::Nothing && into != Deposit::Into::Temporary) return true;
    }
    return false;
  }

  [[nodiscard]] std::string words(BufferId id) const {
    const Buffer of = table().at(id);
    return fmt::format("the {} of chunk {}, microbatch {} of rank {}", capo::name_of(of.kind),
                       of.chunk, of.microbatch, of.rank);
  }

  // A late read shows by its bits. An earlier victim may have given two buffers the same, and then
  // a prediction stays unseen.
  void tell_unseen(const PlannedMemory& memory) {
    if (!of_.step.result().plan) return;
    for (const FoundHazard& hazard : of_.step.result().plan->hazards) {
      const Buffer& victim = hazard.victim;
      if (!replayed(victim.rank)) continue;
      if (set_of(report_.victims, hazard.kind).contains(victim_of(victim))) continue;
      const BufferId id =
          table().id(victim.rank, victim.chunk, victim.layer, victim.microbatch, victim.kind);
      const BufferId taker = memory.taken_by(id);
      if (taker == kNoBuffer || !of_.late->same_bits(id, taker)) continue;
      const std::string story = fmt::format(
          "{} was not seen to be hurt: {}, which took its memory over, holds the same bits",
          words(id), words(taker));
      if (!has_story(story)) report_.stories.push_back(story);
    }
  }

  [[nodiscard]] bool has_story(const std::string& story) const {
    return std::find(report_.stories.begin(), report_.stories.end(), story) !=
           report_.stories.end();
  }

  // Adds a sentence about a victim: what was read, and what lies there now.
  void tell(const LateReads::Late& late, const PlannedMemory& memory) {
    const BufferId taker = memory.taken_by(late.buffer);
    report_.stories.push_back(fmt::format(
        "{} was {} too late: {}", words(late.buffer), late.reader == Reader::Send ? "sent" : "read",
        taker == kNoBuffer ? "something else had been written there"
                           : words(taker) + " had taken its memory over"));
  }

  Compared of_;
  RunReport& report_;
  Cells cells_;
  std::vector<std::uint32_t> given_out_;  // the cells of report_.input_gradients
  std::size_t first_side_ = 0;            // the first side gradient among report_.input_gradients
  const StepValues* numbers_ = nullptr;   // of the replay at hand
  std::vector<std::vector<float>> parameters_;  // once float64 has asked for them
  std::int32_t* differs_ = nullptr;             // on the engine
};

Judge::Judge(const Compared& of, RunReport& report) : work_(std::make_unique<Work>(of, report)) {
}
Judge::~Judge() = default;

void Judge::judge_eager(const StepValues& numbers) {
  work_->judge_eager(numbers);
}

void Judge::judge_sample(const StepValues& numbers, const FloatSample& sample) {
  work_->judge_sample(numbers, sample);
}

void Judge::compare(std::uint32_t replay, const StepValues& numbers, const PlannedMemory& memory) {
  work_->compare(replay, numbers, memory);
}

}  // namespace capo::run

#include "run/judged_tensors.h"

#include "run/reference/compare.h"

#include <fmt/format.h>

#include <utility>

namespace capo::run {

namespace {

// The bound of a gradient. If nothing is rounded to bf16 or fp16 between what the layer read and
// the gradient, only fp32 sums differ.
double bound_of(const StepLayer& layer, const ParameterForm& form) {
  if (layer.shape.scaling) return error_bound(layer.shape);
  const bool exact = form.fused && is_one_product(layer.shape.kind) && !has_norm(layer.shape.kind);
  return error_bound(exact ? DataType::Fp32 : layer.shape.type);
}

template <typename Values>
std::vector<float> sum_of(const std::vector<const GroupedTensor*>& tensors, std::size_t elements,
                          Values values_of_one) {
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

}  // namespace

JudgedTensors::JudgedTensors(const Compared& of, RunReport& report)
    : of_(of), cells_(of.step.view().table()) {
  const auto& parameters = of_.layers.parameters();
  for (std::uint32_t p = 0; p < parameters.size(); ++p) {
    report.parameters.push_back({.name = parameters[p].name,
                                 .elements = parameters[p].groups * parameters[p].elements,
                                 .bound = bound_of(of_.layers.layer_of(p), parameters[p])});
  }
  for (std::uint32_t at = 0; at < cells_.count(); ++at) {
    const Cells::Cell cell = cells_.at(at);
    if (!gives_out(cell)) continue;
    const LayerShape& shape = of_.layers.at(cell.rank, cell.chunk, 0).shape;
    given_out_.push_back(at);
    report.input_gradients.push_back(
        {.name = fmt::format("input of chunk {} of rank {}, microbatch {}", cell.chunk, cell.rank,
                             cell.microbatch),
         .elements = shape.tokens * shape.hidden,
         .bound = error_bound(shape)});
  }
  for_each_side(
      [&](const StepLayer& layer, std::size_t, std::int32_t microbatch, const char* what, auto) {
        report.input_gradients.push_back(
            {.name = fmt::format("{} of layer {} of chunk {} of rank {}, microbatch {}", what,
                                 layer.layer, layer.chunk, layer.rank, microbatch),
             .elements = layer.shape.tokens,
             .bound = error_bound(layer.shape)});
      });
}

bool JudgedTensors::gives_out(const Cells::Cell& cell) const {
  if (table().layers(cell.rank, cell.chunk) == 0) return false;
  if (!of_.layers.at(cell.rank, cell.chunk, 0).shape.needs_grad_input) return false;
  const StageMap& map = *of_.step.replayed().map;
  return !map.wired() || map.before(map.stage_of(cell.rank, cell.chunk)) == kNoStage;
}

std::vector<const GroupedTensor*> JudgedTensors::summands(const StepOutputs& outcome,
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

std::vector<float> JudgedTensors::held(const StepOutputs& outcome, const Deposits& deposits,
                                       std::uint32_t parameter) const {
  const ParameterForm& form = of_.layers.parameters()[parameter];
  return sum_of(summands(outcome, deposits, parameter), as_index(form.groups * form.elements),
                [&](const GroupedTensor& tensor) { return values_of(of_.engine, tensor); });
}

std::vector<float> JudgedTensors::held(const StepOutputs& outcome, const Deposits& deposits,
                                       std::uint32_t parameter,
                                       const std::vector<std::int64_t>& at) const {
  return sum_of(summands(outcome, deposits, parameter), at.size(),
                [&](const GroupedTensor& tensor) { return values_at(of_.engine, tensor, at); });
}

GroupedTensor JudgedTensors::given_out_tensor(const StepOutputs& outcome,
                                              std::uint32_t cell) const {
  const Cells::Cell of = cells_.at(cell);
  const LayerShape& shape = of_.layers.at(of.rank, of.chunk, 0).shape;
  const std::size_t number = of_.layers.number(of.rank, of.chunk, 0);
  const std::int64_t rows =
      live_rows(shape, numbers_->sides[number][MicrobatchId(of.microbatch).index()]);
  return {.type = shape.type, .elements = rows * shape.hidden, .parts = {outcome.collected(cell)}};
}

std::vector<float> JudgedTensors::given_out(const StepOutputs& outcome, std::uint32_t cell) const {
  return values_of(of_.engine, given_out_tensor(outcome, cell));
}

DataType JudgedTensors::type_of(std::uint32_t cell) const {
  const Cells::Cell of = cells_.at(cell);
  return of_.layers.at(of.rank, of.chunk, 0).shape.type;
}

std::int64_t JudgedTensors::live_side(const StepLayer& layer, std::size_t number,
                                      std::int32_t microbatch) const {
  return live_rows(layer.shape, numbers_->sides[number][MicrobatchId(microbatch).index()]);
}

std::vector<float> JudgedTensors::side_values(const StepLayer& layer, std::size_t number,
                                              std::int32_t microbatch, const float* of) const {
  std::vector<float> values(as_index(live_side(layer, number, microbatch)));
  of_.engine.read(values.data(), of, static_cast<std::int64_t>(values.size() * sizeof(float)));
  return values;
}

}  // namespace capo::run

#include "core/base/index.h"
#include "run/judge.h"
#include "run/reference/compare.h"
#include "run/reference/step_parts.h"
#include "run/reference/step_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace capo::run {

namespace {

bool all_zero(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

// Eager execution compared with float64.
class BesideFloat64 {
 public:
  BesideFloat64(const JudgedTensors& tensors, const StepValues& numbers, RunReport& report)
      : tensors_(tensors), of_(tensors.of()), numbers_(numbers), report_(report) {}

  void eager(const std::vector<std::vector<float>>& parameters) {
    const StepReference reference =
        reference_of(of_.step, of_.layers, parameters, numbers_, stored_operands());
    report_.other_ways += reference.other_ways;
    for (const HandedOn& handed : reference.handed_on) {
      hold(handed.error, handed.bound, [&] { return name_of(handed); });
    }
    judge_parameters(reference);
    judge_inputs(reference);
    judge_sides(reference);
  }

  void sample(const FloatSample& sample) {
    report_.sampled = {.samples = sample.count, .seed = sample.seed};
    const SampledReference reference =
        sampled_reference(of_.step, of_.layers, of_.parameters, numbers_, stored_rows(), sample);
    report_.other_ways += reference.other_ways;
    for (const HandedOn& handed : reference.handed_on) {
      hold(handed.error, handed.bound, [&] { return name_of(handed); });
      hold_element(handed.element_error, handed.bound, name_of(handed));
      count_sampled(handed.elements);
    }
    judge_parameters(reference);
    judge_inputs(reference);
    judge_sides(reference);
  }

 private:
  void judge_parameters(const StepReference& reference) {
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (is_frozen(p)) continue;
      const std::vector<float> is = tensors_.held(of_.eager, of_.eager_deposits, p);
      const auto sizes = sizes_in(reference.magnitudes[p], of_.layers.parameters()[p].type);
      TensorReport& report = report_.parameters[p];
      judge(report, is, relative_error(reference.gradients[p], is, sizes));
      double& ascending = report.ascending_error.emplace(report.ascending_error.value_or(0));
      ascending = std::max(ascending, relative_error(reference.ascending[p], is, sizes));
    }
  }

  void judge_inputs(const StepReference& reference) {
    for (std::size_t i = 0; i < tensors_.cells_given_out().size(); ++i) {
      const std::uint32_t cell = tensors_.cells_given_out()[i];
      const std::vector<float> is = tensors_.given_out(of_.eager, cell);
      std::vector<double> should = reference.grad_inputs[cell];
      should.resize(is.size());
      std::vector<double> sizes = reference.grad_input_magnitudes[cell];
      sizes.resize(is.size());
      judge(report_.input_gradients[i], is,
            relative_error(should, is, sizes_in(sizes, tensors_.type_of(cell))));
    }
  }

  void judge_sides(const StepReference& reference) {
    std::size_t at = tensors_.first_side();
    tensors_.for_each_side(
        [&](const StepLayer& layer, std::size_t number, std::int32_t m, const char*, auto member) {
          const std::vector<float> is =
              tensors_.side_values(layer, number, m, of_.eager.side(number, m).*member);
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

  void judge(TensorReport& tensor, const std::vector<float>& is, double error) {
    if (!is.empty()) tensor.zero = tensor.zero.value_or(true) && all_zero(is);
    tensor.float64_error = std::max(tensor.float64_error, error);
    hold(error, tensor.bound, [&] { return tensor.name; });
  }

  void judge_parameters(const SampledReference& reference) {
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (is_frozen(p)) continue;
      const SampledTensor& tensor = reference.gradients[p];
      const auto is = tensors_.held(of_.eager, of_.eager_deposits, p, tensor.at);
      TensorReport& report = report_.parameters[p];
      const DataType type = of_.layers.parameters()[p].type;
      judge_sampled(report, tensor, is, type);
      if (tensor.at.empty()) continue;
      report.ascending_error = relative_error(tensor.ascending, is, sizes_in(tensor.sizes, type));
    }
  }

  void judge_inputs(const SampledReference& reference) {
    for (std::size_t i = 0; i < tensors_.cells_given_out().size(); ++i) {
      const std::uint32_t cell = tensors_.cells_given_out()[i];
      const SampledTensor& tensor = reference.grad_inputs[cell];
      const auto is = values_at(of_.engine, tensors_.given_out_tensor(of_.eager, cell), tensor.at);
      judge_sampled(report_.input_gradients[i], tensor, is, tensors_.type_of(cell));
    }
  }

  void judge_sides(const SampledReference& reference) {
    std::size_t at = tensors_.first_side();
    tensors_.for_each_side([&](const StepLayer& layer, std::size_t number, std::int32_t m,
                               const char*, auto member) {
      const auto& side = reference.sides[number][as_index(m)];
      const SampledTensor& tensor =
          member == &StepOutputs::SideGradients::scales ? side.scales : side.probabilities;
      const auto all = tensors_.side_values(layer, number, m, of_.eager.side(number, m).*member);
      std::vector<float> is;
      for (const std::int64_t row : tensor.at) is.push_back(all[as_index(row)]);
      judge_sampled(report_.input_gradients[at++], tensor, is, layer.shape.type);
    });
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
          gradient ? of_.expected->grad_output(number, m) : of_.expected->input(number, m);
      return rows_at(begin, shape.type, gradient ? output_columns(shape) : shape.hidden, first,
                     count);
    };
    const auto given_out = [this, rows_at](std::uint32_t cell, std::int64_t row) {
      const Cells::Cell of = tensors_.cells().at(cell);
      if (!tensors_.gives_out(of)) return std::vector<float>();
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
      for (std::int32_t m = 0; m < tensors_.table().microbatches(); ++m) {
        const auto values = [&](std::byte* from, std::int64_t columns) {
          return values_of(
              of_.engine,
              {.type = shape.type, .elements = shape.tokens * columns, .parts = {from}});
        };
        inputs.push_back(values(of_.expected->input(number, m), shape.hidden));
        grad_outputs.push_back(values(of_.expected->grad_output(number, m), output_columns(shape)));
        const BetweenHalves between = of_.expected->between(number, m);
        if (between.sum != nullptr) {
          sums.push_back(values(between.sum, shape.hidden));
          sum_gradients.push_back(values(between.gradient, shape.hidden));
        }
        const std::byte* chosen = of_.expected->chosen(number, m);
        auto& of_tokens = choices.emplace_back();
        if (chosen == nullptr) continue;
        of_tokens.resize(as_index(product_rows(shape)));
        of_.engine.read(of_tokens.data(), chosen, std::ssize(of_tokens) * 8);
      }
    }
    stored.given_out.resize(tensors_.cells().count());
    for (const std::uint32_t cell : tensors_.cells_given_out())
      stored.given_out[cell] = tensors_.given_out(of_.eager, cell);
    return stored;
  }

  [[nodiscard]] bool is_frozen(std::uint32_t parameter) const {
    const ParameterCells cells =
        cells_of(of_.layers.layer_of(parameter), of_.layers.parameters()[parameter].role,
                 gradients::Contract::Sound);
    return cells.whole.written == gradients::Written::Never &&
           cells.whole.returned == gradients::Returned::Nothing;
  }

  const JudgedTensors& tensors_;
  const Compared& of_;
  const StepValues& numbers_;
  RunReport& report_;
};

}  // namespace

void Judge::judge_eager(const StepValues& numbers) {
  tensors_->of_numbers(numbers);
  if (parameters_.empty()) {
    for (const DrawnTensor& drawn : tensors_->of().parameters) {
      parameters_.push_back(values_of(drawn));
    }
  }
  BesideFloat64(*tensors_, numbers, report_).eager(parameters_);
}

void Judge::judge_sample(const StepValues& numbers, const FloatSample& sample) {
  tensors_->of_numbers(numbers);
  BesideFloat64(*tensors_, numbers, report_).sample(sample);
}

}  // namespace capo::run

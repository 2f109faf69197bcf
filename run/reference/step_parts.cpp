#include "run/reference/step_parts.h"

#include "core/base/index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace capo::run {

namespace {

// Adds the gradients of a step up.
class AddedUp {
 public:
  AddedUp(const PlannedStep& step, const StepLayers& layers, const Contributions& contributions)
      : step_(step), layers_(layers), contributions_(contributions) {}

  GradientSums run() {
    const std::size_t parameters = layers_.parameters().size();
    sums_.gradients.resize(parameters);
    sums_.ascending.resize(parameters);
    sums_.magnitudes.resize(parameters);
    for (std::uint32_t parameter = 0; parameter < parameters; ++parameter) add_ascending(parameter);
    const Course& course = step_.replayed();
    for (std::size_t r = 0; r < course.work.size(); ++r) {
      for (const Work& work : course.work[r]) add(static_cast<std::int32_t>(r), work);
    }
    return std::move(sums_);
  }

 private:
  void add_ascending(std::uint32_t parameter) {
    std::size_t elements = 0;
    for (const auto& one : contributions_[parameter]) elements = std::max(elements, one.size());
    sums_.gradients[parameter].assign(elements, 0);
    sums_.ascending[parameter].assign(elements, 0);
    sums_.magnitudes[parameter].assign(elements, 0);
    for (const auto& one : contributions_[parameter]) {
      for (std::size_t i = 0; i < one.size(); ++i) {
        sums_.ascending[parameter][i] += one[i];
        sums_.magnitudes[parameter][i] += std::abs(one[i]);
      }
    }
  }

  // Gradients of norms come with every backward, and so may those of biases; all others with a
  // whole one, or with W.
  void add(std::int32_t rank, const Work& work) {
    if (work.kind == Kind::Forward) return;
    const bool whole = is_backward(work.kind) && !work.delayed;
    const std::int32_t first = work.layer == kAllLayers ? 0 : work.layer;
    const std::int32_t end =
        work.layer == kAllLayers ? step_.view().table().layers(rank, work.chunk) : first + 1;
    for (std::int32_t at = first; at < end; ++at) {
      const StepLayer& layer = layers_.at(rank, work.chunk, at);
      for (const Role role : kAllRoles) {
        const std::uint32_t parameter = layer.parameter[as_index(role)];
        if (parameter == kNoParameter) continue;
        const bool bias = role == Role::FirstBias || role == Role::SecondBias;
        const bool with_backward = role == Role::NormWeight || role == Role::NormBias ||
                                   (bias && layer.bias_with_backward);
        const bool now =
            with_backward ? is_backward(work.kind) : whole || work.kind == Kind::BackwardWeight;
        if (now) add_one(parameter, work.microbatch, with_backward || whole);
      }
    }
  }

  void add_one(std::uint32_t parameter, std::int32_t microbatch, bool returned) {
    const ParameterForm& form = layers_.parameters()[parameter];
    const std::vector<double>& one = contributions_[parameter][MicrobatchId(microbatch).index()];
    std::vector<double>& sum = sums_.gradients[parameter];
    const DataType type = form.fused ? DataType::Fp32 : form.type;
    const auto stored = [&](double value) { return reference::rounded(value, type); };
    for (std::size_t i = 0; i < one.size(); ++i) {
      // A gradient that goes through autograd is rounded before it is added.
      const double next = returned && !form.fused ? stored(one[i]) : one[i];
      sum[i] = stored(sum[i] + next);
    }
  }

  const PlannedStep& step_;
  const StepLayers& layers_;
  const Contributions& contributions_;
  GradientSums sums_;
};

}  // namespace

reference::LayerForm form_of(const LayerShape& shape) {
  return {.kind = shape.kind,
          .type = shape.type,
          .tokens = shape.tokens,
          .hidden = shape.hidden,
          .ffn = shape.ffn,
          .groups = shape.groups,
          .bias = shape.bias,
          .scale_bias = shape.scale_bias};
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::int64_t live_rows(const LayerShape& shape, const StepValues::Side& side) {
  if (!shape.grouped) return shape.tokens;
  return std::accumulate(side.sizes.begin(), side.sizes.end(), std::int64_t{0});
}

GradientSums sums_of(const PlannedStep& step, const StepLayers& layers,
                     const Contributions& contributions) {
  return AddedUp(step, layers, contributions).run();
}

}  // namespace capo::run

#include "run/reference/step_parts.h"

#include "core/base/index.h"
#include "run/reference/compare.h"
#include "run/reference/rounder.h"
#include "run/setup/reductions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

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
      const std::span<const Work> all(course.work[r]);
      for (std::size_t at = 0; at < all.size();) {
        const std::size_t calls = in_call(all.subspan(at));
        add(static_cast<std::int32_t>(r), all.subspan(at, calls));
        at += calls;
      }
    }
    return std::move(sums_);
  }

 private:
  // The number of pieces of work at the beginning that are one call.
  static std::size_t in_call(std::span<const Work> all) {
    std::size_t count = 1;
    while (count < all.size() && count < kMostFusedWeights && all[count].joins &&
           in_one_call(all[count - 1], all[count])) {
      ++count;
    }
    return count;
  }

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
  // whole one, or with W. A call sums up products alone, so that biases come one by one.
  void add(std::int32_t rank, std::span<const Work> call) {
    const Work& work = call.front();
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
        const bool bias = is_bias(role);
        const bool with_backward = is_of_norm(role) || (bias && layer.bias_with_backward);
        const bool now =
            with_backward ? is_backward(work.kind) : whole || work.kind == Kind::BackwardWeight;
        if (!now) continue;
        if (bias || call.size() == 1) {
          for (const Work& each : call) {
            add_one(parameter, contribution(parameter, each), with_backward || whole);
          }
        } else {
          add_one(parameter, summed(parameter, call), with_backward || whole);
        }
      }
    }
  }

  [[nodiscard]] const std::vector<double>& contribution(std::uint32_t parameter,
                                                        const Work& work) const {
    return contributions_[parameter][MicrobatchId(work.microbatch).index()];
  }

  // The microbatches of one call are summed before anything is rounded.
  [[nodiscard]] std::vector<double> summed(std::uint32_t parameter,
                                           std::span<const Work> call) const {
    std::vector<double> sum = contribution(parameter, call.front());
    for (const Work& further : call.subspan(1)) {
      const std::vector<double>& one = contribution(parameter, further);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    return sum;
  }

  void add_one(std::uint32_t parameter, const std::vector<double>& one, bool returned) {
    const ParameterForm& form = layers_.parameters()[parameter];
    std::vector<double>& sum = sums_.gradients[parameter];
    const DataType type = form.fused ? DataType::Fp32 : form.type;
    const reference::Rounder stored(type);
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
  using reference::Coding;
  Coding coding = Coding::None;
  if (shape.scaling) coding = *shape.scaling == Scaling::Block ? Coding::Block : Coding::Mxfp8;
  return {.kind = shape.kind,
          .type = shape.type,
          .tokens = shape.tokens,
          .hidden = shape.hidden,
          .ffn = shape.ffn,
          .groups = shape.groups,
          .top_k = shape.top_k,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .sequence = shape.sequence,
          .bias = shape.bias,
          .scale_bias = shape.scale_bias,
          .coding = coding};
}

double error_bound(const LayerShape& shape) {
  if (!shape.scaling) return error_bound(shape.type);
  const bool given = is_one_product(shape.kind) && !has_norm(shape.kind);
  return given ? error_bound(DataType::Bf16) : kCodedBound;
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

void reduce(const PlannedStep& step, const StepLayers& layers, GradientSums& sums) {
  const auto add = [](std::vector<double>& sum, const std::vector<double>& one, auto rounded) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rounded(sum[i] + one[i]);
  };
  const auto exact = [](double value) { return value; };
  for (const Reduction& reduction : reductions_due(step)) {
    for (const auto& of_ranks : reduced_parameters(layers, step.view().table(), reduction)) {
      const std::uint32_t first = of_ranks.front();
      const ParameterForm& form = layers.parameters()[first];
      const reference::Rounder stored(form.fused ? DataType::Fp32 : form.type);
      for (std::size_t i = 1; i < of_ranks.size(); ++i) {
        add(sums.gradients[first], sums.gradients[of_ranks[i]], stored);
        add(sums.ascending[first], sums.ascending[of_ranks[i]], exact);
        add(sums.magnitudes[first], sums.magnitudes[of_ranks[i]], exact);
      }
      for (const std::uint32_t parameter : of_ranks) {
        sums.gradients[parameter] = sums.gradients[first];
        sums.ascending[parameter] = sums.ascending[first];
        sums.magnitudes[parameter] = sums.magnitudes[first];
      }
    }
  }
}

}  // namespace capo::run

#include "core/frameworks/megatron/ep_overlap.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo {

namespace {

Step node(const Step& of, Kind kind, Part part, std::uint8_t slot) {
  Step step = of;
  step.kind = kind;
  step.part = part;
  step.slot = slot & 0xF;
  step.group = Group::Alone;
  step.wait = Wait::ByReader;
  return step;
}

Step at_layer(const Step& of, std::size_t layer) {
  Step step = of;
  step.layer = static_cast<std::uint16_t>(layer);
  return step;
}

class Expansion {
 public:
  Expansion(const std::vector<std::int32_t>& layers, const EpOverlap& options)
      : layers_(layers), options_(options) {}

  void forward(const Step& step) {
    for (std::size_t layer = 0; layer < layers_of(step); ++layer) forward_layer(step, layer);
  }

  void backward(const Step& step) {
    for (std::size_t layer = layers_of(step); layer-- > 0;) backward_layer(step, layer);
    last_weight(step);
  }

  // The forward runs from its first layer on beside the backward from its last.
  void pair(const Step& forward, const Step& backward) {
    const std::size_t forwards = layers_of(forward);
    const std::size_t backwards = layers_of(backward);
    const std::size_t together = std::min(forwards, backwards);
    for (std::size_t i = 0; i < together; ++i) {
      const std::size_t layer = backwards - 1 - i;
      const auto slots =
          combined_layers(at_layer(forward, i), at_layer(backward, layer), layer == 0, options_);
      steps.insert(steps.end(), slots.begin(), slots.end());
    }
    for (std::size_t layer = backwards - together; layer-- > 0;) backward_layer(backward, layer);
    for (std::size_t layer = together; layer < forwards; ++layer) forward_layer(forward, layer);
    last_weight(backward);
  }

  // Both halves of a layer's W come in the order of slots 6 and 13.
  void weight(const Step& step) {
    steps.push_back(node(step, Kind::BackwardWeight, Part::Experts, 0));
    steps.push_back(node(step, Kind::BackwardWeight, Part::PreDispatch, 0));
  }

  std::vector<Step> steps;

 private:
  [[nodiscard]] std::size_t layers_of(const Step& step) const {
    return as_index(layers_[step.chunk.index()]);
  }

  void forward_layer(const Step& step, std::size_t layer) {
    const Step f = at_layer(step, layer);
    steps.push_back(node(f, Kind::Forward, Part::PreDispatch, 0));
    steps.push_back(node(f, Kind::DispatchForward, Part::Whole, 0));
    steps.push_back(node(f, Kind::Forward, Part::Experts, 0));
    steps.push_back(node(f, Kind::CombineForward, Part::Whole, 0));
    if (options_.multi_token_prediction)
      steps.push_back(node(f, Kind::Forward, Part::PostProcess, 0));
  }

  void backward_layer(const Step& step, std::size_t layer) {
    const Step b = at_layer(step, layer);
    if (options_.multi_token_prediction) steps.push_back(node(b, b.kind, Part::PostProcess, 0));
    steps.push_back(node(b, Kind::CombineBackward, Part::Whole, 0));
    steps.push_back(node(b, b.kind, Part::Experts, 0));
    if (options_.delayed_weights) steps.push_back(node(b, Kind::BackwardWeight, Part::Experts, 0));
    steps.push_back(node(b, Kind::DispatchBackward, Part::Whole, 0));
    steps.push_back(node(b, b.kind, Part::PreDispatch, 0));
    if (options_.delayed_weights && layer > 0)
      steps.push_back(node(b, Kind::BackwardWeight, Part::PreDispatch, 0));
  }

  // The weight gradient of the chunk's first layer comes after everything else of the step.
  void last_weight(const Step& backward) {
    if (options_.delayed_weights)
      steps.push_back(node(at_layer(backward, 0), Kind::BackwardWeight, Part::PreDispatch, 0));
  }

  const std::vector<std::int32_t>& layers_;
  const EpOverlap& options_;
};

}  // namespace

std::vector<Step> combined_layers(const Step& forward, const Step& backward, bool first_layer,
                                  const EpOverlap& options) {
  std::vector<Step> slots;
  const auto f = [&](std::uint8_t slot, Kind kind, Part part) {
    slots.push_back(node(forward, kind, part, slot));
  };
  const auto b = [&](std::uint8_t slot, Kind kind, Part part) {
    slots.push_back(node(backward, kind, part, slot));
  };
  if (options.multi_token_prediction) b(1, backward.kind, Part::PostProcess);
  b(2, Kind::CombineBackward, Part::Whole);
  f(3, Kind::Forward, Part::PreDispatch);
  b(4, backward.kind, Part::Experts);
  f(5, Kind::DispatchForward, Part::Whole);
  if (options.delayed_weights) b(6, Kind::BackwardWeight, Part::Experts);
  b(7, Kind::DispatchBackward, Part::Whole);
  if (options.early_release) b(8, backward.kind, Part::PreDispatch);
  f(9, Kind::Forward, Part::Experts);
  f(10, Kind::CombineForward, Part::Whole);
  if (!options.early_release) b(11, backward.kind, Part::PreDispatch);
  if (options.multi_token_prediction) f(12, Kind::Forward, Part::PostProcess);
  if (options.delayed_weights && !first_layer) b(13, Kind::BackwardWeight, Part::PreDispatch);
  return slots;
}

Lowered take_layers_apart(const Lowered& lowered,
                          const std::vector<std::vector<std::int32_t>>& layers,
                          const EpOverlap& options) {
  Lowered apart;
  for (std::size_t r = 0; r < lowered.ranks.size(); ++r) {
    const StepList& steps = lowered.ranks[r];
    Expansion expansion(layers[r], options);
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const Step& step = steps[at];
      // The step that opens a composite may be all of it.
      const bool paired = step.kind == Kind::Forward && step.group == Group::Opens &&
                          at + 1 < steps.size() && steps[at + 1].group == Group::Continues &&
                          is_backward(steps[at + 1].kind);
      if (paired) {
        expansion.pair(step, steps[++at]);
      } else if (step.kind == Kind::Forward) {
        expansion.forward(step);
      } else if (is_backward(step.kind)) {
        expansion.backward(step);
      } else {
        expansion.steps.push_back(step);
      }
    }
    apart.ranks.emplace_back(std::move(expansion.steps));
  }
  return apart;
}

namespace {

bool is_of_same_microbatch(const Step& a, const Step& b) {
  return a.chunk == b.chunk && a.microbatch == b.microbatch;
}

// Whether the step at `at` is the weight gradient of `of`.
bool is_weight_of(const Step& of, const StepList& steps, std::size_t at) {
  return at < steps.size() && steps[at].kind == Kind::BackwardWeight &&
         is_of_same_microbatch(of, steps[at]);
}

std::vector<Step> take_list_apart(const StepList& steps, const EpOverlap& options) {
  std::int32_t chunks = 0;
  for (const Step& step : steps) chunks = std::max<std::int32_t>(chunks, step.chunk);
  const std::vector<std::int32_t> one_layer(as_index(chunks), 1);
  EpOverlap whole = options;
  whole.delayed_weights = false;
  EpOverlap delayed = options;
  delayed.delayed_weights = true;

  std::vector<Step> apart;
  const auto append = [&](const std::vector<Step>& nodes) {
    apart.insert(apart.end(), nodes.begin(), nodes.end());
  };
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const Step& step = steps[at];
    const bool paired = step.kind == Kind::Forward && at + 1 < steps.size() &&
                        is_backward(steps[at + 1].kind) &&
                        !is_of_same_microbatch(step, steps[at + 1]);
    if (paired) {
      const Step& backward = steps[++at];
      const bool with_weight = is_weight_of(backward, steps, at + 1);
      append(combined_layers(step, backward, false, with_weight ? delayed : whole));
      if (with_weight) ++at;
      continue;
    }
    const bool with_weight = is_backward(step.kind) && is_weight_of(step, steps, at + 1);
    Expansion alone(one_layer, with_weight ? delayed : whole);
    if (step.kind == Kind::Forward) {
      alone.forward(step);
    } else if (is_backward(step.kind)) {
      alone.backward(step);
    } else if (step.kind == Kind::BackwardWeight) {
      alone.weight(step);
    } else {
      alone.steps.push_back(step);
    }
    append(alone.steps);
    if (with_weight) ++at;
  }
  return apart;
}

}  // namespace

Lowered take_listed_layers_apart(const Lowered& lowered, const EpOverlap& options) {
  Lowered apart;
  for (const StepList& steps : lowered.ranks) {
    apart.ranks.emplace_back(take_list_apart(steps, options));
  }
  return apart;
}

}  // namespace capo

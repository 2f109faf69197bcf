// The calls of a layer, of stepper.h: where it finds what it reads, what is copied in, and the
// weight gradients that are one call.

#include "core/base/assert.h"
#include "run/execute/stepper.h"
#include "run/modules/module.h"

#include <vector>

namespace capo::run {

void Stepper::launch_layer(const OpPart& part, std::int32_t at, bool first, Mode mode,
                           StreamId stream) {
  const Sink sink = [&](const Call& call) { launch(stream, call); };
  if (is_weight(part.work)) return launch_weights(part, at, mode, sink);
  const StepLayer& layer = loaded_.layers.at(part.rank, part.work.chunk, at);
  LayerPlaces places = view_.places(part.rank, part.work, at);
  copy_in(part, at, first, mode, places, stream);
  if (is_backward(part.work.kind) && mode != Mode::Eager) take_lent_place(part, at, places, stream);
  const bool kept = mode == Mode::Eager && expected_ != nullptr;
  if (kept) keep_expected(part, at, places, stream);
  const bool is_forward = part.work.kind == Kind::Forward;
  const BufferId makes =
      loaded_.table().id(part.rank, part.work.chunk, at, part.work.microbatch,
                         is_forward ? BufferKind::Output : BufferKind::GradInput);
  std::byte* const to = is_forward ? places.output : places.grad_input;
  std::byte* const made = memory_.made_at(makes);
  if (made != nullptr) (is_forward ? places.output : places.grad_input) = made;
  LayerParameters parameters = view_.parameters(layer);
  if (loaded_.hooks.substitute_saved) saved_.substitute(layer, part.work, places, parameters);
  const LayerSide side = view_.side(layer, part.work, places);
  if (is_forward) {
    const bool makes_codes = layer.codes_age == WeightCache::Device && part.work.microbatch == 0;
    if (makes_codes && mode != Mode::Eager) make_codes_anew(loaded_, layer, sink);
    forward(layer.shape, places, side, parameters, sink);
  } else {
    LayerShape shape = layer.shape;
    if (mode != Mode::Eager && loaded_.samples.without_gradient.contains(input_of(part, at))) {
      shape.needs_grad_input = false;
    }
    backward(shape, part.work.delayed ? Reach::InputHalf : Reach::Whole, places, side, parameters,
             view_.targets(layer, part.work), sink);
  }
  if (kept) keep_decided(part, at, places, stream);
  if (made != nullptr)
    launch(stream, Copy{.bytes = loaded_.table().bytes(makes), .from = made, .to = to});
}

std::byte* Stepper::lent_place(std::int32_t rank, const Work& work, std::int32_t at) const {
  const auto lent = loaded_.lent.find(
      loaded_.table().id(rank, work.chunk, at, work.microbatch, BufferKind::Activations));
  return lent == loaded_.lent.end() ? nullptr : lent->second;
}

void Stepper::take_lent_place(const OpPart& part, std::int32_t at, LayerPlaces& places,
                              StreamId stream) {
  std::byte* const lent = lent_place(part.rank, part.work, at);
  if (lent == nullptr) return;
  const BufferId kept = loaded_.table().id(part.rank, part.work.chunk, at, part.work.microbatch,
                                           BufferKind::Activations);
  launch(stream,
         Copy{.bytes = loaded_.table().bytes(kept), .from = places.activations, .to = lent});
  places.activations = lent;
}

// Weight gradients copy nothing in.
void Stepper::launch_weights(const OpPart& part, std::int32_t at, Mode mode, const Sink& sink) {
  const StepLayer& layer = loaded_.layers.at(part.rank, part.work.chunk, at);
  std::vector<WeightPass> passes;
  for_each_work(part, [&](const Work& work) {
    LayerPlaces places = view_.places(part.rank, work, at);
    std::byte* const lent = mode == Mode::Eager ? nullptr : lent_place(part.rank, work, at);
    if (lent != nullptr) places.activations = lent;
    LayerParameters parameters = view_.parameters(layer);
    if (loaded_.hooks.substitute_saved) saved_.substitute(layer, work, places, parameters);
    passes.push_back({.places = places,
                      .side = view_.side(layer, work, places),
                      .targets = view_.targets(layer, work)});
  });
  weight_gradients(layer.shape, passes, sink);
}

const std::byte* Stepper::origin_of(const OpPart& part, const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::Given:
      return part.way == Way::Forward ? loaded_.inputs.input(origin.id)
                                      : loaded_.inputs.grad_output(origin.id);
    case Origin::Kind::Buffer:
      return memory_.at(origin.id);
    case Origin::Kind::Landing:
      return loaded_.inputs.landing(origin.id, part.way);
    case Origin::Kind::Exchanged:
      return loaded_.inputs.route(origin.id).returned;
    case Origin::Kind::Permuted:
      return loaded_.inputs.route(origin.id).arrived;
  }
  CAPO_UNREACHABLE();
}

BufferId Stepper::input_of(const OpPart& part, std::int32_t at) const {
  return loaded_.table().id(part.rank, part.work.chunk, at, part.work.microbatch,
                            BufferKind::StaticInput);
}

void Stepper::copy_in(const OpPart& part, std::int32_t at, bool first, Mode mode,
                      const LayerPlaces& places, StreamId stream) {
  const Work& work = part.work;
  const StepLayer& layer = loaded_.layers.at(part.rank, work.chunk, at);
  const bool is_forward = work.kind == Kind::Forward;
  const BufferId incoming =
      loaded_.table().id(part.rank, work.chunk, at, work.microbatch, BufferKind::GradOutput);
  if (!is_forward && mode != Mode::Eager && loaded_.samples.zeros.contains(incoming)) {
    return launch(stream,
                  Fill{.bytes = output_bytes(layer.shape), .value = 0, .to = places.grad_output});
  }
  const auto neighbour = [&] {
    return memory_.at(loaded_.table().id(part.rank, work.chunk, is_forward ? at - 1 : at + 1,
                                         work.microbatch,
                                         is_forward ? BufferKind::Output : BufferKind::GradInput));
  };
  const std::byte* from = first ? origin_of(part, part.origin) : neighbour();
  std::byte* to = is_forward ? places.input : places.grad_output;
  if (from != to) {  // a layer may read the tensor itself that its neighbour made
    launch(stream,
           Copy{.bytes = is_forward ? input_row_bytes(layer.shape) : output_bytes(layer.shape),
                .from = from,
                .to = to});
  }
  if (!is_forward || !layer.sizes_in_input) return;
  const std::size_t number = loaded_.layers.number(part.rank, work.chunk, at);
  launch(stream, Copy{.bytes = layer.shape.groups * 8,
                      .from = loaded_.inputs.side(number, work.microbatch).sizes,
                      .to = places.input + sizes_offset(layer.shape)});
}

}  // namespace capo::run

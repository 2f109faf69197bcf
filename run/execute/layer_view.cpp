// LayerView and SavedTensors of stepper.h.

#include "core/base/index.h"
#include "run/execute/stepper.h"

namespace capo::run {

LayerPlaces LayerView::places(std::int32_t rank, const Work& work, std::int32_t layer) const {
  const auto at = [&](BufferKind kind) {
    return memory_.at(loaded_.table().id(rank, work.chunk, layer, work.microbatch, kind));
  };
  const bool keeps_weight = loaded_.table().facts(rank, work.chunk, layer).keeps_quantized_weight;
  return {.input = at(BufferKind::StaticInput),
          .grad_output = at(BufferKind::GradOutput),
          .output = at(BufferKind::Output),
          .grad_input = at(BufferKind::GradInput),
          .activations = at(BufferKind::Activations),
          .operands = at(BufferKind::Operands),
          .scratch = at(BufferKind::Scratch),
          .quantized_weight = keeps_weight ? at(BufferKind::QuantizedWeight) : nullptr};
}

LayerSide LayerView::side(const StepLayer& layer, const Work& work,
                          const LayerPlaces& places) const {
  const std::size_t number = loaded_.layers.number(layer.rank, layer.chunk, layer.layer);
  LayerSide side = loaded_.inputs.side(number, work.microbatch);
  const StepOutputs::SideGradients& gradients = outputs_.side(number, work.microbatch);
  side.grad_probabilities = gradients.probabilities;
  side.grad_scales = gradients.scales;
  // A weight gradient whose operand is a copy finds its sizes beside that copy.
  const bool in_input = !is_weight(work) || !layer.shape.copies_input;
  if (layer.sizes_in_input && in_input) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
    side.sizes = reinterpret_cast<const std::int64_t*>(places.input + sizes_offset(layer.shape));
  }
  return side;
}

LayerParameters LayerView::parameters(const StepLayer& layer) const {
  const auto tensor = [&](Role role) -> const GroupedTensor* {
    const std::uint32_t parameter = layer.parameter[as_index(role)];
    return parameter == kNoParameter ? nullptr : &loaded_.parameters[parameter];
  };
  const auto table = [&](Role role) { return tensor(role) ? tensor(role)->table : nullptr; };
  const auto data = [&](Role role) { return tensor(role) ? tensor(role)->parts.front() : nullptr; };
  const auto codes = [&](Role role) {
    const std::uint32_t parameter = layer.parameter[as_index(role)];
    return parameter == kNoParameter ? CodedWeight{} : loaded_.coded[parameter];
  };
  return {.norm_weight = data(Role::NormWeight),
          .norm_bias = data(Role::NormBias),
          .router = table(Role::Router),
          .first = table(Role::First),
          .first_bias = table(Role::FirstBias),
          .second = table(Role::Second),
          .second_bias = table(Role::SecondBias),
          .attention_norm_weight = data(Role::AttentionNormWeight),
          .attention_norm_bias = data(Role::AttentionNormBias),
          .qkv = table(Role::Qkv),
          .qkv_bias = table(Role::QkvBias),
          .projection = table(Role::Projection),
          .projection_bias = table(Role::ProjectionBias),
          .first_codes = codes(Role::First),
          .second_codes = codes(Role::Second),
          .qkv_codes = codes(Role::Qkv),
          .projection_codes = codes(Role::Projection)};
}

LayerTargets LayerView::targets(const StepLayer& layer, const Work& work) const {
  const auto target = [&](Role role) -> Target {
    const std::uint32_t parameter = layer.parameter[as_index(role)];
    if (parameter == kNoParameter) return {};
    const Deposit& deposit = deposits_.of(parameter, work.microbatch, is_weight(work));
    if (deposit.into == Deposit::Into::Nothing) return {};
    const GradientMemory& memory = outputs_.gradients(parameter);
    const bool own = !memory.own.empty();
    const GroupedTensor& tensor = own ? memory.own[MicrobatchId(work.microbatch).index()]
                                  : deposit.into == Deposit::Into::Grad     ? memory.grad
                                  : deposit.into == Deposit::Into::MainGrad ? memory.main_grad
                                                                            : memory.returned;
    return {.wanted = true,
            .type = tensor.type,
            .write = own ? Write::Overwrite : deposit.write,
            .table = tensor.table,
            .data = tensor.parts.front()};
  };
  return {.norm_weight = target(Role::NormWeight),
          .norm_bias = target(Role::NormBias),
          .router = target(Role::Router),
          .first = target(Role::First),
          .first_bias = target(Role::FirstBias),
          .second = target(Role::Second),
          .second_bias = target(Role::SecondBias),
          .attention_norm_weight = target(Role::AttentionNormWeight),
          .attention_norm_bias = target(Role::AttentionNormBias),
          .qkv = target(Role::Qkv),
          .qkv_bias = target(Role::QkvBias),
          .projection = target(Role::Projection),
          .projection_bias = target(Role::ProjectionBias)};
}

void SavedTensors::substitute(const StepLayer& layer, const Work& work, LayerPlaces& places,
                              LayerParameters& parameters) {
  if (work.kind == Kind::Forward) return;
  const std::size_t number = loaded_.layers.number(layer.rank, layer.chunk, layer.layer);
  const auto& bytes = loaded_.table().facts(layer.rank, layer.chunk, layer.layer).bytes;
  const auto known = left_.find({number, work.microbatch});
  const LayerPlaces saved = known == left_.end() ? places : known->second;
  places.input = copy_of(saved.input, bytes[as_index(BufferKind::StaticInput)]);
  places.activations = copy_of(saved.activations, bytes[as_index(BufferKind::Activations)]);
  places.quantized_weight =
      copy_of(saved.quantized_weight, bytes[as_index(BufferKind::QuantizedWeight)]);
  left_[{number, work.microbatch}] = places;
  const auto norm = [&](void*& weight, Role role) {
    if (weight != nullptr) weight = copy_of(layer, role).parts.front();
  };
  norm(parameters.norm_weight, Role::NormWeight);
  norm(parameters.attention_norm_weight, Role::AttentionNormWeight);
  parameters.router = copy_of(layer, Role::Router).table;
  parameters.first = copy_of(layer, Role::First).table;
  parameters.second = copy_of(layer, Role::Second).table;
  parameters.qkv = copy_of(layer, Role::Qkv).table;
  parameters.projection = copy_of(layer, Role::Projection).table;
}

std::byte* SavedTensors::copy_of(std::byte* saved, std::int64_t bytes) {
  if (saved == nullptr) return nullptr;
  std::byte* copy = loaded_.engine.allocate(bytes, "substituted tensors");
  loaded_.engine.launch(0, Copy{.bytes = bytes, .from = saved, .to = copy});
  return copy;
}

GroupedTensor SavedTensors::copy_of(const StepLayer& layer, Role role) {
  const std::uint32_t parameter = layer.parameter[as_index(role)];
  if (parameter == kNoParameter) return {};
  const GroupedTensor& of = loaded_.parameters[parameter];
  GroupedTensor copy = make_tensor(loaded_.engine, loaded_.layers.parameters()[parameter], of.type);
  for (std::size_t part = 0; part < of.parts.size(); ++part) {
    loaded_.engine.launch(
        0, Copy{.bytes = of.part_bytes(), .from = of.parts[part], .to = copy.parts[part]});
  }
  return copy;
}

}  // namespace capo::run

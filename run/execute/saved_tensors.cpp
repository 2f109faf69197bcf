#include "run/execute/saved_tensors.h"

namespace capo::run {

void SavedTensors::substitute(const StepLayer& layer, const Work& work, LayerPlaces& places,
                              LayerParameters& parameters) {
  if (work.kind == Kind::Forward) return;
  const std::size_t number = stage_.layers.number(layer.rank, layer.chunk, layer.layer);
  const auto& bytes = stage_.table().facts(layer.rank, layer.chunk, layer.layer).bytes;
  const auto known = left_.find({number, work.microbatch});
  const LayerPlaces saved = known == left_.end() ? places : known->second;
  places.input = copy_of(saved.input, bytes[static_cast<std::size_t>(BufferKind::StaticInput)]);
  places.activations =
      copy_of(saved.activations, bytes[static_cast<std::size_t>(BufferKind::Activations)]);
  left_[{number, work.microbatch}] = places;
  if (parameters.norm_weight != nullptr) {
    parameters.norm_weight = copy_of(layer, Role::NormWeight).parts.front();
  }
  parameters.first = copy_of(layer, Role::First).table;
  parameters.second = copy_of(layer, Role::Second).table;
}

std::byte* SavedTensors::copy_of(std::byte* saved, std::int64_t bytes) {
  if (saved == nullptr) return nullptr;
  std::byte* copy = stage_.engine.allocate(bytes, "substituted tensors");
  stage_.engine.launch(0, Copy{.bytes = bytes, .from = saved, .to = copy});
  return copy;
}

GroupedTensor SavedTensors::copy_of(const StepLayer& layer, Role role) {
  const std::uint32_t parameter = layer.parameter[static_cast<std::size_t>(role)];
  if (parameter == kNoParameter) return {};
  const GroupedTensor& of = stage_.parameters[parameter];
  GroupedTensor copy = make_tensor(stage_.engine, stage_.layers.parameters()[parameter], of.type);
  for (std::size_t part = 0; part < of.parts.size(); ++part) {
    stage_.engine.launch(
        0, Copy{.bytes = of.part_bytes(), .from = of.parts[part], .to = copy.parts[part]});
  }
  return copy;
}

}  // namespace capo::run

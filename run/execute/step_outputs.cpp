#include "run/execute/step_outputs.h"

#include "run/execute/program.h"
#include "run/setup/deposits.h"

namespace capo::run {

Outcome::Outcome(Engine& engine, const BufferTable& table, const StepLayers& layers,
                 Attribution attribution)
    : engine_(engine), microbatches_(table.microbatches()) {
  for (const ParameterForm& form : layers.parameters()) {
    GradientMemory& memory = gradients_.emplace_back();
    memory.grad = make_tensor(engine, form, form.type);
    memory.returned = make_tensor(engine, form, form.type);
    memory.dummy = make_tensor(engine, form, form.type);
    if (form.fused) memory.main_grad = make_tensor(engine, form, DataType::Fp32);
    if (attribution == Attribution::Total) continue;
    for (std::int32_t microbatch = 0; microbatch < microbatches_; ++microbatch) {
      memory.own.push_back(make_tensor(engine, form, DataType::Fp32));
    }
  }
  const Cells cells(table);
  for (std::uint32_t at = 0; at < cells.count(); ++at) {
    const Cells::Cell cell = cells.at(at);
    Block& block = collected_.emplace_back();
    if (table.layers(cell.rank, cell.chunk) == 0) continue;
    const LayerShape& shape = layers.at(cell.rank, cell.chunk, 0).shape;
    block.bytes = shape.tokens * shape.hidden * bytes_of(shape.type);
    block.memory = engine.allocate(block.bytes, "input gradients");
  }
  const auto floats = [&](std::int64_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of floats
    return reinterpret_cast<float*>(engine.allocate(count * 4, "gradients of probabilities"));
  };
  for (const StepLayer& layer : layers.all()) {
    auto& sides = sides_.emplace_back(static_cast<std::size_t>(microbatches_));
    for (SideGradients& side : sides) {
      side.count = layer.shape.tokens;
      if (layer.shape.kind == ModuleKind::GroupedMlp) side.probabilities = floats(side.count);
      if (layer.shape.scale_bias) side.scales = floats(side.count);
    }
  }
}

void Outcome::fill(const GroupedTensor& tensor, std::uint8_t value) {
  for (std::byte* part : tensor.parts) {
    engine_.launch(0, Fill{.bytes = tensor.part_bytes(), .value = value, .to = part});
  }
}

void Outcome::reset(const Deposits& deposits) {
  for (std::uint32_t parameter = 0; parameter < gradients_.size(); ++parameter) {
    const GradientMemory& memory = gradients_[parameter];
    fill(memory.grad, kPoison);
    fill(memory.returned, kPoison);
    fill(memory.dummy, kPoison);
    fill(memory.main_grad, deposits.overwrites_main_grad(parameter) ? kPoison : 0);
    for (const GroupedTensor& own : memory.own) fill(own, kPoison);
  }
  for (const Block& block : collected_) {
    if (block.bytes > 0) {
      engine_.launch(0, Fill{.bytes = block.bytes, .value = kPoison, .to = block.memory});
    }
  }
  for (const auto& sides : sides_) {
    for (const SideGradients& side : sides) {
      for (float* memory : {side.probabilities, side.scales}) {
        if (memory == nullptr) continue;
        engine_.launch(0, Fill{.bytes = side.count * 4, .value = kPoison, .to = memory});
      }
    }
  }
  engine_.synchronise();
}

}  // namespace capo::run

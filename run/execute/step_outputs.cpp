#include "run/execute/step_outputs.h"

#include "core/base/index.h"
#include "run/execute/program.h"

#include <algorithm>

namespace capo::run {

namespace {

// The tensors of a parameter's own type that a step uses; at real sizes each takes gigabytes.
struct Used {
  bool grad = false;
  bool returned = false;
  bool dummy = false;
};

void note(const Deposit& deposit, Used& used) {
  using Into = Deposit::Into;
  using Handed = Deposit::Handed;
  const bool itself = deposit.handed == Handed::ReturnedItself;
  const bool copied = deposit.handed == Handed::Returned;
  used.returned |= deposit.into == Into::Returned || deposit.into == Into::Temporary || itself;
  used.returned |= copied;
  used.dummy |= deposit.handed == Handed::Dummy;
  used.grad |= deposit.into == Into::Grad || deposit.handed == Handed::Zeros || copied;
  used.grad |= deposit.handed == Handed::Dummy;
}

Used used_by(const Deposits& deposits, std::uint32_t parameter, std::int32_t microbatches) {
  Used used;
  for (std::int32_t m = 0; m < microbatches; ++m) {
    for (const bool weight : {false, true}) note(deposits.of(parameter, m, weight), used);
  }
  return used;
}

}  // namespace

StepOutputs::StepOutputs(Engine& engine, const BufferTable& table, const StepLayers& layers,
                         const Deposits& deposits, Attribution attribution)
    : engine_(engine), microbatches_(table.microbatches()) {
  for (std::uint32_t p = 0; p < layers.parameters().size(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    const Used used = used_by(deposits, p, microbatches_);
    GradientMemory& memory = gradients_.emplace_back();
    if (used.grad) memory.grad = make_tensor(engine, form, form.type);
    if (used.returned) memory.returned = make_tensor(engine, form, form.type);
    if (used.dummy) memory.dummy = make_tensor(engine, form, form.type);
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
    auto& sides = sides_.emplace_back(as_index(microbatches_));
    for (SideGradients& side : sides) {
      side.count = layer.shape.tokens;
      if (layer.shape.kind == ModuleKind::GroupedMlp) side.probabilities = floats(side.count);
      if (layer.shape.scale_bias) side.scales = floats(side.count);
    }
  }
}

void StepOutputs::fill(const GroupedTensor& tensor, std::uint8_t value) {
  for (std::byte* part : tensor.parts) {
    engine_.launch(0, Fill{.bytes = tensor.part_bytes(), .value = value, .to = part});
  }
}

void StepOutputs::reset(const Deposits& deposits) {
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

void accumulate(Engine& engine, StreamId stream, const GradientMemory& memory,
                const Deposit& deposit, std::int32_t microbatch) {
  const auto fill = [&](const GroupedTensor& tensor, std::uint8_t value) {
    for (std::byte* part : tensor.parts) {
      engine.launch(stream, Fill{.bytes = tensor.part_bytes(), .value = value, .to = part});
    }
  };
  const auto add = [&](const GroupedTensor& to, const GroupedTensor& from) {
    for (std::size_t part = 0; part < to.parts.size(); ++part) {
      engine.launch(stream, Add{.to_type = to.type,
                                .from_type = from.type,
                                .count = to.elements,
                                .from = from.parts[part],
                                .to = to.parts[part]});
    }
  };
  if (!memory.own.empty() && deposit.into != Deposit::Into::Nothing &&
      deposit.into != Deposit::Into::Temporary) {
    const GroupedTensor& to = deposit.into == Deposit::Into::Grad       ? memory.grad
                              : deposit.into == Deposit::Into::MainGrad ? memory.main_grad
                                                                        : memory.returned;
    if (deposit.write == Write::Overwrite) fill(to, 0);
    add(to, memory.own[MicrobatchId(microbatch).index()]);
  }
  const auto hand_over = [&](const GroupedTensor& from) {
    if (!deposit.becomes_grad) return add(memory.grad, from);
    for (std::size_t part = 0; part < from.parts.size(); ++part) {
      engine.launch(stream, Copy{.bytes = from.part_bytes(),
                                 .from = from.parts[part],
                                 .to = memory.grad.parts[part]});
    }
  };
  switch (deposit.handed) {
    case Deposit::Handed::Nothing:
      return;
    case Deposit::Handed::Returned:
      return hand_over(memory.returned);
    case Deposit::Handed::Dummy:
      return hand_over(memory.dummy);
    case Deposit::Handed::Zeros:
      if (deposit.becomes_grad) fill(memory.grad, 0);
      return;
    case Deposit::Handed::ReturnedItself:
      if (!deposit.becomes_grad) add(memory.returned, memory.returned);
      return;
    case Deposit::Handed::View:
      if (!deposit.becomes_grad) add(memory.main_grad, memory.main_grad);
      return;
  }
}

void sum_up(Engine& engine, StreamId stream, const std::vector<const GroupedTensor*>& replicas) {
  if (std::any_of(replicas.begin(), replicas.end(),
                  [](const GroupedTensor* each) { return each->parts.empty(); })) {
    return;
  }
  const GroupedTensor& sum = *replicas.front();
  for (std::size_t part = 0; part < sum.parts.size(); ++part) {
    for (std::size_t i = 1; i < replicas.size(); ++i) {
      engine.launch(stream, Add{.to_type = sum.type,
                                .from_type = sum.type,
                                .count = sum.elements,
                                .from = replicas[i]->parts[part],
                                .to = sum.parts[part]});
    }
    for (std::size_t i = 1; i < replicas.size(); ++i) {
      engine.launch(
          stream,
          Copy{.bytes = sum.part_bytes(), .from = sum.parts[part], .to = replicas[i]->parts[part]});
    }
  }
}

}  // namespace capo::run

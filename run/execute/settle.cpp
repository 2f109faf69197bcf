#include "run/execute/settle.h"

namespace capo::run {

void settle(Engine& engine, StreamId stream, const GradientMemory& memory, const Deposit& deposit,
            std::int32_t microbatch) {
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
    add(to, memory.own[static_cast<std::size_t>(microbatch)]);
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

}  // namespace capo::run

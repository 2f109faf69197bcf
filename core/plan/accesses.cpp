#include "core/plan/accesses.h"

namespace capo {

Accesses accesses_of(const BufferTable& table, std::int32_t rank, const Work& work,
                     std::int32_t layer) {
  const LayerFacts& facts = table.facts(rank, work.chunk, layer);
  Accesses accesses;
  // A layer's buffers are numbered kind by kind.
  const BufferId first =
      table.id(rank, work.chunk, layer, work.microbatch, BufferKind::StaticInput);
  const auto id = [first](BufferKind kind) { return first + static_cast<BufferId>(kind); };
  const auto write = [&](BufferKind kind) { accesses.add(id(kind), kind, true); };
  const auto read = [&](BufferKind kind) { accesses.add(id(kind), kind, false); };
  if (work.kind == Kind::Forward) {
    write(BufferKind::StaticInput);
    write(BufferKind::Activations);
    if (facts.keeps_quantized_weight) write(BufferKind::QuantizedWeight);
    write(BufferKind::Output);
  } else if (is_backward(work.kind)) {
    write(BufferKind::GradOutput);
    if (work.delayed) write(BufferKind::Operands);
    write(BufferKind::GradInput);
    // A product alone needs its input for the weight gradient only.
    if (!work.delayed || !facts.aliases_declared || !facts.aliases.input) {
      read(BufferKind::StaticInput);
    }
    read(BufferKind::GradOutput);
    read(BufferKind::Activations);
    if (facts.keeps_quantized_weight) read(BufferKind::QuantizedWeight);
    read(BufferKind::Output);
    if (layer + 1 < table.layers(rank, work.chunk)) {
      const BufferId fed =
          table.id(rank, work.chunk, layer + 1, work.microbatch, BufferKind::GradInput);
      accesses.add(fed, BufferKind::GradInput, false);
    }
  } else {
    write(BufferKind::Scratch);
    if (facts.aliases.input) read(BufferKind::StaticInput);
    if (facts.weight_reads_kept()) read(BufferKind::Activations);
    if (facts.aliases.grad_output) read(BufferKind::GradOutput);
    read(BufferKind::Operands);  // they have no bytes if B kept nothing
  }
  return accesses;
}

BufferId received_by(const BufferTable& table, std::int32_t rank, const Work& work) {
  if (work.kind == Kind::BackwardWeight || table.layers(rank, work.chunk) == 0) return kNoBuffer;
  const bool forward = work.kind == Kind::Forward;
  const std::int32_t first = forward ? 0 : table.layers(rank, work.chunk) - 1;
  if (work.layer != kAllLayers && work.layer != first) return kNoBuffer;
  return table.received(rank, work.chunk, work.microbatch,
                        forward ? BufferKind::ReceivedActivation : BufferKind::ReceivedGradient);
}

LayerRun layers_of(const BufferTable& table, std::int32_t rank, const Work& work) {
  if (work.layer != kAllLayers) return {.first = work.layer, .count = 1, .step = 1};
  const std::int32_t layers = table.layers(rank, work.chunk);
  if (work.kind == Kind::Forward) return {.first = 0, .count = layers, .step = 1};
  return {.first = layers - 1, .count = layers, .step = -1};
}

}  // namespace capo

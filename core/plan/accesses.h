// Which buffers a piece of work writes and reads: the one place that says so, for plans and for the
// check of plans.
//
// Layer by layer, in the order in which the layers run, since a slot may pass from one layer of a
// chunk to the next within one piece of work. What a work writes of a layer it holds from its
// beginning, so writes come before reads.

#pragma once

#include <capo/core/plan/buffers.h>
#include <capo/core/plan/work.h>

namespace capo {

template <typename Write, typename Read>
void for_each_access(const BufferTable& table, std::int32_t rank, const Work& work,
                     std::int32_t layer, Write write, Read read) {
  const LayerFacts& facts = table.facts(rank, work.chunk, layer);
  const auto id = [&](BufferKind kind) {
    return table.id(rank, work.chunk, layer, work.microbatch, kind);
  };
  switch (work.kind) {
    case Kind::Forward:
      write(id(BufferKind::StaticInput));
      write(id(BufferKind::Activations));
      write(id(BufferKind::Output));
      break;
    case Kind::Backward:
    case Kind::BackwardInput:
      write(id(BufferKind::GradOutput));
      if (work.delayed) write(id(BufferKind::Operands));
      write(id(BufferKind::GradInput));
      // A product alone needs its input for the weight gradient only.
      if (!work.delayed || !facts.aliases_declared || !facts.aliases.input) {
        read(id(BufferKind::StaticInput));
      }
      read(id(BufferKind::GradOutput));
      read(id(BufferKind::Activations));
      read(id(BufferKind::Output));
      if (layer + 1 < table.layers(rank, work.chunk)) {
        read(table.id(rank, work.chunk, layer + 1, work.microbatch, BufferKind::GradInput));
      }
      break;
    case Kind::BackwardWeight:
      write(id(BufferKind::Scratch));
      read(id(facts.aliases.input ? BufferKind::StaticInput : BufferKind::Activations));
      if (facts.aliases.grad_output) read(id(BufferKind::GradOutput));
      read(id(BufferKind::Operands));  // whatever B kept for it, if anything
      break;
    default:
      break;
  }
}

/// Calls visit(layer) for the layers of a work, in the order in which they run.
template <typename Visit>
void for_each_layer(const BufferTable& table, std::int32_t rank, const Work& work, Visit visit) {
  if (work.layer != kAllLayers) {
    visit(work.layer);
    return;
  }
  const std::int32_t layers = table.layers(rank, work.chunk);
  if (work.kind == Kind::Forward) {
    for (std::int32_t layer = 0; layer < layers; ++layer) visit(layer);
  } else {
    for (std::int32_t layer = layers; layer-- > 0;) visit(layer);
  }
}

}  // namespace capo

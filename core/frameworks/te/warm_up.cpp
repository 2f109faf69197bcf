// TransformerEngine's passes before capture take memory: eager execution of the order, on memory
// that is given back before the first graph is captured.
//
//   [1, 1, -1, -1]     two outputs at once, and at a backward its gradients
//
// All sample inputs are there from the beginning, as many as there are static inputs. A forward
// leaves its output and what it keeps for the backward; a backward has its incoming gradient, its
// grad input and, if the weight gradient is delayed, the operands of that, which runs at once: an
// order's weight gradients are left out. Then what was kept goes, and the output with it, but that
// up to 2.19 outputs stayed to the end of the pass (`keeps_outputs`), which is more than is there
// at capture. The scratch of a weight gradient is left out, as workspaces are everywhere. It is
// read off graph.py, lines 523 to 672 (2.19) and 656 to 689 (2.20.2). Tested by warm_up_test.cpp
// and, against the oracle, by tests/exhaustive/declared.cpp.

#include "core/frameworks/te/reuse.h"

#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <initializer_list>

namespace capo {

namespace {

class Pass {
 public:
  Pass(const BufferTable& table, std::int32_t rank, std::int64_t inputs, bool keeps_outputs)
      : table_(table), rank_(rank), keeps_outputs_(keeps_outputs), live_(inputs) {
    found.most = inputs;
  }

  void run(const Work& work) {
    if (work.kind == Kind::BackwardWeight) return;
    for_each_layer(table_, rank_, work, [&](std::int32_t layer) {
      const LayerFacts& of = table_.facts(rank_, work.chunk, layer);
      work.kind == Kind::Forward ? forward(work, of) : backward(work, of);
    });
  }

  WarmUp found;

 private:
  static std::int64_t bytes(const LayerFacts& of, std::initializer_list<BufferKind> kinds) {
    std::int64_t sum = 0;
    for (const BufferKind kind : kinds) sum += of.bytes[as_index(kind)];
    return sum;
  }

  void note(const Work& work, std::int64_t beside) {
    if (live_ + beside <= found.most) return;
    found = {.most = live_ + beside, .entry = work.entry};
  }

  void forward(const Work& work, const LayerFacts& of) {
    live_ += bytes(of, {BufferKind::Activations, BufferKind::QuantizedWeight, BufferKind::Output});
    note(work, 0);
  }

  void backward(const Work& work, const LayerFacts& of) {
    std::int64_t beside = bytes(of, {BufferKind::GradOutput, BufferKind::GradInput});
    if (work.delayed) beside += bytes(of, {BufferKind::Operands});
    note(work, beside);
    live_ -= bytes(of, {BufferKind::Activations, BufferKind::QuantizedWeight});
    if (!keeps_outputs_) live_ -= bytes(of, {BufferKind::Output});
  }

  const BufferTable& table_;
  std::int32_t rank_;
  bool keeps_outputs_;
  std::int64_t live_;
};

}  // namespace

WarmUp warm_up_of(const BufferTable& table, std::int32_t rank, std::span<const Work> work,
                  std::int64_t static_inputs, bool keeps_outputs) {
  Pass pass(table, rank, static_inputs, keeps_outputs);
  for (const Work& next : work) pass.run(next);
  return pass.found;
}

}  // namespace capo

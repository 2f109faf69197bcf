#include "run/setup/deposits_of_step.h"

#include <algorithm>

namespace capo::run {

namespace {

// Whether .grad outlives the next replay: as a copy, or because a reader takes it at once, as
// Megatron's DDP does of parameters with the attribute.
bool is_kept(const ModuleFlags& flags) {
  return flags.clone_param_grads || flags.grad_added_to_main_grad;
}

}  // namespace

Deposits::Deposits(const BufferTable& table, const Course& course, const StepLayers& layers,
                   gradients::Whose whose, Execution execution) {
  for (std::uint32_t parameter = 0; parameter < layers.parameters().size(); ++parameter) {
    ParameterCells cells =
        cells_of(layers.layer_of(parameter), layers.parameters()[parameter].role, whose);
    if (execution == Execution::Replayed) {
      cells = {replayed(cells.whole, whose), replayed(cells.delayed, whose)};
    }
    const bool copied = execution == Execution::Eager || whose == gradients::Whose::Sound ||
                        is_kept(layers.layer_of(parameter).flags);
    books_.emplace_back(cells.whole, cells.delayed, copied ? Clones::Yes : Clones::No);
    table_.emplace_back(static_cast<std::size_t>(table.microbatches()) * 2);
  }
  for (std::size_t r = 0; r < course.work.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (const Work& work : course.work[r]) {
      if (work.kind == Kind::Forward) continue;
      const bool weight = work.kind == Kind::BackwardWeight;
      const std::int32_t first = work.layer == kAllLayers ? 0 : work.layer;
      const std::int32_t end =
          work.layer == kAllLayers ? table.layers(rank, work.chunk) : work.layer + 1;
      for (std::int32_t layer = first; layer < end; ++layer) {
        for (const std::uint32_t parameter : layers.at(rank, work.chunk, layer).parameter) {
          if (parameter == kNoParameter) continue;
          GradientBook& book = books_[parameter];
          const auto at = static_cast<std::size_t>(work.microbatch) * 2 + (weight ? 1 : 0);
          table_[parameter][at] = weight ? book.weight_gradient(work.microbatch)
                                         : book.backward(work.microbatch, work.delayed);
        }
      }
    }
  }
}

bool Deposits::overwrites_main_grad(std::uint32_t parameter) const {
  const std::vector<Deposit>& all = table_[parameter];
  return std::any_of(all.begin(), all.end(), [](const Deposit& deposit) {
    return deposit.into == Deposit::Into::MainGrad && deposit.write == Write::Overwrite;
  });
}

}  // namespace capo::run

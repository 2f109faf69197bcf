#include <capo/run/execute/stage.h>

#include <fmt/format.h>

namespace capo::run {

Deposits::Deposits(const BufferTable& table, const Course& course, const StepLayers& layers,
                   gradients::Whose whose, Execution execution) {
  for (std::uint32_t parameter = 0; parameter < layers.parameters().size(); ++parameter) {
    ParameterCells cells =
        cells_of(layers.layer_of(parameter), layers.parameters()[parameter].role, whose);
    if (execution == Execution::Replayed) {
      cells = {replayed(cells.whole, whose), replayed(cells.delayed, whose)};
    }
    const bool copied = execution == Execution::Eager || whose == gradients::Whose::Sound ||
                        layers.layer_of(parameter).flags.clone_param_grads;
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

std::string name_of(std::int32_t rank, const Work& work) {
  const char* letter = work.kind == Kind::Forward          ? "F"
                       : work.kind == Kind::BackwardWeight ? "W"
                       : work.kind == Kind::BackwardInput  ? "I"
                                                           : "B";
  const std::string layer = work.layer == kAllLayers ? "" : fmt::format("layer {} of ", work.layer);
  return fmt::format("{} of {}chunk {}, microbatch {} of rank {}", letter, layer, work.chunk,
                     work.microbatch, rank);
}

}  // namespace capo::run

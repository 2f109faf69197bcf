// The cells and the transfers of program.h.

#include "core/base/index.h"
#include "run/execute/program.h"

#include <algorithm>
#include <map>

namespace capo::run {

Cells::Cells(const BufferTable& table) : first_{0}, microbatches_(table.microbatches()) {
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto cells = table.chunks(static_cast<std::int32_t>(r)) * as_index(microbatches_);
    first_.push_back(first_.back() + static_cast<std::uint32_t>(cells));
  }
}

std::uint32_t Cells::of(std::int32_t rank, std::int32_t chunk, std::int32_t microbatch) const {
  return first_[RankId(rank).index()] +
         static_cast<std::uint32_t>((chunk - 1) * microbatches_ + microbatch);
}

Cells::Cell Cells::at(std::uint32_t cell) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), cell);
  const auto rank = static_cast<std::int32_t>(after - first_.begin()) - 1;
  const auto offset = static_cast<std::int32_t>(cell - first_[RankId(rank).index()]);
  return {.rank = rank, .chunk = offset / microbatches_ + 1, .microbatch = offset % microbatches_};
}

std::vector<Transfer> transfers_of(const BufferTable& table, const Course& course) {
  const StageMap& map = *course.map;
  const Cells cells(table);
  std::vector<Transfer> all;
  std::map<Channel, std::uint32_t> sent;
  for (const Task& task : course.graph->tasks) {  // listed in the order of issue, as channels are
    if (!is_send(task.kind)) continue;
    const bool forward = task.kind == Kind::SendForward;
    const StageMap::Place& from = map.home(task.stage);
    const StageMap::Place& to = map.home(map.neighbour(task.kind, task.stage));
    const Channel channel{.sender = from.rank,
                          .receiver = to.rank,
                          .communicator = step_of(*course.lowered, task).communicator};
    const std::int32_t layers = table.layers(from.rank, from.chunk);
    const BufferId made =
        layers == 0 ? kNoBuffer
                    : table.id(from.rank, from.chunk, forward ? layers - 1 : 0, task.microbatch,
                               forward ? BufferKind::Output : BufferKind::GradInput);
    all.push_back({.channel = channel,
                   .number = sent[channel]++,
                   .way = forward ? Way::Forward : Way::Backward,
                   .from = made,
                   .cell = cells.of(to.rank, to.chunk, task.microbatch)});
  }
  return all;
}

}  // namespace capo::run

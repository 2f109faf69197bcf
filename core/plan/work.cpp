#include "core/plan/work.h"

namespace capo {

namespace {

bool is_delayed(Kind kind, std::int32_t chunk, const std::vector<Delay>& delay) {
  return kind == Kind::BackwardInput ||
         (kind == Kind::Backward && delay[ChunkId(chunk).index()] == Delay::Always);
}

}  // namespace

std::vector<Work> work_of(std::span<const Entry> order, const std::vector<Delay>& delay) {
  std::vector<Work> work;
  work.reserve(order.size());
  bool joins = false;
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    const Entry& entry = order[at];
    // The entry that opens a composite need not be work.
    joins = joins && entry.group == Group::Continues;
    if (!is_compute(entry.kind)) continue;
    work.push_back({.chunk = entry.chunk,
                    .microbatch = entry.microbatch,
                    .entry = at,
                    .kind = entry.kind,
                    .delayed = is_delayed(entry.kind, entry.chunk, delay),
                    .joins = joins,
                    .beside = entry.group != Group::Alone});
    joins = true;
  }
  return work;
}

Work work_of(const Step& step, const std::vector<Delay>& delay) {
  return {.chunk = step.chunk,
          .microbatch = step.microbatch,
          .layer = step.part == Part::Whole ? kAllLayers : step.layer,
          .entry = step.entry,
          .kind = step.kind,
          .delayed = is_delayed(step.kind, step.chunk, delay),
          .beside = step.group != Group::Alone};
}

}  // namespace capo

#include "core/frameworks/te/from_te_list.h"

#include "core/base/index.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace capo {

namespace {

std::optional<std::int32_t> declared_chunks(const TeDeclarations& declarations) {
  if (declarations.layers.form == Layers::Form::List) {
    return static_cast<std::int32_t>(declarations.layers.values.size());
  }
  if (declarations.need_wgrad) return static_cast<std::int32_t>(declarations.need_wgrad->size());
  return std::nullopt;
}

// Fills rank.delay from the declarations, reusing its storage.
void declare_delay(RankOrder& rank, const TeDeclarations& declarations) {
  if (!declarations.need_wgrad && !declarations.delayed) {
    rank.delay.reset();
    return;
  }
  if (!rank.delay) rank.delay.emplace();
  std::vector<Delay>& delay = *rank.delay;
  delay.clear();
  if (declarations.need_wgrad) {
    for (const bool delays : *declarations.need_wgrad) {
      delay.push_back(delays ? Delay::Always : Delay::Never);
    }
    return;
  }
  delay.assign(as_index(rank.chunks), declarations.delayed->all ? Delay::Always : Delay::Never);
  for (const std::int32_t chunk : declarations.delayed->chunks) {
    const auto position = ChunkId(chunk).index();
    if (position >= delay.size()) delay.resize(position + 1, Delay::Never);
    delay[position] = Delay::Always;
  }
}

}  // namespace

TeListReader::TeListReader(TeDeclarations declarations) : declarations_(std::move(declarations)) {
}

TeReading TeListReader::read(std::span<const TeEntry> list, TeReading memory) {
  Schedule& schedule = memory.schedule;
  schedule.microbatches = declarations_.microbatches;
  schedule.ranks.resize(1);
  RankOrder& rank = schedule.ranks.front();
  rank.layers = declarations_.layers;
  memory.odd_entries.clear();

  const std::optional<std::int32_t> declared = declared_chunks(declarations_);
  rank.chunks_declared = declared.has_value();
  rank.chunks = declared.value_or(0);
  const auto length = static_cast<std::int32_t>(
      std::min<std::size_t>(list.size(), std::numeric_limits<std::int32_t>::max()));

  rank.order.clear();
  rank.order.reserve(list.size());
  for (std::uint32_t index = 0; index < list.size(); ++index) {
    const TeEntry& raw = list[index];
    const Action action = read_te_entry(raw);
    if (action.kind == Kind::Idle) {
      memory.odd_entries.push_back(index);
      continue;
    }
    if (!declared && action.chunk <= length)
      rank.chunks = std::max<std::int32_t>(rank.chunks, action.chunk);
    rank.order.push_back(
        {.chunk = action.chunk, .offset = raw.offset, .length = raw.length, .kind = action.kind});
  }
  declare_delay(rank, declarations_);
  number(rank);
  return memory;
}

// Numbers microbatches as number_microbatches() does, but reuses its storage.
void TeListReader::number(RankOrder& rank) {
  next_.assign(as_index(rank.chunks) * 3, 0);
  for (Entry& entry : rank.order) {
    if (entry.chunk > rank.chunks) continue;
    const std::size_t kind = entry.kind == Kind::Forward ? 0 : entry.kind == Kind::Backward ? 1 : 2;
    entry.microbatch = next_[entry.chunk.index() * 3 + kind]++;
  }
}

TeReading from_te_list(const TeList& list, const TeDeclarations& declarations) {
  return TeListReader(declarations).read(list.entries);
}

}  // namespace capo

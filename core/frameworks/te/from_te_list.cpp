#include "core/frameworks/te/from_te_list.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
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

// A whole float is left out of the schedule, so the counts of the report surprise without a word.
void note_bare_floats(Input& input) {
  const auto whole = std::count_if(
      input.odd_entries.begin(), input.odd_entries.end(), [&](std::uint32_t position) {
        const double value = input.te_list.entries[position].value;
        return value != 0 && std::isfinite(value) && std::floor(value) == value;
      });
  if (whole == 0) return;
  input.notes.push_back(fmt::format(
      "{} names no chunk, since Python takes no float for an index, and counts as "
      "nothing here",
      whole == 1 ? "the whole float" : fmt::format("each of the {} whole floats", whole)));
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
  std::int32_t chunks = declared.value_or(0);
  // Undeclared chunks are those that are named, up to as many as there are entries.
  const auto most = static_cast<std::int32_t>(
      declared ? 0 : std::min<std::size_t>(list.size(), std::numeric_limits<std::int32_t>::max()));

  rank.order.clear();
  rank.order.reserve(list.size());
  for (std::uint32_t index = 0; index < list.size(); ++index) {
    const TeEntry& raw = list[index];
    const Action action = read_te_entry(raw);
    if (action.kind == Kind::Idle) {
      memory.odd_entries.push_back(index);
      continue;
    }
    if (action.chunk <= most) chunks = std::max<std::int32_t>(chunks, action.chunk);
    rank.order.push_back(
        {.chunk = action.chunk, .offset = raw.offset, .length = raw.length, .kind = action.kind});
  }
  rank.chunks = chunks;
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

void take_te_lists(Input& input, TeList list, std::vector<std::uint32_t> begins,
                   const TeDeclarations& declarations) {
  input.te_list = std::move(list);
  if (begins.size() > 1) input.te_begins = std::move(begins);
  const std::size_t ranks = std::max<std::size_t>(input.te_begins.size(), 1);
  TeListReader reader(declarations);
  std::uint32_t begin = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::span<const TeEntry> entries = te_list_of(input, rank);
    TeReading reading = reader.read(entries);
    for (const std::uint32_t odd : reading.odd_entries) input.odd_entries.push_back(begin + odd);
    begin += static_cast<std::uint32_t>(entries.size());
    if (rank == 0) {
      input.schedule = std::move(reading.schedule);
    } else {
      input.schedule.ranks.push_back(std::move(reading.schedule.ranks.front()));
    }
  }
  note_bare_floats(input);
}

}  // namespace capo

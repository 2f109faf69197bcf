#include <capo/core/order/from_te_list.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace capo {

namespace {

std::optional<std::int32_t> declared_chunks(const TeDeclarations& declarations) {
  if (declarations.layers.form == Layers::Form::List) {
    return static_cast<std::int32_t>(declarations.layers.values.size());
  }
  if (declarations.need_wgrad) return static_cast<std::int32_t>(declarations.need_wgrad->size());
  return std::nullopt;
}

std::optional<std::vector<Delay>> declared_delay(const TeDeclarations& declarations,
                                                 std::int32_t chunks) {
  std::vector<Delay> delay;
  if (declarations.need_wgrad) {
    for (const bool delays : *declarations.need_wgrad) {
      delay.push_back(delays ? Delay::Always : Delay::Never);
    }
    return delay;
  }
  if (!declarations.delayed) return std::nullopt;
  delay.assign(static_cast<std::size_t>(chunks),
               declarations.delayed->all ? Delay::Always : Delay::Never);
  for (const std::int32_t chunk : declarations.delayed->chunks) {
    const auto position = static_cast<std::size_t>(chunk) - 1;
    if (position >= delay.size()) delay.resize(position + 1, Delay::Never);
    delay[position] = Delay::Always;
  }
  return delay;
}

// The action that an entry stands for; nothing for a number that stands for none.
std::optional<Action> action_of(const TeEntry& entry) {
  const double value = entry.value;
  if (!(std::abs(value) >= 1) || std::isinf(value)) return std::nullopt;  // NaN, 0, -0.5, inf
  const double size = std::abs(value);
  const double chunk = std::floor(size);
  const auto id =
      static_cast<std::int32_t>(std::min<double>(chunk, std::numeric_limits<std::int32_t>::max()));
  if (chunk == size) {
    if (entry.type == NumberType::Float) return std::nullopt;
    return Action{.kind = value > 0 ? Kind::Forward : Kind::Backward, .chunk = id};
  }
  if (value > 0 || size - chunk != 0.5) return std::nullopt;
  return Action{.kind = Kind::BackwardWeight, .chunk = id};
}

}  // namespace

TeReading from_te_list(const TeList& list, const TeDeclarations& declarations) {
  TeReading reading;
  Schedule& schedule = reading.schedule;
  schedule.microbatches = declarations.microbatches;
  RankOrder& rank = schedule.ranks.emplace_back();
  rank.layers = declarations.layers;

  const std::optional<std::int32_t> declared = declared_chunks(declarations);
  rank.chunks_declared = declared.has_value();
  rank.chunks = declared.value_or(0);
  const auto length = static_cast<std::int32_t>(
      std::min<std::size_t>(list.entries.size(), std::numeric_limits<std::int32_t>::max()));

  rank.order.reserve(list.entries.size());
  for (std::uint32_t index = 0; index < list.entries.size(); ++index) {
    const TeEntry& raw = list.entries[index];
    const std::optional<Action> action = action_of(raw);
    if (!action) {
      reading.odd_entries.push_back(index);
      continue;
    }
    if (!declared && action->chunk <= length) rank.chunks = std::max(rank.chunks, action->chunk);
    rank.order.push_back(
        {.chunk = action->chunk, .offset = raw.offset, .length = raw.length, .kind = action->kind});
  }
  rank.delay = declared_delay(declarations, rank.chunks);
  number_microbatches(rank.order, rank.chunks);
  return reading;
}

}  // namespace capo

#include "core/order/declare_layers.h"

#include <algorithm>

namespace capo {

namespace {

template <typename Level>
const typename Level::value_type* entry_of(const Level& level, std::size_t at) {
  if (level.size() == 1) return &level.front();
  return at < level.size() ? &level[at] : nullptr;
}

// Of each chunk of the order by itself; 1 also where any number may be meant.
std::vector<std::int64_t> layers_named(const RankOrder& rank,
                                       const std::vector<std::vector<std::int32_t>>& chunks) {
  std::vector<std::int64_t> layers;
  for (std::int32_t chunk = 0; chunk < rank.chunks - rank.strays; ++chunk) {
    const auto* of_chunk = entry_of(chunks, static_cast<std::size_t>(chunk));
    layers.push_back(of_chunk == nullptr ? 1 : static_cast<std::int64_t>(of_chunk->size()));
  }
  return layers;
}

std::string layers_of(std::int64_t layers) {
  return std::to_string(layers) + (layers == 1 ? " layer" : " layers");
}

}  // namespace

std::optional<std::string> declare_layers(
    Schedule& schedule, const std::vector<std::vector<std::vector<std::int32_t>>>& named) {
  std::vector<Layers> declared;
  const auto stated = layer_counts(schedule);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    declared.push_back(rank.layers);
    const auto* chunks = entry_of(named, r);
    if (chunks == nullptr) continue;
    std::vector<std::int64_t> layers = layers_named(rank, *chunks);
    const bool any = std::all_of(layers.begin(), layers.end(), [](auto each) { return each == 1; });
    if (any) continue;
    if (rank.layers.form == Layers::Form::Unstated) {
      declared.back() = {.form = Layers::Form::List, .values = std::move(layers)};
      continue;
    }
    for (std::size_t c = 0; c < layers.size(); ++c) {
      if (layers[c] == 1 || layers[c] == stated[r][c]) continue;
      return "it names " + layers_of(layers[c]) + " of chunk " + std::to_string(c + 1) +
             " of rank " + std::to_string(r) + ", but the input says " + layers_of(stated[r][c]);
    }
  }
  for (std::size_t r = 0; r < declared.size(); ++r) {
    schedule.ranks[r].layers = std::move(declared[r]);
  }
  return std::nullopt;
}

}  // namespace capo

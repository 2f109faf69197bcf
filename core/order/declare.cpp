#include "core/order/declare.h"

#include "core/base/index.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace capo {

namespace {

std::string number(std::size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::optional<std::string> misfit(const Schedule& schedule,
                                  const std::vector<std::vector<std::int32_t>>& stages) {
  if (stages.size() != schedule.ranks.size()) {
    return "it places " + number(stages.size(), "rank") + ", but the input has " +
           std::to_string(schedule.ranks.size());
  }
  for (std::size_t r = 0; r < stages.size(); ++r) {
    const auto chunks = as_index(schedule.ranks[r].chunks);
    if (stages[r].size() == chunks) continue;
    return "it places " + number(stages[r].size(), "chunk") + " of rank " + std::to_string(r) +
           ", but the input has " + std::to_string(chunks);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> declare_topology(Schedule& schedule, Topology topology,
                                            const std::vector<std::vector<std::int32_t>>& stages) {
  if (topology == Topology::Independent) {
    schedule.topology = topology;
    return std::nullopt;
  }
  if (topology == Topology::Custom) {
    if (auto why = misfit(schedule, stages)) return why;
  }
  std::vector<std::vector<std::int32_t>> before;
  for (const RankOrder& rank : schedule.ranks) before.push_back(rank.stages);
  const Topology stated = schedule.topology;

  schedule.topology = topology;
  for (std::size_t r = 0; r < stages.size() && topology == Topology::Custom; ++r) {
    schedule.ranks[r].stages = stages[r];
  }
  place_stages(schedule);
  if (stated == Topology::Independent) return std::nullopt;

  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (schedule.ranks[r].stages == before[r]) continue;
    for (std::size_t back = 0; back < before.size(); ++back) {
      schedule.ranks[back].stages = before[back];
    }
    schedule.topology = stated;
    return "the input itself places the stages of rank " + std::to_string(r) + " otherwise";
  }
  return std::nullopt;
}

namespace {

template <typename Level>
const typename Level::value_type* entry_of(const Level& level, std::size_t at) {
  if (level.size() == 1) return &level.front();
  return at < level.size() ? &level[at] : nullptr;
}

// Returns the number of layers of each chunk of the rank itself; 1 also if any number may be meant.
std::vector<std::int64_t> layers_named(const RankOrder& rank,
                                       const std::vector<std::vector<std::int32_t>>& chunks) {
  std::vector<std::int64_t> layers;
  for (std::int32_t chunk = 0; chunk < rank.chunks - rank.strays; ++chunk) {
    const auto* of_chunk = entry_of(chunks, as_index(chunk));
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

std::optional<std::string> declare_model_chunks(Schedule& schedule,
                                                const std::vector<std::int32_t>& layers) {
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    const std::int32_t chunks = rank.chunks - rank.strays;
    if (chunks == 0) continue;
    if (sum != chunks) {
      return "model chunks add up to " + std::to_string(sum) + ", but rank " + std::to_string(r) +
             " has " + number(as_index(chunks), "chunk");
    }
    if (!rank.model_chunks.empty() && rank.model_chunks != layers) {
      return "the input itself says otherwise which layers of rank " + std::to_string(r) +
             " make a chunk of the model";
    }
  }
  for (RankOrder& rank : schedule.ranks) {
    if (rank.chunks - rank.strays > 0) rank.model_chunks = layers;
  }
  return std::nullopt;
}

}  // namespace capo

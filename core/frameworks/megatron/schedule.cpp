// schedule_of() makes one schedule, with its placement, of Megatron-LM's orders of all ranks.
//
// Chunk by chunk the placement is the loop: chunk c of rank r is stage (c - 1) * PP + r. Layer by
// layer every layer is a chunk, and the stages of that loop are cut into their layers: those of
// chunk 1 of rank 0 come first, then those of chunk 1 of rank 1, and so on. Every rank holds the
// same number of layers in a chunk, which Megatron does not demand.
//
// The schedule says what it is: which layers make a chunk of the model, and how Megatron calls its
// transfers by default, one by one where there are virtual stages and in fused groups where there
// are none (arguments.py, overlap_p2p_comm and batch_p2p_comm).
//
// Microbatches are counted, since Megatron runs those of a chunk first in, first out. Tested by
// schedule_test.cpp.

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/te/from_te_list.h"

#include <algorithm>
#include <numeric>

namespace capo::megatron {

namespace {

// The stages of the layers of one rank, chunk by chunk.
std::vector<std::int32_t> stages_of_layers(const std::vector<std::int64_t>& layers,
                                           std::int64_t ranks, std::int64_t rank) {
  std::vector<std::int32_t> stages;
  std::int64_t before = 0;  // layers of the earlier chunks, on one rank
  for (const std::int64_t count : layers) {
    for (std::int64_t l = 0; l < count; ++l) {
      stages.push_back(static_cast<std::int32_t>(ranks * before + rank * count + l));
    }
    before += count;
  }
  return stages;
}

std::optional<MegatronCalls> default_calls(const mcore::Configuration& configuration) {
  if (configuration.pipeline < 2) return std::nullopt;
  return configuration.virtual_stages.value_or(1) > 1 ? MegatronCalls::Overlap
                                                      : MegatronCalls::Batch;
}

}  // namespace

Schedule schedule_of(const Generated& generated) {
  const Request& request = generated.request;
  CAPO_ASSERT(!request.rank, "a schedule holds the orders of all ranks");
  const auto chunks = as_index(chunks_of(request.configuration));
  std::vector<std::int64_t> layers = request.layers_per_chunk;
  layers.resize(request.layers_per_chunk.empty() ? chunks : std::min(layers.size(), chunks), 1);
  const bool by_layer = request.by_layer();
  CAPO_ASSERT(!by_layer || std::none_of(layers.begin(), layers.end(), [](auto n) { return n < 0; }),
              "a chunk has no negative number of layers");
  const std::size_t te_chunks =
      by_layer ? as_index(std::accumulate(layers.begin(), layers.end(), std::int64_t{0})) : chunks;
  const bool delayed = by_layer && request.weight_gradients == WeightGradients::Delayed;

  // A chunk without a captured layer has no entry, so nothing shows where its transfers stand.
  const bool every_chunk =
      std::none_of(layers.begin(), layers.end(), [](auto n) { return n == 0; });
  Schedule schedule{.topology = by_layer ? Topology::Custom : Topology::Loop,
                    .microbatches = static_cast<std::int32_t>(generated.microbatches)};
  if (!by_layer || every_chunk) schedule.p2p = default_calls(request.configuration);
  const TeDeclarations declarations{.need_wgrad = std::vector<bool>(te_chunks, delayed)};
  for (const TeList& list : generated.orders) {
    TeReading reading = from_te_list(list, declarations);
    CAPO_ASSERT(reading.odd_entries.empty(), "every entry that Megatron makes is an action");
    RankOrder& rank = schedule.ranks.emplace_back(std::move(reading.schedule.ranks.front()));
    if (by_layer) {
      rank.stages = stages_of_layers(layers, request.configuration.pipeline,
                                     static_cast<std::int64_t>(schedule.ranks.size()) - 1);
      if (every_chunk) rank.model_chunks.assign(layers.begin(), layers.end());
    } else if (!request.layers_per_chunk.empty()) {
      rank.layers = {.form = Layers::Form::List, .values = layers};
    }
  }
  place_stages(schedule);
  return schedule;
}

}  // namespace capo::megatron

#include "core/plan/buffers.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/plan/operands.h"
#include "core/plan/sizes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

namespace capo {

namespace {

// A chunk has one layer if the order does not say how many.
std::int64_t layers_of(const RankOrder& rank, std::int32_t chunk) {
  const auto& stated = rank.layers.values;
  const std::size_t at = rank.layers.form == Layers::Form::Count ? 0 : ChunkId(chunk).index();
  return at < stated.size() ? stated[at] : 1;
}

std::uint64_t all_layers_of(const RankOrder& rank) {
  std::uint64_t layers = 0;
  for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk)
    layers += static_cast<std::uint64_t>(std::max<std::int64_t>(layers_of(rank, chunk), 0));
  return layers;
}

using Number = std::optional<std::int64_t>;

// TE's key of a tensor knows its rows, columns, type and size; nullopt: undeclared.
using Signature = std::array<Number, 4>;

Number type_of(const Module& module) {
  if (!module.dtype) return std::nullopt;
  return static_cast<std::int64_t>(*module.dtype);
}

Signature input_signature(const Module* module) {
  if (module == nullptr) return {};
  return {module->shape.tokens, module->shape.hidden, type_of(*module), input_bytes(*module)};
}

Signature output_signature(const Module* module) {
  if (module == nullptr) return {};
  const bool one_product = !module->kind || is_one_product(*module->kind);
  return {module->shape.tokens, one_product ? module->shape.ffn : module->shape.hidden,
          type_of(*module), output_bytes(*module)};
}

// Numbers for the signatures of a rank, equal if TE's key takes them for alike. A member that one
// signature leaves undeclared tells no two apart, since it might be as the others are.
class Keys {
 public:
  void meet(const Signature& signature) {
    for (std::size_t i = 0; i < signature.size(); ++i) tells_[i] = tells_[i] && signature[i];
  }
  /// All signatures have been met before.
  std::uint32_t of(Signature signature) {
    for (std::size_t i = 0; i < signature.size(); ++i) {
      if (!tells_[i]) signature[i].reset();
    }
    return keys_.emplace(signature, static_cast<std::uint32_t>(keys_.size())).first->second;
  }

 private:
  std::array<bool, std::tuple_size_v<Signature>> tells_{true, true, true, true};
  std::map<Signature, std::uint32_t> keys_;
};

std::vector<bool> first_of_model_chunks(const std::vector<std::int32_t>& model_chunks) {
  std::vector<bool> first;
  for (const std::int32_t layers : model_chunks) {
    first.push_back(true);
    first.insert(first.end(), as_index(layers) - 1, false);
  }
  return first;
}

std::size_t kinds_of(const ModuleTable& modules) {
  return std::any_of(modules.list.begin(), modules.list.end(), keeps_quantized_weight)
             ? kBufferKinds
             : kUnquantizedKinds;
}

std::int64_t aligned(std::int64_t bytes, std::int64_t alignment) {
  if (bytes > std::numeric_limits<std::int64_t>::max() - alignment) return bytes;
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

std::string_view name_of(BufferKind kind) {
  constexpr std::array<std::string_view, kBufferKinds + 2> kNames{
      "static input",        "grad output",      "output",  "grad input",
      "activations",         "operands",         "scratch", "quantized weight",
      "received activation", "received gradient"};
  return kNames[as_index(kind)];
}

std::uint64_t BufferTable::count(const Schedule& schedule, std::int32_t microbatches,
                                 const ModuleTable& modules) {
  std::uint64_t layers = 0;
  std::uint64_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) {
    layers += all_layers_of(rank);
    chunks += as_index(rank.chunks);
  }
  const auto times = static_cast<std::uint64_t>(microbatches);
  std::uint64_t all = 0;
  const std::size_t kinds = kinds_of(modules);
  if (__builtin_mul_overflow(layers * kinds + chunks * kReceives, times, &all))
    return ~std::uint64_t{0};
  const std::uint64_t graphs = layers * kinds * times;
  return all < kNoBuffer ? graphs : std::max<std::uint64_t>(graphs, kNoBuffer);
}

BufferTable::BufferTable(const Schedule& schedule, std::int32_t microbatches,
                         const ModuleTable& modules, const PlanOptions& options)
    : kinds_(kinds_of(modules)), microbatches_(microbatches) {
  CAPO_ASSERT(count(schedule, microbatches, modules) < kNoBuffer, "buffers have 32-bit numbers");
  // Ranks that are wired have sends, which are looked at themselves.
  const bool sends_known = ranks_communicate(schedule);
  ranks_.reserve(schedule.ranks.size());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& order = schedule.ranks[r];
    const std::vector<bool> first = first_of_model_chunks(
        order.model_chunks.empty() ? options.model_chunks : order.model_chunks);
    Rank& rank = ranks_.emplace_back();
    const std::vector<Delay> delay = resolved_delay(order);
    rank.base = static_cast<BufferId>(size_);
    rank.first_layer.reserve(as_index(order.chunks) + 1);
    rank.first_layer.push_back(0);
    rank.facts.reserve(all_layers_of(order));
    for (std::int32_t chunk = 1; chunk <= order.chunks; ++chunk) {
      const auto layers = static_cast<std::int32_t>(layers_of(order, chunk));
      for (std::int32_t layer = 0; layer < layers; ++layer) {
        LayerFacts facts{.module = modules.of(static_cast<std::int32_t>(r), chunk, layer)};
        const Module* module = facts.module;
        facts.delayed = delay[ChunkId(chunk).index()] != Delay::Never;
        auto aliases = options.aliases;
        if (!aliases && module != nullptr) aliases = aliases_of(*module);
        facts.aliases_declared = aliases.has_value();
        facts.aliases = aliases.value_or(facts.aliases);
        facts.makes_for_weight = module != nullptr && makes_for_weight(*module);
        facts.keeps_quantized_weight = module != nullptr && keeps_quantized_weight(*module);
        const auto at = ChunkId(chunk).index();
        facts.hands_on = !sends_known && layer == 0 && at < first.size() && first[at];
        if (module != nullptr) facts.weight_bytes = weight_bytes(*module);
        aliases_declared_ = aliases_declared_ && facts.aliases_declared;
        rank.facts.push_back(facts);
      }
      rank.first_layer.push_back(static_cast<std::int32_t>(rank.facts.size()));
    }
    size_ += rank.facts.size() * as_index(microbatches) * kinds_;
  }
  all_ = size_;
  for (Rank& rank : ranks_) {
    rank.receives = static_cast<BufferId>(all_);
    all_ += (rank.first_layer.size() - 1) * as_index(microbatches) * kReceives;
  }
  CAPO_ASSERT(all_ < kNoBuffer, "buffers have 32-bit numbers");
  key_all();
  size_all(options.alignment);
}

// Each rank has keys of its own, since each captures by itself.
void BufferTable::key_all() {
  for (Rank& rank : ranks_) {
    Keys inputs;
    Keys outputs;
    for (const LayerFacts& facts : rank.facts) {
      inputs.meet(input_signature(facts.module));
      outputs.meet(output_signature(facts.module));
    }
    for (LayerFacts& facts : rank.facts) {
      facts.input_key = inputs.of(input_signature(facts.module));
      facts.output_key = outputs.of(output_signature(facts.module));
    }
  }
}

// Either all sizes are bytes, or none is.
void BufferTable::size_all(std::int64_t alignment) {
  for (const Rank& rank : ranks_) {
    for (const LayerFacts& facts : rank.facts) {
      sized_ = sized_ && facts.module != nullptr &&
               buffer_bytes(*facts.module, facts.aliases, facts.delayed);
    }
  }
  for (Rank& rank : ranks_) {
    for (LayerFacts& facts : rank.facts) {
      if (sized_) {
        facts.bytes = *buffer_bytes(*facts.module, facts.aliases, facts.delayed);
        for (std::int64_t& bytes : facts.bytes) bytes = aligned(bytes, alignment);
      } else {
        const std::int64_t copied_gradient = facts.aliases.grad_output ? 0 : 1;
        const std::int64_t kept = facts.weight_reads_kept() ? 1 : 0;
        const std::int64_t weight = facts.keeps_quantized_weight ? 1 : 0;
        facts.bytes = {1, 1, 1, 1, kept, copied_gradient, copied_gradient, weight};
      }
    }
    if (!beyond_addresses_ && !within_addresses(rank))
      beyond_addresses_ = static_cast<std::int32_t>(&rank - ranks_.data());
  }
}

bool BufferTable::within_addresses(const Rank& rank) const {
  std::int64_t left = std::int64_t{1} << kAddressBits;
  const auto take = [&left](std::int64_t bytes, std::int64_t times) {
    if (bytes > left / times) return false;
    left -= bytes * times;
    return true;
  };
  return microbatches_ == 0 ||
         std::all_of(rank.facts.begin(), rank.facts.end(), [&](const LayerFacts& facts) {
           return take(facts.weight_bytes, 1) &&
                  std::all_of(facts.bytes.begin(), facts.bytes.end(),
                              [&](std::int64_t bytes) { return take(bytes, microbatches_); });
         });
}

RankBuffers BufferTable::of_rank(std::int32_t rank) const {
  const std::size_t times = as_index(microbatches_);
  return {.graphs = of(rank).base,
          .receives = of(rank).receives,
          .graphs_count = of(rank).facts.size() * kinds_ * times,
          .receives_count = chunks(rank) * kReceives * times};
}

const BufferTable::Rank& BufferTable::rank_of(BufferId id) const {
  const auto after = std::upper_bound(ranks_.begin(), ranks_.end(), id,
                                      [](BufferId of, const Rank& rank) { return of < rank.base; });
  return *(after - 1);  // a rank without layers has the base of the next, which comes behind it
}

Buffer BufferTable::received_at(BufferId id) const {
  const auto after =
      std::upper_bound(ranks_.begin(), ranks_.end(), id,
                       [](BufferId of, const Rank& rank) { return of < rank.receives; });
  const auto found = after - 1;  // a rank without chunks has the number of the next
  const std::size_t cell = (id - found->receives) / kReceives;
  const bool gradient = (id - found->receives) % kReceives == 1;
  return {.rank = static_cast<std::int32_t>(found - ranks_.begin()),
          .chunk = static_cast<std::int32_t>(cell / as_index(microbatches_)) + 1,
          .layer = 0,
          .microbatch = static_cast<std::int32_t>(cell % as_index(microbatches_)),
          .kind = gradient ? BufferKind::ReceivedGradient : BufferKind::ReceivedActivation};
}

std::int64_t BufferTable::bytes_received(std::int32_t rank, std::int32_t chunk,
                                         BufferKind kind) const {
  const std::int32_t count = layers(rank, chunk);
  if (count == 0) return 0;
  return kind == BufferKind::ReceivedActivation
             ? facts(rank, chunk, 0).bytes[as_index(BufferKind::StaticInput)]
             : facts(rank, chunk, count - 1).bytes[as_index(BufferKind::GradOutput)];
}

std::int64_t BufferTable::bytes(BufferId id) const {
  if (id >= size_) return bytes(received_at(id));
  const Rank& rank = rank_of(id);
  const std::size_t offset = id - rank.base;
  const std::size_t layer = offset / kinds_ / as_index(microbatches_);
  return rank.facts[layer].bytes[offset % kinds_];
}

Buffer BufferTable::at(BufferId id) const {
  if (id >= size_) return received_at(id);
  const Rank* found = &rank_of(id);
  const std::size_t offset = id - found->base;
  const std::size_t cell = offset / kinds_;
  const auto layer = static_cast<std::int32_t>(cell / as_index(microbatches_));
  const auto& first = found->first_layer;
  const auto chunk = std::upper_bound(first.begin(), first.end(), layer) - first.begin();
  return {.rank = static_cast<std::int32_t>(found - ranks_.data()),
          .chunk = static_cast<std::int32_t>(chunk),
          .layer = layer - first[as_index(chunk) - 1],
          .microbatch = static_cast<std::int32_t>(cell % as_index(microbatches_)),
          .kind = static_cast<BufferKind>(offset % kinds_)};
}

}  // namespace capo

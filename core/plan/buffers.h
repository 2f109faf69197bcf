// Every buffer of a step has a number: seven of each rank, chunk, layer and microbatch, eight where
// some module quantizes its weight in each microbatch, and behind all of these the two of each
// chunk and microbatch into which receives are posted. The table also holds sizes, and the facts
// that decide who may share memory.
//
// Numbers are dense and computed, so that a table by buffer is a plain array. If a size is neither
// declared nor derivable, every buffer is one unit, and no report speaks of bytes. In the schedule
// every chunk has every microbatch; else there is no table. Tested by buffers_test.cpp.

#pragma once

#include "core/base/index.h"
#include "core/model/model.h"
#include "core/model/plan_options.h"
#include "core/order/schedule.h"
#include "core/plan/buffer_kind.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo {

using BufferId = std::uint32_t;
constexpr BufferId kNoBuffer = 0xffffffff;

/// Bits of an address within a region of memory.
constexpr int kAddressBits = 56;

struct Buffer {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;  ///< from 1
  std::int32_t layer = 0;
  std::int32_t microbatch = 0;
  BufferKind kind = BufferKind::StaticInput;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// Facts of a layer's buffers that hold for all microbatches.
struct LayerFacts {
  const Module* module = nullptr;  ///< null: undeclared
  Aliases aliases{true, true};     ///< undeclared: both, which is the worst
  bool aliases_declared = false;
  bool makes_for_weight = false;        ///< W reads something that forward made, besides its input
  bool keeps_quantized_weight = false;  ///< F quantizes the weight, and B reads what it made
  std::array<std::int64_t, kBufferKinds> bytes{};
  std::uint32_t input_key = 0;   ///< equal for layers whose static inputs TE may take for alike
  std::uint32_t output_key = 0;  ///< equal for layers whose outputs TE may take for alike
  std::int64_t weight_bytes = 0;
  bool delayed = false;   ///< some weight gradient of its chunk is work of its own
  bool hands_on = false;  ///< its grad input leaves the rank by a send that nobody wires

  /// Whether W reads some of what forward keeps.
  [[nodiscard]] bool weight_reads_kept() const { return !aliases.input || makes_for_weight; }
};

/// Whether a receive is posted into buffers of the kind.
constexpr bool is_received(BufferKind kind) {
  return kind == BufferKind::ReceivedActivation || kind == BufferKind::ReceivedGradient;
}

/// The buffers of one rank, numbered among themselves: those of its graphs, and behind them those
/// of its receives.
struct RankBuffers {
  BufferId graphs = 0;  ///< the first of either kind
  BufferId receives = 0;
  std::size_t graphs_count = 0;
  std::size_t receives_count = 0;

  [[nodiscard]] std::size_t size() const { return graphs_count + receives_count; }
  /// Precondition: the buffer is one of the rank's.
  [[nodiscard]] std::size_t number_of(BufferId buffer) const {
    const std::size_t among_graphs = std::size_t{buffer} - graphs;
    return among_graphs < graphs_count ? among_graphs : graphs_count + (buffer - receives);
  }
};

class BufferTable {
 public:
  /// The buffers of a chunk's receives for each microbatch: an activation and a gradient.
  static constexpr std::size_t kReceives = 2;

  BufferTable(const Schedule& schedule, std::int32_t microbatches, const ModuleTable& modules,
              const PlanOptions& options);

  /// How many graphs would have; kNoBuffer or more if they and those of receives cannot be
  /// numbered.
  [[nodiscard]] static std::uint64_t count(const Schedule& schedule, std::int32_t microbatches,
                                           const ModuleTable& modules);

  /// The number of buffers that graphs have; those of receives come behind them.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// The number of all buffers.
  [[nodiscard]] std::size_t all() const { return all_; }
  [[nodiscard]] std::size_t ranks() const { return ranks_.size(); }
  /// The number of kinds that each of its layers has.
  [[nodiscard]] std::size_t kinds() const { return kinds_; }
  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }
  [[nodiscard]] std::int32_t layers(std::int32_t rank, std::int32_t chunk) const {
    const auto& first = of(rank).first_layer;
    return first[as_index(chunk)] - first[ChunkId(chunk).index()];
  }
  [[nodiscard]] std::size_t chunks(std::int32_t rank) const {
    return of(rank).first_layer.size() - 1;
  }
  [[nodiscard]] const LayerFacts& facts(std::int32_t rank, std::int32_t chunk,
                                        std::int32_t layer) const {
    return of(rank).facts[layer_index(rank, chunk, layer)];
  }
  [[nodiscard]] BufferId id(std::int32_t rank, std::int32_t chunk, std::int32_t layer,
                            std::int32_t microbatch, BufferKind kind) const {
    const std::size_t cell = layer_index(rank, chunk, layer) * as_index(microbatches_) +
                             MicrobatchId(microbatch).index();
    return of(rank).base + static_cast<BufferId>(cell * kinds_) + static_cast<BufferId>(kind);
  }
  /// The buffer into which a chunk's activation or gradient of a microbatch is received.
  [[nodiscard]] BufferId received(std::int32_t rank, std::int32_t chunk, std::int32_t microbatch,
                                  BufferKind kind) const {
    const std::size_t cell =
        ChunkId(chunk).index() * as_index(microbatches_) + MicrobatchId(microbatch).index();
    return of(rank).receives + static_cast<BufferId>(cell * kReceives) +
           (kind == BufferKind::ReceivedGradient ? 1 : 0);
  }
  [[nodiscard]] RankBuffers of_rank(std::int32_t rank) const;
  [[nodiscard]] Buffer at(BufferId id) const;
  /// The size of at(id).
  [[nodiscard]] std::int64_t bytes(BufferId id) const;
  [[nodiscard]] std::int64_t bytes(const Buffer& buffer) const {
    if (is_received(buffer.kind)) return bytes_received(buffer.rank, buffer.chunk, buffer.kind);
    return facts(buffer.rank, buffer.chunk, buffer.layer).bytes[as_index(buffer.kind)];
  }
  /// The size of what a chunk receives: that of the static tensor into which it is copied.
  [[nodiscard]] std::int64_t bytes_received(std::int32_t rank, std::int32_t chunk,
                                            BufferKind kind) const;

  /// The first rank whose buffers and weights together are more than addresses reach, so that there
  /// is no plan; nullopt: all ranks fit.
  [[nodiscard]] std::optional<std::int32_t> beyond_addresses() const { return beyond_addresses_; }
  /// Whether sizes are bytes; else every buffer is one unit.
  [[nodiscard]] bool sized() const { return sized_; }
  /// Whether every layer's weight gradient has known operands.
  [[nodiscard]] bool aliases_declared() const { return aliases_declared_; }
  [[nodiscard]] const std::vector<LayerFacts>& facts_of(std::int32_t rank) const {
    return of(rank).facts;
  }

 private:
  struct Rank {
    BufferId base = 0;
    BufferId receives = 0;
    std::vector<std::int32_t>
        first_layer;  // chunk c at c - 1, and the number of all layers at the end
    std::vector<LayerFacts> facts;
  };

  [[nodiscard]] const Rank& of(std::int32_t rank) const { return ranks_[RankId(rank).index()]; }
  [[nodiscard]] std::size_t layer_index(std::int32_t rank, std::int32_t chunk,
                                        std::int32_t layer) const {
    const std::int32_t first = of(rank).first_layer[ChunkId(chunk).index()];
    return as_index(first) + as_index(layer);
  }
  [[nodiscard]] const Rank& rank_of(BufferId id) const;
  [[nodiscard]] Buffer received_at(BufferId id) const;
  void key_all();
  void size_all(std::int64_t alignment);
  [[nodiscard]] bool within_addresses(const Rank& rank) const;

  std::vector<Rank> ranks_;
  std::size_t kinds_ = kUnquantizedKinds;
  std::size_t size_ = 0;
  std::size_t all_ = 0;
  std::int32_t microbatches_ = 0;
  std::optional<std::int32_t> beyond_addresses_;
  bool sized_ = true;
  bool aliases_declared_ = true;
};

}  // namespace capo

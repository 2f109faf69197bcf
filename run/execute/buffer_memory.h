// The memory of a step's buffers, and a watch over reads that come too late.
//
// A plan gives every buffer a place (PlannedMemory); eager execution gives each buffer memory of
// its own for as long as somebody reads it (EagerMemory). The driver says when a buffer is written
// and when its last reader is over. Memory that is then no longer needed is filled with poison, so
// that a read that comes too late shows: in a plan only if no other buffer has taken the place over
// meanwhile, so that poison itself never makes a victim.
//
// LateReads sees which buffers are read when their memory no longer holds what was written, in runs
// of unchecked plans. After each piece of work its results are copied aside; before anybody reads
// them, place and copy are compared on the device. That is an observation of the run and knows
// nothing of plans or hazards. If another layer of the same work takes a buffer's place over at
// once, it cannot be copied in time, since the work is one graph: a static input or incoming
// gradient is then compared with what eager execution read, and anything else is not looked at. It
// takes as much memory as all buffers of a step together.
//
// Tested by buffer_memory_test.cpp and victims_test.cpp.

#pragma once

#include "core/base/index.h"
#include "core/plan/buffers.h"
#include "core/plan/plan.h"
#include "run/engine/engine.h"
#include "run/execute/rank_range.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace capo::run {

enum class Poison : std::uint8_t { Off, On };

class BufferMemory {
 public:
  virtual ~BufferMemory() = default;

  /// Null for a buffer without bytes.
  [[nodiscard]] virtual std::byte* at(BufferId buffer) = 0;
  /// The place in which a graph makes a buffer that is then copied to its own; null: it is made
  /// there.
  [[nodiscard]] virtual std::byte* made_at(BufferId) { return nullptr; }
  virtual void written(BufferId buffer) = 0;
  /// Called when nobody reads it again: calls launched on the stream from now on may destroy it.
  virtual void released(BufferId buffer, StreamId stream) = 0;
  /// Called when all of an op is launched.
  virtual void op_done(StreamId stream) = 0;
  /// Whether a buffer that was written has its place to itself still.
  [[nodiscard]] virtual bool intact(BufferId buffer) const = 0;
};

/// Buffers lie at the places of a plan, in regions that are allocated once.
class PlannedMemory final : public BufferMemory {
 public:
  /// If it is not nullopt, the ranks of `only` have memory, and nothing asks for that of others.
  PlannedMemory(Engine& engine, const BufferTable& table, const Plan& plan, Poison poison,
                std::optional<RankRange> only = std::nullopt);

  [[nodiscard]] std::byte* at(BufferId buffer) override;
  [[nodiscard]] std::byte* made_at(BufferId buffer) override;
  void written(BufferId buffer) override;
  void released(BufferId buffer, StreamId stream) override;
  void op_done(StreamId stream) override;

  /// Bytes of all ranks together.
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  /// A region of a rank.
  struct Extent {
    std::byte* begin = nullptr;
    std::int64_t bytes = 0;
  };
  [[nodiscard]] const Extent& extent(std::int32_t rank, Region region) const {
    return extents_[RankId(rank).index()][as_index(region)];
  }
  /// The buffer that took over the place of another, or kNoBuffer.
  [[nodiscard]] BufferId taken_by(BufferId buffer) const {
    return taken_by_[plan_.tensor_of(buffer)];
  }
  [[nodiscard]] bool intact(BufferId buffer) const override {
    return taken_by_[plan_.tensor_of(buffer)] == kNoBuffer;
  }

 private:
  void reach(BufferId buffer, std::int64_t address);
  void take_over(BufferId taker, std::int64_t begin);
  [[nodiscard]] std::byte* place(BufferId buffer, std::int64_t address) const;
  [[nodiscard]] std::int64_t poisoned(BufferId buffer) const;

  Engine& engine_;
  const BufferTable& table_;
  const Plan& plan_;
  Poison poison_;
  std::int64_t allocated_ = 0;
  std::vector<std::array<Extent, kRegions.size()>> extents_;  // by rank
  std::vector<std::map<std::int64_t, BufferId>> held_;        // by rank: who holds an address
  std::vector<BufferId> taken_by_;                            // by buffer
  std::vector<BufferId> over_;                                // those that the op at hand released
  // How many buffers of a tensor somebody may still read, where it is the tensor of several.
  std::map<BufferId, int> readable_;
};

/// Each buffer is allocated when it is written and given back when it is released.
class EagerMemory final : public BufferMemory {
 public:
  EagerMemory(Engine& engine, const BufferTable& table, Poison poison);

  [[nodiscard]] std::byte* at(BufferId buffer) override { return memory_[buffer]; }
  void written(BufferId buffer) override;
  void released(BufferId buffer, StreamId stream) override;
  void op_done(StreamId stream) override;

  [[nodiscard]] bool intact(BufferId buffer) const override { return memory_[buffer] != nullptr; }

  /// The most bytes that a rank held at once, by rank.
  [[nodiscard]] const std::vector<std::int64_t>& peak() const { return peak_; }

 private:
  Engine& engine_;
  const BufferTable& table_;
  Poison poison_;
  std::vector<std::byte*> memory_;   // by buffer
  std::vector<std::int64_t> alive_;  // by rank
  std::vector<std::int64_t> peak_;
};

enum class Reader : std::uint8_t { Work, Send };

class LateReads {
 public:
  LateReads(Engine& engine, const BufferTable& table);

  /// Forgets what was seen in the last replay.
  void reset();
  /// Called when the work that wrote the buffer is launched, while the place is still its own.
  void keep(BufferId buffer, const std::byte* place, StreamId stream);
  /// Called when it was written and cannot be kept. `expected` is what it should hold from its
  /// beginning on, or null.
  void keep_expected(BufferId buffer, const std::byte* expected, std::int64_t bytes);
  /// Called before its reader is launched.
  void look(BufferId buffer, const std::byte* place, Reader reader, StreamId stream);

  struct Late {
    BufferId buffer;
    Reader reader;
  };
  /// The late reads of the last replay, ordered by buffer.
  [[nodiscard]] std::vector<Late> seen() const;

  /// Whether two buffers of one size were kept in the last replay and held the same bits, so that
  /// who reads one for the other reads what it should.
  [[nodiscard]] bool same_bits(BufferId a, BufferId b) const;

 private:
  static constexpr std::size_t kReaders = 2;

  Engine& engine_;
  const BufferTable& table_;
  // A plan rounds sizes up, so what eager execution read may be less than the buffer.
  struct Held {
    const std::byte* memory = nullptr;
    std::int64_t bytes = 0;
  };
  std::vector<std::byte*> copies_;  // by buffer; null if it has no bytes
  std::vector<Held> compare_with_;  // by buffer
  std::byte* flags_ = nullptr;      // on the engine: two a buffer, one for each Reader
  std::int64_t flag_bytes_ = 0;
};

}  // namespace capo::run

// Where the buffers of a step lie: at the places of a plan, or each in memory of its own for as
// long as somebody reads it.
//
// A driver says when a buffer is written and when its last reader is over. What is then no longer
// needed is filled with poison, so that a read that comes too late shows: in a plan only where no
// other buffer has taken the place over meanwhile, so that poison itself never makes a victim.
//
// Tested by tests/run/execute/buffer_memory_test.cpp.

#pragma once

#include "core/plan/buffers.h"
#include "core/plan/plan.h"
#include "run/engine/engine.h"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace capo::run {

enum class Poison : std::uint8_t { Off, On };

class BufferMemory {
 public:
  virtual ~BufferMemory() = default;

  /// Null for a buffer without bytes.
  [[nodiscard]] virtual std::byte* at(BufferId buffer) = 0;
  virtual void written(BufferId buffer) = 0;
  /// Nobody reads it again; what is launched on the stream from now on may destroy it.
  virtual void released(BufferId buffer, StreamId stream) = 0;
  /// The op at hand is launched.
  virtual void op_done(StreamId stream) = 0;
  /// Whether a buffer that was written has its place to itself still.
  [[nodiscard]] virtual bool intact(BufferId buffer) const = 0;
};

/// At the places of a plan, in regions that are allocated once.
class PlannedMemory final : public BufferMemory {
 public:
  PlannedMemory(Engine& engine, const BufferTable& table, const Plan& plan, Poison poison);

  [[nodiscard]] std::byte* at(BufferId buffer) override;
  void written(BufferId buffer) override;
  void released(BufferId buffer, StreamId stream) override;
  void op_done(StreamId stream) override;

  /// Of all ranks.
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  /// A region of a rank: where it begins, and its bytes.
  struct Extent {
    std::byte* begin = nullptr;
    std::int64_t bytes = 0;
  };
  [[nodiscard]] const Extent& extent(std::int32_t rank, Region region) const {
    return extents_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(region)];
  }
  /// What took over the place of a buffer, or kNoBuffer.
  [[nodiscard]] BufferId taken_by(BufferId buffer) const { return taken_by_[buffer]; }
  [[nodiscard]] bool intact(BufferId buffer) const override {
    return taken_by_[buffer] == kNoBuffer;
  }

 private:
  static constexpr std::size_t kRegions = 4;

  Engine& engine_;
  const BufferTable& table_;
  const Plan& plan_;
  Poison poison_;
  std::int64_t allocated_ = 0;
  std::vector<std::array<Extent, kRegions>> extents_;   // by rank
  std::vector<std::map<std::int64_t, BufferId>> held_;  // by rank: owners by address
  std::vector<BufferId> taken_by_;                      // by buffer
  std::vector<BufferId> over_;                          // released by the op at hand
};

/// Each allocated when it is written and given back when it is released.
class EagerMemory final : public BufferMemory {
 public:
  EagerMemory(Engine& engine, const BufferTable& table, Poison poison);

  [[nodiscard]] std::byte* at(BufferId buffer) override { return memory_[buffer]; }
  void written(BufferId buffer) override;
  void released(BufferId buffer, StreamId stream) override;
  void op_done(StreamId stream) override;

  [[nodiscard]] bool intact(BufferId buffer) const override { return memory_[buffer] != nullptr; }

  /// The most that was there at once, by rank.
  [[nodiscard]] const std::vector<std::int64_t>& peak() const { return peak_; }

 private:
  Engine& engine_;
  const BufferTable& table_;
  Poison poison_;
  std::vector<std::byte*> memory_;   // by buffer
  std::vector<std::int64_t> alive_;  // by rank
  std::vector<std::int64_t> peak_;
};

}  // namespace capo::run

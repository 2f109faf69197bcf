// A piece of work writes and reads these buffers; plans and the check of plans both ask here.
//
// It is asked layer by layer, in the order in which the layers run, since a slot may pass from one
// layer of a chunk to the next within one piece of work. Work holds the buffers that it writes from
// its beginning, so writes come before reads. Addresses do not occur here (plan.h). Tested by
// safe_plan_test.cpp and hazards_test.cpp.

#pragma once

#include "core/plan/buffers.h"
#include "core/plan/work.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace capo {

struct Access {
  BufferId buffer;
  BufferKind kind;
  bool writes;
};

class Accesses {
 public:
  void add(BufferId buffer, BufferKind kind, bool writes) {
    list_[count_++] = {buffer, kind, writes};
  }
  [[nodiscard]] const Access* begin() const { return list_.data(); }
  [[nodiscard]] const Access* end() const { return begin() + count_; }

 private:
  static constexpr std::size_t kMost = 9;  // a delayed backward that quantizes has as many
  std::array<Access, kMost> list_;
  std::size_t count_ = 0;
};

/// The buffers of one of its layers that a work touches.
[[nodiscard]] Accesses accesses_of(const BufferTable& table, std::int32_t rank, const Work& work,
                                   std::int32_t layer);

/// Calls write(buffer) or read(buffer) for each of them.
template <typename Write, typename Read>
void for_each_access(const BufferTable& table, std::int32_t rank, const Work& work,
                     std::int32_t layer, Write write, Read read) {
  for (const Access& access : accesses_of(table, rank, work, layer)) {
    if (access.writes) {
      write(access.buffer);
    } else {
      read(access.buffer);
    }
  }
}

/// Returns the kind of buffer that a receive writes.
constexpr BufferKind received_kind(Kind receive) {
  return receive == Kind::ReceiveForward ? BufferKind::ReceivedActivation
                                         : BufferKind::ReceivedGradient;
}

/// The buffer into which the input of a work is received where another rank sends it: that of a
/// forward is an activation, that of a backward a gradient; kNoBuffer for a weight gradient, and
/// for the work of a layer that is not the first to run.
[[nodiscard]] BufferId received_by(const BufferTable& table, std::int32_t rank, const Work& work);

/// Layers that run one after another: `count` of them from `first`, forwards or backwards.
struct LayerRun {
  std::int32_t first;
  std::int32_t count;
  std::int32_t step;
};

[[nodiscard]] LayerRun layers_of(const BufferTable& table, std::int32_t rank, const Work& work);

/// Calls visit(layer) for the layers of a work, in the order in which they run.
template <typename Visit>
void for_each_layer(const BufferTable& table, std::int32_t rank, const Work& work, Visit visit) {
  const LayerRun run = layers_of(table, rank, work);
  for (std::int32_t i = 0; i < run.count; ++i) visit(run.first + i * run.step);
}

}  // namespace capo

// Sees with its own eyes which buffers are read when their memory no longer holds what was written.
//
// Behind each piece of work what it wrote is copied aside; in front of whoever reads it, place and
// copy are compared on the device. That is an observation of the run and knows nothing of plans or
// hazards. A buffer whose place another layer of the same work takes over at once cannot be copied
// in time, since the work is one graph: a static input or incoming gradient is then compared with
// what eager execution read, and anything else is not looked at.
//
// For runs of unchecked plans; takes as much memory as all buffers of a step together. Tested
// through tests/run/steps/victims_test.cpp.

#pragma once

#include "core/plan/buffers.h"
#include "run/engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

enum class Reader : std::uint8_t { Work, Send };

class LateReads {
 public:
  LateReads(Engine& engine, const BufferTable& table);

  /// Forgets what was seen in the last replay.
  void reset();
  /// The work that wrote the buffer is launched, and the place is still its own.
  void keep(BufferId buffer, const std::byte* place, StreamId stream);
  /// It was written, and cannot be kept; `expected`: what it should hold, or null.
  void keep_expected(BufferId buffer, const std::byte* expected);
  /// Whoever reads it comes next.
  void look(BufferId buffer, const std::byte* place, Reader reader, StreamId stream);

  struct Late {
    BufferId buffer;
    Reader reader;
  };
  /// By buffer.
  [[nodiscard]] std::vector<Late> seen() const;

 private:
  static constexpr std::size_t kReaders = 2;

  Engine& engine_;
  const BufferTable& table_;
  std::vector<std::byte*> copies_;              // by buffer; null where it has no bytes
  std::vector<const std::byte*> compare_with_;  // by buffer
  std::byte* flags_ = nullptr;                  // on the engine, two a buffer
  std::int64_t flag_bytes_ = 0;
};

}  // namespace capo::run

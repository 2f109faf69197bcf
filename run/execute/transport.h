// How a message gets from the rank that sends to the rank that receives.
//
// A driver asks for it where both sides have arrived, on the stream of the end that it launches
// first; from there on the other end waits for it. In one process a message is a copy. Several
// processes or devices are other transports of the same interface. Tested through tests/run/.

#pragma once

#include "run/engine/engine.h"

#include <cstddef>
#include <cstdint>

namespace capo::run {

struct Message {
  const std::byte* from = nullptr;  ///< the buffer that is sent
  std::byte* to = nullptr;          ///< the landing place of the rank that receives
  std::int64_t bytes = 0;
  std::int32_t sender = 0;  ///< ranks
  std::int32_t receiver = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Launched on the stream: what comes behind it there finds the message delivered.
  virtual void deliver(StreamId stream, const Message& message) = 0;
};

/// All ranks in one process, with memory of one engine.
class InProcess final : public Transport {
 public:
  explicit InProcess(Engine& engine) : engine_(engine) {}

  void deliver(StreamId stream, const Message& message) override {
    engine_.launch(stream, Copy{.bytes = message.bytes, .from = message.from, .to = message.to});
  }

 private:
  Engine& engine_;
};

}  // namespace capo::run

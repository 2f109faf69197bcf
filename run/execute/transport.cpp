#include "run/execute/transport.h"

#include "core/base/assert.h"

#include <utility>

namespace capo::run {

void InProcess::expect(const Message& message, std::byte* place) {
  mailbox_[message].place = place;
}

void InProcess::send(StreamId, const Message& message, const std::byte* from) {
  const auto letter = mailbox_.find(message);
  CAPO_ASSERT(letter != mailbox_.end(), "a message is expected before it is sent");
  letter->second.from = from;
}

void InProcess::receive(StreamId, const Message&) {
}

void InProcess::finish(StreamId stream, const Message& message, End) {
  Letter& letter = mailbox_.at(message);
  if (letter.from == nullptr) return;
  engine_.launch(stream, Copy{.bytes = message.bytes,
                              .from = std::exchange(letter.from, nullptr),
                              .to = letter.place});
}

std::unique_ptr<Transport> in_process(Engine& engine) {
  return std::make_unique<InProcess>(engine);
}

}  // namespace capo::run

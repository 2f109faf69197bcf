#include "run/execute/transport.h"

#include "core/base/assert.h"

#include <utility>

namespace capo::run {

InProcess::Letter& InProcess::letter(const Message& message) {
  const auto letters = mailbox_.find(message.channel);
  CAPO_ASSERT(letters != mailbox_.end() && message.number < letters->second.size(),
              "a message is expected before it is sent");
  return letters->second[message.number];
}

void InProcess::expect(const Message& message, std::byte* place) {
  std::vector<Letter>& letters = mailbox_[message.channel];
  if (letters.size() <= message.number) letters.resize(message.number + 1);
  letters[message.number].place = place;
}

void InProcess::send(StreamId, const Message& message, const std::byte* from) {
  letter(message).from = from;
}

void InProcess::receive(StreamId, const Message&) {
}

void InProcess::finish(StreamId stream, const Message& message, End) {
  Letter& of = letter(message);
  if (of.from == nullptr) return;
  engine_.launch(
      stream,
      Copy{.bytes = message.bytes, .from = std::exchange(of.from, nullptr), .to = of.place});
}

std::unique_ptr<Transport> in_process(Engine& engine) {
  return std::make_unique<InProcess>(engine);
}

}  // namespace capo::run

#include "run/processes/between_processes.h"

#include "core/base/assert.h"
#include "run/execute/step_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

BetweenProcesses::Head BetweenProcesses::head_of(const Message& message) {
  return {.sender = message.channel.sender,
          .receiver = message.channel.receiver,
          .communicator = message.channel.communicator,
          .number = message.number};
}

// Both sides count the messages of a channel alike; ranks of one process share its number there.
std::int64_t BetweenProcesses::tag_of(const Message& message) const {
  const auto number = static_cast<std::int64_t>(message.number);
  const std::int64_t several = apart_.division.per_process;
  return (number * several + message.channel.sender % several) * several +
         message.channel.receiver % several;
}

void BetweenProcesses::expect(const Message& message, std::byte* place) {
  places_[message] = place;
}

// All processes know all messages, so they make the same communicators.
void BetweenProcesses::prepare() {
  int communicators = 1;
  for (const auto& [message, place] : places_) {
    if (!error_ && tag_of(message) > processes_.library().largest_tag()) refuse(message);
    communicators = std::max(communicators, message.channel.communicator + 1);
  }
  first_ = processes_.library().add_communicators(communicators);
}

void BetweenProcesses::refuse(const Message& message) {
  error_ =
      Error{.kind = ErrorKind::Environment,
            .message = fmt::format("{}, would have the tag {}, and {} has none above {}",
                                   name_of(message, apart_.words), tag_of(message),
                                   processes_.library().name(), processes_.library().largest_tag()),
            .help = apart_.division.per_process > 1
                        ? "tags number the ranks of a process: give a smaller --ranks-per-device"
                        : "tags number the messages of two ranks: give an order of fewer "
                          "microbatches"};
}

void BetweenProcesses::begin_step() {
  if (broken()) return;
  const auto stuck = begin_together(engine_, apart_, places_);
  if (stuck && !broken()) tell_stuck(*stuck);
}

void BetweenProcesses::send(StreamId, const Message& message, const std::byte* from) {
  if (broken()) return;
  Begun& begun = begun_[{message, End::Send}];
  begun.head = head_of(message);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send reads what it is given
  auto* bytes = const_cast<std::byte*>(from);
  begun.request = processes_.library().send(
      first_ + message.channel.communicator, apart_.division.home(message.channel.receiver),
      static_cast<int>(tag_of(message)), {{&begun.head, sizeof(Head)}, {bytes, message.bytes}},
      apart_.mode);
}

void BetweenProcesses::receive(StreamId, const Message& message) {
  if (broken()) return;
  Begun& begun = begun_[{message, End::Receive}];
  begun.head = {};
  begun.request = processes_.library().receive(
      first_ + message.channel.communicator, apart_.division.home(message.channel.sender),
      static_cast<int>(tag_of(message)),
      {{&begun.head, sizeof(Head)}, {places_.at(message), message.bytes}});
}

void BetweenProcesses::finish(StreamId, const Message& message, End end) {
  if (broken()) return;
  const auto begun = begun_.find({message, end});
  CAPO_ASSERT(begun != begun_.end(), "an end begins before it finishes");
  if (!processes_.wait(begun->second.request)) {
    if (broken()) return;
    const bool sends = end == End::Send;
    const std::int32_t peer = sends ? message.channel.receiver : message.channel.sender;
    return tell_stuck(
        {.rank = sends ? message.channel.sender : message.channel.receiver,
         .awaited = peer,
         .words = fmt::format("waits for rank {} to {} {}", peer, sends ? "receive" : "send",
                              name_of(message, apart_.words))});
  }
  const Head came = begun->second.head;
  begun_.erase(begun);
  if (end == End::Send || came == head_of(message)) return;
  fail(fmt::format("rank {} received message {} from rank {} instead of {}",
                   message.channel.receiver, came.number, came.sender,
                   name_of(message, apart_.words)));
}

bool BetweenProcesses::broken() {
  if (error_) return true;
  const char* why = processes_.library().error();
  if (why == nullptr) return false;
  fail(fmt::format("rank {}: {}", processes_.rank(), why));
  return true;
}

void BetweenProcesses::fail(std::string message) {
  error_ = Error{.kind = ErrorKind::Environment,
                 .message = std::move(message),
                 .help = "--timeout says how long a message may take"};
}

void BetweenProcesses::tell_stuck(const StuckRank& own) {
  fail(stuck_state_of(processes_, {own}, apart_.division.ranks));
}

std::optional<StuckRank> begin_together(Engine& engine, const Apart& apart,
                                        const std::map<Message, std::byte*>& places) {
  for (const auto& [message, place] : places) {
    if (apart.division.home(message.channel.receiver) != apart.processes.rank()) continue;
    engine.launch(0, Fill{.bytes = message.bytes, .value = kPoison, .to = place});
  }
  engine.synchronise();
  if (apart.processes.meet(apart.patience)) return std::nullopt;
  return StuckRank{.rank = apart.division.of(apart.processes.rank()).first,
                   .words = "waits for all ranks to begin a replay"};
}

std::string name_of(const Message& message, const MessageWords& words) {
  return fmt::format("message {} from rank {} to rank {}, {}", message.number,
                     message.channel.sender, message.channel.receiver, words(message));
}

std::unique_ptr<Transport> between_processes(Engine& engine, const Apart& apart) {
  return std::make_unique<BetweenProcesses>(engine, apart);
}

}  // namespace capo::run

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

namespace {

// Both sides count the messages of a channel alike.
int tag_of(const Message& message) {
  return static_cast<int>(message.number);
}

// "rank 0 for rank 1, that for rank 0", of the first circle of waits; empty if there is none.
std::string circle_of(const std::vector<std::int32_t>& awaited) {
  const auto known = [&](std::int32_t rank) {
    return rank >= 0 && static_cast<std::size_t>(rank) < awaited.size();
  };
  for (std::size_t first = 0; first < awaited.size(); ++first) {
    std::string words = fmt::format("rank {}", first);
    std::int32_t at = awaited[first];
    for (std::size_t steps = 0; steps < awaited.size() && known(at); ++steps) {
      words += fmt::format("{} for rank {}", steps == 0 ? "" : ", which waits", at);
      if (static_cast<std::size_t>(at) == first) return words;
      at = awaited[static_cast<std::size_t>(at)];
    }
  }
  return "";
}

// The state in which nothing goes on, a line a rank.
std::string stuck_state_of(const std::vector<std::optional<std::string>>& ranks,
                           Processes::Duration timeout) {
  std::string words =
      fmt::format("no message came for {:g} s, and ranks are stuck:", timeout.count());
  std::vector<std::int32_t> awaited;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    awaited.push_back(ranks[rank] ? std::stoi(*ranks[rank]) : -1);
    words += fmt::format(
        "\n  rank {} {}", rank,
        ranks[rank] ? ranks[rank]->substr(ranks[rank]->find(' ') + 1) : "does not answer");
  }
  const std::string circle = circle_of(awaited);
  return circle.empty() ? words : words + "\n  in a circle: " + circle;
}

}  // namespace

BetweenProcesses::Head BetweenProcesses::head_of(const Message& message) {
  return {.sender = message.channel.sender,
          .receiver = message.channel.receiver,
          .communicator = message.channel.communicator,
          .number = message.number};
}

void BetweenProcesses::expect(const Message& message, std::byte* place) {
  places_[message] = place;
}

// All processes know all messages, so they make the same communicators.
void BetweenProcesses::prepare() {
  int communicators = 1;
  for (const auto& [message, place] : places_) {
    communicators = std::max(communicators, message.channel.communicator + 1);
  }
  first_ = processes_.library().add_communicators(communicators);
}

void BetweenProcesses::begin_step() {
  if (broken()) return;
  if (!std::exchange(prepared_, true)) prepare();
  for (const auto& [message, place] : places_) {
    if (message.channel.receiver != processes_.rank()) continue;
    engine_.launch(0, Fill{.bytes = message.bytes, .value = kPoison, .to = place});
  }
  engine_.synchronise();
  if (!processes_.meet(patience_)) {
    if (!broken()) tell_stuck(-1, "waits for all ranks to begin a replay");
  }
}

void BetweenProcesses::send(StreamId, const Message& message, const std::byte* from) {
  if (broken()) return;
  Begun& begun = begun_[{message, End::Send}];
  begun.head = head_of(message);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send reads what it is given
  auto* bytes = const_cast<std::byte*>(from);
  begun.request = processes_.library().send(
      first_ + message.channel.communicator, message.channel.receiver, tag_of(message),
      {{&begun.head, sizeof(Head)}, {bytes, message.bytes}}, mode_);
}

void BetweenProcesses::receive(StreamId, const Message& message) {
  if (broken()) return;
  Begun& begun = begun_[{message, End::Receive}];
  begun.head = {};
  begun.request = processes_.library().receive(
      first_ + message.channel.communicator, message.channel.sender, tag_of(message),
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
    return tell_stuck(peer, fmt::format("waits for rank {} to {} {}", peer,
                                        sends ? "receive" : "send", place_of(message)));
  }
  const Head came = begun->second.head;
  begun_.erase(begun);
  if (end == End::Send || came == head_of(message)) return;
  fail(fmt::format("rank {} received message {} from rank {} instead of {}", processes_.rank(),
                   came.number, came.sender, place_of(message)));
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

// Each rank tells whom it waits for, in front of a space and the words for it.
void BetweenProcesses::tell_stuck(std::int32_t awaited, const std::string& why) {
  const auto all = processes_.gather(fmt::format("{} {}", awaited, why));
  if (processes_.rank() == 0) return fail(stuck_state_of(all, processes_.timeout()));
  fail(all.front() ? ""
                   : fmt::format("rank {} {}, and rank 0 does not answer", processes_.rank(), why));
}

std::string BetweenProcesses::place_of(const Message& message) const {
  return fmt::format("message {} from rank {} to rank {}, {}", message.number,
                     message.channel.sender, message.channel.receiver, words_(message));
}

}  // namespace capo::run

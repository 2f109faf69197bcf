// The transport of ranks that are processes of their own: messages of a MessageLibrary.
//
// Each message carries who sent it, through which communicator, and the how many-th it is, before
// its bytes. The channel's communicator and the number are the library's communicator and tag; a
// message that is not the awaited one shows, and ends the run. A send goes from the planned buffer
// itself, so what happens to the buffer before the send is over is seen. finish() waits on the
// host, which no graph can hold: replays are of single actions.
//
// Eager execution in the same process has left in every landing place what a replay should bring
// there; begin_step() poisons the places, so that a message that does not come cannot go unnoticed.
// It also makes all processes meet, so that a step begins everywhere at about one time. A process
// may be late there for a good reason, such as a comparison with float64: `patience` is added to
// the timeout.
//
// After a wait that was too long the error is the stuck state of all ranks, at rank 0, which the
// others tell theirs; there it is empty, unless rank 0 does not answer. It names a circle of waits
// if there is one.
//
// The memory of the engine must be the processor's. Tested by processes_test.cpp.

#pragma once

#include "run/execute/rank_range.h"
#include "run/execute/transport.h"
#include "run/processes/processes.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// Tells in words what a message is for: "which F of chunk 1, microbatch 0 of rank 1 reads".
using MessageWords = std::function<std::string(const Message&)>;

/// "message 0 from rank 0 to rank 1, which F of chunk 1, microbatch 0 of rank 1 reads".
[[nodiscard]] std::string name_of(const Message& message, const MessageWords& words);

/// A message, and the streams of the whole program that its ends begin and finish on.
struct Ends {
  Message message;
  StreamId sender = 0;
  StreamId receiver = 0;
};

/// A transport between processes is made for these.
struct Apart {
  Processes& processes;
  Division division;
  MessageLibrary::Mode mode = MessageLibrary::Mode::Rendezvous;
  /// A process may be so late for a step, for a good reason.
  Processes::Duration patience = {};
  MessageWords words;
  std::vector<Ends> ends;  ///< of all messages between processes
};

/// Begins a step in all processes at about one time: poisons the places of this one's messages, so
/// that one that does not come cannot go unnoticed, and meets the others. Returns who waited in
/// vain.
[[nodiscard]] std::optional<StuckRank> begin_together(Engine& engine, const Apart& apart,
                                                      const std::map<Message, std::byte*>& places);

using BetweenFactory = std::function<std::unique_ptr<Transport>(Engine&, const Apart&)>;

class BetweenProcesses final : public Transport {
 public:
  BetweenProcesses(Engine& engine, const Apart& apart)
      : engine_(engine), processes_(apart.processes), apart_(apart) {}

  void expect(const Message& message, std::byte* place) override;
  void prepare() override;
  void begin_step() override;
  void send(StreamId stream, const Message& message, const std::byte* from) override;
  void receive(StreamId stream, const Message& message) override;
  void finish(StreamId stream, const Message& message, End end) override;
  [[nodiscard]] const std::optional<Error>& error() const override { return error_; }

 private:
  // The fields stand before a message's bytes.
  struct Head {
    std::int32_t sender = -1;
    std::int32_t receiver = -1;
    std::uint32_t communicator = 0;
    std::uint32_t number = 0;

    friend bool operator==(const Head&, const Head&) = default;
  };
  struct Begun {
    int request = 0;
    Head head;
  };
  using Pieces = Piece[2];

  [[nodiscard]] static Head head_of(const Message& message);
  [[nodiscard]] std::int64_t tag_of(const Message& message) const;
  [[nodiscard]] bool broken();
  void fail(std::string message);
  void refuse(const Message& message);
  void tell_stuck(const StuckRank& own);

  Engine& engine_;
  Processes& processes_;
  Apart apart_;
  std::map<Message, std::byte*> places_;  // of all ranks' messages
  std::map<std::pair<Message, End>, Begun> begun_;
  int first_ = 0;  // the library's number of communicator 0
  std::optional<Error> error_;
};

[[nodiscard]] std::unique_ptr<Transport> between_processes(Engine& engine, const Apart& apart);

/// Some ranks share a process: messages between those are copies, all others go through another
/// transport.
class PartlyInProcess final : public Transport {
 public:
  PartlyInProcess(Engine& engine, const Division& division, std::unique_ptr<Transport> between)
      : division_(division), within_(engine), between_(std::move(between)) {}

  void expect(const Message& message, std::byte* place) override {
    of(message).expect(message, place);
  }
  void prepare() override { between_->prepare(); }
  void begin_step() override { between_->begin_step(); }
  void end_step() override { between_->end_step(); }
  void send(StreamId stream, const Message& message, const std::byte* from) override {
    of(message).send(stream, message, from);
  }
  void receive(StreamId stream, const Message& message) override {
    of(message).receive(stream, message);
  }
  void finish(StreamId stream, const Message& message, End end) override {
    of(message).finish(stream, message, end);
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return between_->error(); }

 private:
  [[nodiscard]] Transport& of(const Message& message) {
    const Channel& channel = message.channel;
    const bool within = division_.home(channel.sender) == division_.home(channel.receiver);
    return within ? static_cast<Transport&>(within_) : *between_;
  }

  Division division_;
  InProcess within_;
  std::unique_ptr<Transport> between_;
};

}  // namespace capo::run

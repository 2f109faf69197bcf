// The transport of ranks that are processes of their own: messages of a MessageLibrary.
//
// Each message carries who sent it, through which communicator, and the how many-th it is, before
// its bytes. The channel's communicator and the number are the library's communicator and tag; a
// message that is not the awaited one shows, and ends the run. A send goes from the
// planned buffer itself, so what happens to the buffer before the send is over is seen. finish()
// waits on the host, which no graph can hold: replays are of single actions.
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

#include "run/execute/transport.h"
#include "run/processes/processes.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace capo::run {

/// Tells in words what a message is for: "which F of chunk 1, microbatch 0 of rank 1 reads".
using MessageWords = std::function<std::string(const Message&)>;

class BetweenProcesses final : public Transport {
 public:
  BetweenProcesses(Engine& engine, Processes& processes, MessageLibrary::Mode mode,
                   Processes::Duration patience, MessageWords words)
      : engine_(engine),
        processes_(processes),
        mode_(mode),
        patience_(patience),
        words_(std::move(words)) {}

  void expect(const Message& message, std::byte* place) override;
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
  void prepare();
  [[nodiscard]] bool broken();
  void fail(std::string message);
  void tell_stuck(std::int32_t awaited, const std::string& why);
  [[nodiscard]] std::string place_of(const Message& message) const;

  Engine& engine_;
  Processes& processes_;
  MessageLibrary::Mode mode_;
  Processes::Duration patience_;
  MessageWords words_;
  std::map<Message, std::byte*> places_;  // of all ranks' messages
  std::map<std::pair<Message, End>, Begun> begun_;
  int first_ = 0;  // the library's number of communicator 0
  bool prepared_ = false;
  std::optional<Error> error_;
};

}  // namespace capo::run

// How a message gets from the rank that sends it to the rank that receives it.
//
//   rank 0, its stream:  send(m, from)    finish(m, Send)       `from` is the buffer that is sent
//   rank 1, its stream:  receive(m)       finish(m, Receive)    m lies where expect() said
//
// Both ends of a transfer begin and finish as the task graph has them: whatever was launched on the
// stream before send() has written the bytes, whatever is launched after finish() finds the buffer
// free, or the message in its place. Neither side is told an address of the other: a message is
// matched by its channel and its number on it, which both sides count alike, since a verified plan
// issues both ends of a channel in one order. A place is announced once, while the run is set up,
// and stays, so that a buffered send may be over before its receive begins, and graphs can bake it
// in.
//
// Members of a fused group begin one after another on one stream before any of them finishes; all
// that has begun on a stream and is not finished may be moved together.
//
// `InProcess` is for ranks that share one process and one engine: a message is a copy.
// `BetweenProcesses` (run/processes) is for ranks that are processes: a message is one of MPI. What
// a host waits for cannot be captured, so that replays single actions and not whole steps.
// `NcclTransport` (gpu/nccl) is for one process a GPU: the first finish() on a stream launches all
// that has begun there as one group. It is a rendezvous, as the plan must have been verified for,
// and captures may hold it.
//
// Ranks that live in one process and others may be mixed: a message names both, and
// `PartlyInProcess` (run/processes) takes it to one transport or the other. A transport decides
// when to give up on a message that does not come. It then keeps an error, which names the channel
// and the number, and does nothing more; the driver asks for error() after each call and ends the
// run. Nothing here depends on a time: which orders get stuck is the verdict's to say.
//
// Tested by transport_test.cpp.

#pragma once

#include "core/base/error.h"
#include "run/engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace capo::run {

/// The messages from one rank to another through one communicator, which arrive as they were sent.
struct Channel {
  std::int32_t sender = 0;  ///< a rank
  std::int32_t receiver = 0;
  std::uint8_t communicator = 0;

  friend auto operator<=>(const Channel&, const Channel&) = default;
};

struct Message {
  Channel channel;
  std::uint32_t number = 0;  ///< counts the messages of a channel in a step, from 0
  std::int64_t bytes = 0;

  friend auto operator<=>(const Message&, const Message&) = default;
};

enum class End : std::uint8_t { Send, Receive };

/// Communicators of transfers between two ranks are numbered below it (communicator_between()).
/// Two more follow, of reductions and of rows that cross, so that no message of one kind is ever
/// matched with that of another.
inline constexpr std::uint8_t kCommunicatorsBetween = 4;
inline constexpr std::uint8_t kReductionsThrough = kCommunicatorsBetween;
inline constexpr std::uint8_t kCrossingsThrough = kCommunicatorsBetween + 1;

class Transport {
 public:
  virtual ~Transport() = default;

  /// Says on the receiving side where a message lands in every step. Called before any other call
  /// about the message.
  virtual void expect(const Message& message, std::byte* place) = 0;

  /// All places have been announced, and nothing has begun or is being captured. Where there are
  /// several processes, all of them call.
  virtual void prepare() {}
  /// A replay is about to begin: nothing of the one before is under way.
  virtual void begin_step() {}
  /// The replay is over, or broke off.
  virtual void end_step() {}

  /// The send begins: the bytes at `from` are written when the stream gets here, and stay until the
  /// send finishes.
  virtual void send(StreamId stream, const Message& message, const std::byte* from) = 0;
  /// The receive begins: nobody reads the place any more when the stream gets here.
  virtual void receive(StreamId stream, const Message& message) = 0;
  /// One end finishes: launches on the stream, or makes it wait for, what the end needs.
  virtual void finish(StreamId stream, const Message& message, End end) = 0;

  /// The first failure, after which the transport does nothing more.
  [[nodiscard]] virtual const std::optional<Error>& error() const = 0;
};

/// All ranks share one process, and their memory is that of one engine.
///
/// Between calls a mailbox keeps what was sent from where. The end that finishes first copies, on
/// its own stream, since both have begun there, or the send is buffered; the other one launches
/// nothing, because the program makes its stream wait for the first.
class InProcess final : public Transport {
 public:
  explicit InProcess(Engine& engine) : engine_(engine) {}

  void expect(const Message& message, std::byte* place) override;
  void send(StreamId stream, const Message& message, const std::byte* from) override;
  void receive(StreamId stream, const Message& message) override;
  void finish(StreamId stream, const Message& message, End end) override;
  [[nodiscard]] const std::optional<Error>& error() const override { return none_; }

 private:
  struct Letter {
    std::byte* place = nullptr;
    const std::byte* from = nullptr;  // null: not sent, or delivered already
  };

  [[nodiscard]] Letter& letter(const Message& message);

  Engine& engine_;
  std::map<Channel, std::vector<Letter>> mailbox_;  // by number
  std::optional<Error> none_;                       // a copy fails as a launch of the engine does
};

/// Makes the transport of a run.
using TransportFactory = std::function<std::unique_ptr<Transport>(Engine&)>;

[[nodiscard]] std::unique_ptr<Transport> in_process(Engine& engine);

}  // namespace capo::run

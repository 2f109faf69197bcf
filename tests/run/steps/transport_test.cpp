// Transports: the calls that a run makes of one, and a step whose two sides share nothing but a
// wire.
//
// `Wire` is a transport as two processes would have it: the sending side copies its buffer into a
// wire's memory, the receiving side copies from there to its place, and neither ever sees an
// address of the other. Steps that run on it are as right as in one process.

#include "run/execute/transport.h"
#include "run/host/host_engine.h"
#include "schedules/catalogue.h"
#include "tests/run/exchanging.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

struct Seen {
  enum class Kind : std::uint8_t { Expect, Send, Receive, FinishSend, FinishReceive };
  Kind kind;
  Message message;
  StreamId stream = 0;
};

struct Log {
  std::vector<Seen> calls;
  std::set<const void*> sent_from;
  std::set<const void*> landed_at;

  [[nodiscard]] std::size_t count(Seen::Kind kind) const {
    return static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [&](const Seen& call) { return call.kind == kind; }));
  }
};

class Wire final : public Transport {
 public:
  Wire(Engine& engine, Log& log, std::size_t breaks_after)
      : engine_(engine), log_(log), breaks_after_(breaks_after) {}

  void expect(const Message& message, std::byte* place) override {
    log_.calls.push_back({.kind = Seen::Kind::Expect, .message = message});
    log_.landed_at.insert(place);
    place_[message] = place;
    wire_[message].memory = engine_.allocate(message.bytes, "a wire");
  }
  void send(StreamId stream, const Message& message, const std::byte* from) override {
    if (!goes_on({.kind = Seen::Kind::Send, .message = message, .stream = stream})) return;
    log_.sent_from.insert(from);
    Cable& cable = wire_.at(message);
    engine_.launch(stream, Copy{.bytes = message.bytes, .from = from, .to = cable.memory});
    cable.written = engine_.record(stream);
  }
  void receive(StreamId stream, const Message& message) override {
    (void)goes_on({.kind = Seen::Kind::Receive, .message = message, .stream = stream});
  }
  void finish(StreamId stream, const Message& message, End end) override {
    const bool sends = end == End::Send;
    if (!goes_on({.kind = sends ? Seen::Kind::FinishSend : Seen::Kind::FinishReceive,
                  .message = message,
                  .stream = stream})) {
      return;
    }
    if (sends) return;
    const Cable& cable = wire_.at(message);
    engine_.wait(stream, cable.written.value());
    engine_.launch(stream,
                   Copy{.bytes = message.bytes, .from = cable.memory, .to = place_.at(message)});
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return error_; }

 private:
  struct Cable {
    std::byte* memory = nullptr;
    std::optional<EventId> written;
  };

  [[nodiscard]] bool goes_on(const Seen& call) {
    if (error_) return false;
    log_.calls.push_back(call);
    if (log_.calls.size() < breaks_after_) return true;
    error_ = Error{.message = "message 0 from rank 0 to rank 1 did not come", .help = "wait"};
    return false;
  }

  Engine& engine_;
  Log& log_;
  std::size_t breaks_after_;
  std::map<Message, std::byte*> place_;  // of the receiving side
  std::map<Message, Cable> wire_;
  std::optional<Error> error_;
};

TransportFactory wired(Log& log, std::size_t breaks_after = ~std::size_t{0}) {
  return [&log, breaks_after](Engine& engine) -> std::unique_ptr<Transport> {
    return std::make_unique<Wire>(engine, log, breaks_after);
  };
}

constexpr const char* kTwoRanks =
    "capo 1\nranks 2\nmicrobatches 3\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\nrank 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n";

VerifiedPlan planned(Input input, const Environment& environment) {
  CheckOptions options = every_layer(small(ModuleKind::Linear));
  options.environment = environment;
  return verified(std::move(input), options);
}

Input published_step(const std::string& name) {
  return {
      .form = Form::OrderFile,
      .schedule = schedules::schedule_named({.name = name, .ranks = 2, .microbatches = 4}).value()};
}

// Steps with transfers one by one, buffered, between chunks that go back and forth, and in fused
// groups, where two ranks send to each other at once.
std::vector<VerifiedPlan> plans() {
  std::vector<VerifiedPlan> all;
  const Environment pairs{.communicators = Communicators::PerPair};
  all.push_back(planned(typed(kTwoRanks), pairs));
  all.push_back(planned(typed(kTwoRanks), {.transfers = TransferMode::Buffered}));
  all.push_back(planned(published_step("interleaved"), {.transfers = TransferMode::Buffered}));
  all.push_back(planned(published_step("1f1b"), {.p2p = MegatronCalls::Batch}));
  return all;
}

std::size_t messages_of(const RunReport& report) {
  return report.program.transfers.size();
}

// Each call is made on a stream of the rank whose side it is.
void expect_on_own_streams(const RunReport& report, const std::vector<Seen>& calls) {
  for (const Seen& call : calls) {
    const bool sends = call.kind == Seen::Kind::Send || call.kind == Seen::Kind::FinishSend;
    const Channel& channel = call.message.channel;
    EXPECT_EQ(report.program.rank_of_stream[call.stream],
              sends ? channel.sender : channel.receiver);
    EXPECT_NE(channel.sender, channel.receiver);
  }
}

// In a walk over the step both sides of a channel count its messages alike, every side begins
// before it finishes, and nothing arrives that was not sent.
void expect_in_order(const std::vector<Seen>& calls) {
  std::map<std::pair<Channel, Seen::Kind>, std::uint32_t> next;
  std::set<std::pair<Message, Seen::Kind>> seen;
  for (const Seen& call : calls) {
    EXPECT_TRUE(seen.insert({call.message, call.kind}).second);
    if (call.kind == Seen::Kind::Send || call.kind == Seen::Kind::Receive) {
      const std::uint32_t number = next[{call.message.channel, call.kind}]++;
      EXPECT_EQ(call.message.number, number);
      continue;
    }
    const bool sends = call.kind == Seen::Kind::FinishSend;
    EXPECT_TRUE(seen.contains({call.message, sends ? Seen::Kind::Send : Seen::Kind::Receive}));
    EXPECT_TRUE(seen.contains({call.message, Seen::Kind::Send}));
  }
}

std::vector<Seen> part(const Log& log, std::size_t first, std::size_t count) {
  const auto begin = log.calls.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

TEST(Transport, EachSideCallsOnItsOwnStreamAndInOrder) {
  for (const Granularity graphs : kGranularities) {
    for (const VerifiedPlan& plan : plans()) {
      Log log;
      const RunReport report =
          report_of(plan, {.graphs = graphs, .replays = 1, .transport = wired(log)});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds);
      const std::size_t messages = messages_of(report);
      ASSERT_GT(messages, 4U);
      // The messages are expected once; then come the walk of eager execution, on one stream, and
      // that of the replay, or of the capture if the step is one graph.
      ASSERT_EQ(log.calls.size(), 9 * messages);
      EXPECT_EQ(log.count(Seen::Kind::Expect), messages);
      const bool captures = graphs == Granularity::PerStep;
      const std::vector<Seen> first = part(log, messages, 4 * messages);
      const std::vector<Seen> second = part(log, 5 * messages, 4 * messages);
      expect_on_own_streams(report, captures ? first : second);
      expect_in_order(first);
      expect_in_order(second);
    }
  }
}

TEST(Transport, NeitherSideSeesAnAddressOfTheOther) {
  for (const VerifiedPlan& plan : plans()) {
    Log log;
    const RunReport report = report_of(plan, {.replays = 2, .transport = wired(log)});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_FALSE(log.sent_from.empty());
    EXPECT_EQ(log.landed_at.size(), messages_of(report));
    for (const void* place : log.landed_at) EXPECT_FALSE(log.sent_from.contains(place));
  }
}

// Eager execution has left every message where it lands; a replay's are its own all the same.
TEST(Transport, AMessageThatDoesNotComeShows) {
  const VerifiedPlan plan = planned(typed(kTwoRanks), {.communicators = Communicators::PerPair});
  std::set<Message> crossed;
  Log log;
  const std::size_t messages =
      messages_of(report_of(plan, {.replays = 1, .transport = wired(log)}));
  ASSERT_EQ(messages, 6U);
  for (std::size_t lost = 0; lost < messages; ++lost) {
    const Message message = log.calls[lost].message;
    const RunReport report = report_of(plan, {.replays = 1, .transport = losing(crossed, message)});
    EXPECT_FALSE(report.bit_equal) << lost;
  }
}

TEST(Transport, OneThatGivesUpEndsTheRun) {
  const VerifiedPlan plan = planned(typed(kTwoRanks), {.communicators = Communicators::PerPair});
  Log whole;
  const std::size_t calls = report_of(plan, {.transport = wired(whole)}).replays == 3
                                ? whole.calls.size()
                                : std::size_t{0};
  ASSERT_GT(calls, 100U);
  for (const std::size_t last : {std::size_t{20}, calls / 2, calls - 1}) {
    Log log;
    const auto report = attempt(plan, {.transport = wired(log, last)});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, RunFailure::Kind::Broken);
    EXPECT_EQ(report.error().message, "message 0 from rank 0 to rank 1 did not come");
    EXPECT_EQ(report.error().help, "wait");
    EXPECT_EQ(log.calls.size(), last);
  }
}

// A mailbox between two ranks on the host: a message of four bytes.
class Mailbox : public ::testing::Test {
 protected:
  Mailbox() {
    engine.have_streams(2);
    engine.write(from, "sent", 4);
    transport.expect(message, place);
  }

  [[nodiscard]] std::string landed() {
    std::string bytes(4, '\0');
    engine.read(bytes.data(), place, 4);
    return bytes;
  }

  host::HostEngine engine;
  InProcess transport{engine};
  const Message message{.channel = {.sender = 0, .receiver = 1}, .number = 0, .bytes = 4};
  std::byte* from = engine.allocate(4, "sent");
  std::byte* place = engine.allocate(4, "received");
};

TEST_F(Mailbox, WhicheverEndFinishesFirstDelivers) {
  for (const End first : {End::Send, End::Receive}) {
    engine.write(place, "none", 4);
    transport.receive(1, message);
    transport.send(0, message, from);
    EXPECT_EQ(landed(), "none");
    transport.finish(first == End::Send ? 0 : 1, message, first);
    EXPECT_EQ(landed(), "sent");
    engine.write(place, "read", 4);
    const End second = first == End::Send ? End::Receive : End::Send;
    transport.finish(second == End::Send ? 0 : 1, message, second);
    EXPECT_EQ(landed(), "read");
  }
}

TEST_F(Mailbox, ABufferedSendIsOverBeforeItsReceiveBegins) {
  transport.send(0, message, from);
  transport.finish(0, message, End::Send);
  EXPECT_EQ(landed(), "sent");
  transport.receive(1, message);
  transport.finish(1, message, End::Receive);
  EXPECT_EQ(landed(), "sent");
}

TEST_F(Mailbox, MessagesAreToldApartByChannelAndNumber) {
  Message next = message;
  next.number = 1;
  Message back = message;
  std::swap(back.channel.sender, back.channel.receiver);
  std::byte* others = engine.allocate(8, "others");
  engine.write(others, "other...", 8);
  transport.expect(next, others);
  transport.expect(back, others + 4);
  transport.send(0, message, from);
  transport.finish(1, next, End::Receive);
  transport.finish(0, back, End::Receive);
  std::string bytes(8, '\0');
  engine.read(bytes.data(), others, 8);
  EXPECT_EQ(bytes, "other...");
  transport.finish(1, message, End::Receive);
  EXPECT_EQ(landed(), "sent");
}

}  // namespace
}  // namespace capo::run

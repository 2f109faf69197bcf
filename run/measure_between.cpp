#include "run/measure.h"

#include "core/base/median.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

constexpr std::uint32_t kTimes = 9;
// The two sides do not begin a step at quite the same time, which several trips make small.
constexpr std::int64_t kTrips = 8;
constexpr std::int64_t kNextToNothing = 16;
// Computation is launched for so many times as long as messages take by themselves.
constexpr double kCover = 4;
// A message that goes again and again is in the cache of a device, which has some fifty million
// bytes. In a step what it is made of has left the cache, or computation drives it out.
constexpr std::int64_t kMoreThanCaches = 256 << 20;
// A cache may hold all of them where they have less than four million bytes.
constexpr std::int64_t kMostTurns = 64;
constexpr double kMostLaunches = 1e4;

// Messages of some size that go from rank 0 to rank 1 and back, on a stream of their own. Large
// ones take turns, as many as no cache holds.
class RoundTrip {
 public:
  RoundTrip(Engine& engine, Processes& processes, const BetweenFactory& make, std::int64_t bytes)
      : engine_(engine), bytes_(bytes), first_(processes.rank() == 0) {
    engine_.have_streams(kMessages + 1);
    const auto turns = std::clamp<std::int64_t>(
        kMoreThanCaches / std::max<std::int64_t>(bytes, 1) + 1, 2, kMostTurns);
    for (std::uint32_t number = 0; number <= turns; ++number) {
      there_.push_back({.channel = {.sender = 0, .receiver = 1},
                        .number = number,
                        .bytes = number == 0 ? std::min(kNextToNothing, bytes) : bytes});
      back_.push_back(there_.back());
      std::swap(back_.back().channel.sender, back_.back().channel.receiver);
    }
    Apart apart{.processes = processes, .division = {.ranks = 2}, .words = [](const Message&) {
                  return std::string("which is measured");
                }};
    for (const auto* messages : {&there_, &back_}) {
      for (const Message& message : *messages) apart.ends.push_back({.message = message});
    }
    for (Ends& ends : apart.ends) {
      ends.sender = static_cast<StreamId>(ends.message.channel.sender);
      ends.receiver = static_cast<StreamId>(ends.message.channel.receiver);
    }
    out_ = engine_.allocate(turns * bytes, "messages to measure");
    in_ = engine_.allocate(turns * bytes, "messages to measure");
    if (engine_.error()) return;
    engine_.launch(kMessages, Fill{.bytes = turns * bytes, .value = 0, .to = out_});
    transport_ = make(engine, apart);
    for (const Message& message : first_ ? back_ : there_) {
      transport_->expect(message, in_ + place_of(message));
    }
    transport_->prepare();
  }
  ~RoundTrip() {
    transport_.reset();
    if (out_ != nullptr) engine_.release(out_);
    if (in_ != nullptr) engine_.release(in_);
  }
  RoundTrip(const RoundTrip&) = delete;
  RoundTrip& operator=(const RoundTrip&) = delete;

  /// Microseconds of a message one way, large or next to nothing; 0 after a failure.
  double takes(bool large) {
    return median_of_steps([&] { return step(large); });
  }
  /// A large one, timed while both sides compute: `once` launches some computation on stream 0.
  double takes_beside(const std::function<void()>& once) {
    const double alone = takes(true);
    once();  // the first is cold
    const int times = launches_for(kCover * 2 * kTrips * alone, timed(kComputation, once));
    return median_of_steps([&] {
      return step(true, [&] {
        for (int time = 0; time < times; ++time) once();
      });
    });
  }
  /// A large one to the first process, timed from its receive on, which comes when it might be
  /// over.
  double takes_when_late() {
    const double alone = takes(true);
    const auto fill = [&] {
      engine_.launch(kMessages, Fill{.bytes = bytes_, .value = 0, .to = out_});
    };
    const int fills = launches_for(2 * alone, timed(kMessages, fill));
    return median_of_steps([&] { return late_step(first_ ? fills : 0, fill); });
  }
  [[nodiscard]] const std::optional<Error>& error() const {
    return transport_ && transport_->error() ? transport_->error() : engine_.error();
  }

 private:
  static constexpr StreamId kComputation = 0;
  static constexpr StreamId kMessages = 1;

  template <typename Step>
  double median_of_steps(Step step) {
    std::vector<double> times;
    for (std::uint32_t time = 0; time < kTimes && !error(); ++time) times.push_back(step());
    return times.empty() ? 0 : median(std::move(times));
  }
  double timed(StreamId stream, const std::function<void()>& launches) {
    const EventId begin = engine_.record(stream);
    launches();
    const EventId end = engine_.record(stream);
    engine_.synchronise();
    const double took = engine_.error() ? 0 : engine_.between(begin, end);
    engine_.forget_events();
    return took;
  }
  // The launches that take so long; both sides go on after a failure, since they step together.
  static int launches_for(double microseconds, double of_one) {
    const double launches = of_one > 0 ? microseconds / of_one : 0;
    return static_cast<int>(std::min(launches, kMostLaunches)) + 1;
  }
  std::size_t next_turn() { return 1 + turn_++ % (there_.size() - 1); }
  // Microseconds of one way. A step waits for the device as it begins; `beside` is launched then.
  double step(bool large, const std::function<void()>& beside = {}) {
    transport_->begin_step();
    if (error()) return 0;
    if (beside) beside();
    const double took = timed(kMessages, [&] {
      for (std::int64_t trip = 0; trip < kTrips; ++trip) there_and_back(large ? next_turn() : 0);
    });
    transport_->end_step();
    return took / (2 * kTrips);
  }
  double late_step(int fills, const std::function<void()>& fill) {
    transport_->begin_step();
    if (error()) return 0;
    there_and_back(0);  // both begin now
    for (int time = 0; time < fills; ++time) fill();
    const std::size_t turn = next_turn();
    const double took =
        timed(kMessages, [&] { first_ ? receive(back_[turn]) : send(back_[turn]); });
    transport_->end_step();
    return took;
  }
  // The message's place among those that are sent or received.
  [[nodiscard]] std::int64_t place_of(const Message& message) const {
    return message.number == 0 ? 0 : (message.number - 1) * bytes_;
  }
  void there_and_back(std::size_t which) {
    first_ ? send(there_[which]) : receive(there_[which]);
    first_ ? receive(back_[which]) : send(back_[which]);
  }
  void send(const Message& message) {
    transport_->send(kMessages, message, out_ + place_of(message));
    transport_->finish(kMessages, message, End::Send);
  }
  void receive(const Message& message) {
    transport_->receive(kMessages, message);
    transport_->finish(kMessages, message, End::Receive);
  }

  Engine& engine_;
  std::int64_t bytes_;
  bool first_;
  std::size_t turn_ = 0;  ///< of large messages: the same on both sides
  std::vector<Message> there_;
  std::vector<Message> back_;
  std::byte* out_ = nullptr;
  std::byte* in_ = nullptr;
  std::unique_ptr<Transport> transport_;
};

}  // namespace

Result<TransferCost, Error> measure_transfer_between(Engine& engine, Processes& processes,
                                                     const BetweenFactory& make,
                                                     std::int64_t bytes) {
  RoundTrip trip(engine, processes, make, bytes);
  const double latency = trip.takes(false);
  const double whole = trip.takes(true);
  if (trip.error()) return *trip.error();
  return cost_of_transfer(latency, whole, bytes);
}

std::optional<RunFailure> measure_beside_computation(const Measurable& of, Processes& processes,
                                                     const BetweenFactory& make,
                                                     TransferCost& cost) {
  of.engine.leave_room_for_exchanges();  // as a run does
  std::optional<Error> error;
  const auto failed = look_at_graphs(of, [&](const Inspection& at) {
    RoundTrip trip(at.engine, processes, make, *cost.bytes);
    const double alone = trip.takes(true);
    const double beside = trip.takes_beside([&] {
      for (const Stepper::Captured& captured : at.graphs) at.engine.replay(captured.graph, 0);
    });
    const double late = trip.takes_when_late();
    error = trip.error();
    if (error || alone <= 0) return;
    // Both ends computed, and each takes its part.
    cost.crowded = std::max(1.0, std::sqrt(beside / alone));
    const double ahead = cost.bandwidth ? std::max(0.0, alone - late) * *cost.bandwidth : 0;
    cost.ahead = std::min(static_cast<std::int64_t>(ahead), *cost.bytes);
  });
  if (error) {
    return RunFailure{
        .kind = RunFailure::Kind::Broken, .message = error->message, .help = error->help};
  }
  return failed;
}

}  // namespace capo::run

#include "run/measure.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

constexpr std::uint32_t kTimes = 9;
// The two sides do not begin a step at quite the same time, which several trips make small.
constexpr int kTrips = 8;
constexpr std::int64_t kNextToNothing = 16;

// Messages of some size that go from rank 0 to rank 1 and back.
class RoundTrip {
 public:
  RoundTrip(Engine& engine, Processes& processes, const BetweenFactory& make, std::int64_t bytes)
      : engine_(engine), first_(processes.rank() == 0) {
    engine_.have_streams(1);
    for (std::uint32_t number = 0; number < 2; ++number) {
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
    out_ = engine_.allocate(bytes, "a message to measure");
    in_ = engine_.allocate(bytes, "a message to measure");
    if (engine_.error()) return;
    engine_.launch(0, Fill{.bytes = bytes, .value = 0, .to = out_});
    transport_ = make(engine, apart);
    for (const Message& message : first_ ? back_ : there_) transport_->expect(message, in_);
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
    std::vector<double> times;
    for (std::uint32_t time = 0; time < kTimes && !error(); ++time) times.push_back(step(large));
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  [[nodiscard]] const std::optional<Error>& error() const {
    return transport_ && transport_->error() ? transport_->error() : engine_.error();
  }

 private:
  // Microseconds of one way.
  double step(bool large) {
    const std::size_t which = large ? 1 : 0;
    transport_->begin_step();
    if (error()) return 0;
    const EventId begin = engine_.record(0);
    for (int trip = 0; trip < kTrips; ++trip) {
      first_ ? send(there_[which]) : receive(there_[which]);
      first_ ? receive(back_[which]) : send(back_[which]);
    }
    const EventId end = engine_.record(0);
    engine_.synchronise();
    transport_->end_step();
    const double took = error() ? 0 : engine_.between(begin, end) / (2 * kTrips);
    engine_.forget_events();
    return took;
  }
  void send(const Message& message) {
    transport_->send(0, message, out_);
    transport_->finish(0, message, End::Send);
  }
  void receive(const Message& message) {
    transport_->receive(0, message);
    transport_->finish(0, message, End::Receive);
  }

  Engine& engine_;
  bool first_;
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

}  // namespace capo::run

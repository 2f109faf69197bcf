#include "run/measure.h"

#include "core/base/median.h"
#include "run/kernels/draw.h"

#include <algorithm>
#include <functional>
#include <numeric>
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

// A message each way has so many bytes, at a place of the memory that is sent from and of that
// which is received in.
struct Slot {
  std::int64_t bytes = 0;
  std::int64_t place = 0;
};

// Messages both ways between the first two processes, on a stream of their own, and the times of
// what is launched there. There are as many each way as slots, which lie in so many bytes of
// memory.
class Link {
 public:
  static constexpr StreamId kComputation = 0;
  static constexpr StreamId kMessages = 1;

  Link(Engine& engine, Processes& processes, const BetweenFactory& make, std::vector<Slot> slots,
       std::int64_t bytes)
      : engine_(engine), slots_(std::move(slots)), first_(processes.rank() == 0) {
    engine_.have_streams(kMessages + 1);
    Apart apart{.processes = processes, .division = {.ranks = 2}, .words = [](const Message&) {
                  return std::string("which is measured");
                }};
    for (std::uint32_t number = 0; number < slots_.size(); ++number) {
      const Slot& slot = slots_[number];
      for (const std::int32_t sender : {0, 1}) {
        const Message message{.channel = {.sender = sender, .receiver = 1 - sender},
                              .number = number,
                              .bytes = slot.bytes};
        apart.ends.push_back({.message = message,
                              .sender = static_cast<StreamId>(sender),
                              .receiver = static_cast<StreamId>(1 - sender)});
        (first_ == (sender == 0) ? sent_ : received_).push_back(message);
      }
    }
    out_ = engine_.allocate(bytes, "messages to measure");
    in_ = engine_.allocate(bytes, "messages to measure");
    if (engine_.error()) return;
    engine_.launch(kMessages, Fill{.bytes = bytes, .value = 0, .to = out_});
    transport_ = make(engine, apart);
    for (std::size_t which = 0; which < slots_.size(); ++which) {
      transport_->expect(received_[which], in(which));
    }
    transport_->prepare();
  }
  ~Link() {
    transport_.reset();
    if (out_ != nullptr) engine_.release(out_);
    if (in_ != nullptr) engine_.release(in_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] Engine& engine() const { return engine_; }
  [[nodiscard]] bool first() const { return first_; }
  [[nodiscard]] std::byte* out(std::size_t which) const { return out_ + slots_[which].place; }
  [[nodiscard]] std::byte* in(std::size_t which) const { return in_ + slots_[which].place; }
  [[nodiscard]] const std::optional<Error>& error() const {
    return transport_ && transport_->error() ? transport_->error() : engine_.error();
  }

  void send(std::size_t which) {
    transport_->send(kMessages, sent_[which], out(which));
    transport_->finish(kMessages, sent_[which], End::Send);
  }
  void receive(std::size_t which) {
    transport_->receive(kMessages, received_[which]);
    transport_->finish(kMessages, received_[which], End::Receive);
  }
  /// Messages from `begin` to before `end` go both ways at once.
  void both_ways(std::size_t begin, std::size_t end) {
    for (std::size_t which = begin; which < end; ++which) {
      transport_->send(kMessages, sent_[which], out(which));
      transport_->receive(kMessages, received_[which]);
    }
    for (std::size_t which = begin; which < end; ++which) {
      transport_->finish(kMessages, sent_[which], End::Send);
      transport_->finish(kMessages, received_[which], End::Receive);
    }
  }

  void launch(const Call& call) { engine_.launch(kMessages, call); }
  /// Microseconds of what is launched on a stream, which both begin and end idle.
  double timed(StreamId stream, const std::function<void()>& launches) {
    const EventId begin = engine_.record(stream);
    launches();
    const EventId end = engine_.record(stream);
    engine_.synchronise();
    const double took = engine_.error() ? 0 : engine_.between(begin, end);
    engine_.forget_events();
    return took;
  }
  /// The median of some steps, of what `step` gives in each; 0 after a failure. A step waits for
  /// the device as it begins.
  double median_of_steps(const std::function<double()>& step) {
    std::vector<double> times;
    for (std::uint32_t time = 0; time < kTimes && !error(); ++time) {
      transport_->begin_step();
      if (error()) break;
      times.push_back(step());
      transport_->end_step();
    }
    return times.empty() || error() ? 0 : median(std::move(times));
  }

 private:
  Engine& engine_;
  std::vector<Slot> slots_;
  bool first_;
  std::vector<Message> sent_;      // by slot
  std::vector<Message> received_;  // by slot
  std::byte* out_ = nullptr;
  std::byte* in_ = nullptr;
  std::unique_ptr<Transport> transport_;
};

// How many turns of so many bytes no cache holds.
std::int64_t turns_of(std::int64_t bytes) {
  return std::clamp<std::int64_t>(kMoreThanCaches / std::max<std::int64_t>(bytes, 1) + 1, 2,
                                  kMostTurns);
}

// The launches that take so long; both sides go on after a failure, since they step together.
int launches_for(double microseconds, double of_one) {
  const double launches = of_one > 0 ? microseconds / of_one : 0;
  return static_cast<int>(std::min(launches, kMostLaunches)) + 1;
}

// Messages of some size that go from rank 0 to rank 1 and back. Large ones take turns.
class RoundTrip {
 public:
  RoundTrip(Engine& engine, Processes& processes, const BetweenFactory& make, std::int64_t bytes)
      : bytes_(bytes),
        turns_(turns_of(bytes)),
        link_(engine, processes, make, slots(), turns_ * bytes) {}

  /// Microseconds of a message one way, large or next to nothing; 0 after a failure.
  double takes(bool large) {
    return link_.median_of_steps([&] { return trips(large); });
  }
  /// A large one, timed while both sides compute: `once` launches some computation on stream 0.
  double takes_beside(const std::function<void()>& once) {
    const double alone = takes(true);
    once();  // the first is cold
    const int times =
        launches_for(kCover * 2 * kTrips * alone, link_.timed(Link::kComputation, once));
    return link_.median_of_steps([&] {
      for (int time = 0; time < times; ++time) once();
      return trips(true);
    });
  }
  /// The time of computation while large ones go both ways in turn, relative to that without any.
  double slows(const std::function<void()>& once) {
    const double trip = 2 * takes(true);
    once();
    const int times = launches_for(kTrips * trip, link_.timed(Link::kComputation, once));
    const auto computes = [&](std::int64_t beside) {
      return link_.median_of_steps([&] {
        for (std::int64_t at = 0; at < beside; ++at) there_and_back(next_turn());
        return link_.timed(Link::kComputation, [&] {
          for (int time = 0; time < times; ++time) once();
        });
      });
    };
    const double alone = computes(0);
    return alone > 0 ? computes(static_cast<std::int64_t>(kCover) * kTrips) / alone : 0;
  }
  /// A large one to the first process, timed from its receive on, which comes when it might be
  /// over.
  double takes_when_late() {
    const double alone = takes(true);
    const auto fill = [&] { link_.launch(Fill{.bytes = bytes_, .value = 0, .to = link_.out(0)}); };
    const int fills = launches_for(2 * alone, link_.timed(Link::kMessages, fill));
    return link_.median_of_steps([&] {
      there_and_back(0);  // both begin now
      for (int time = 0; link_.first() && time < fills; ++time) fill();
      const std::size_t turn = next_turn();
      return link_.timed(Link::kMessages,
                         [&] { link_.first() ? link_.receive(turn) : link_.send(turn); });
    });
  }
  [[nodiscard]] const std::optional<Error>& error() const { return link_.error(); }

 private:
  // The first message is next to nothing.
  [[nodiscard]] std::vector<Slot> slots() const {
    std::vector<Slot> slots{{.bytes = std::min(kNextToNothing, bytes_)}};
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      slots.push_back({.bytes = bytes_, .place = turn * bytes_});
    }
    return slots;
  }
  std::size_t next_turn() { return 1 + turn_++ % static_cast<std::size_t>(turns_); }
  double trips(bool large) {
    const double took = link_.timed(Link::kMessages, [&] {
      for (std::int64_t trip = 0; trip < kTrips; ++trip) there_and_back(large ? next_turn() : 0);
    });
    return took / (2 * kTrips);
  }
  void there_and_back(std::size_t which) {
    link_.first() ? link_.send(which) : link_.receive(which);
    link_.first() ? link_.receive(which) : link_.send(which);
  }

  std::int64_t bytes_;
  std::int64_t turns_;
  std::size_t turn_ = 0;  ///< of large messages: the same on both sides
  Link link_;
};

// Rows that are permuted and exchanged. The rank keeps its block of them, and those of all others
// go to the other process.
class Exchanging {
 public:
  Exchanging(Engine& engine, Processes& processes, const BetweenFactory& make,
             const ExchangedRows& rows)
      : rows_(rows),
        kept_(rows.count / rows.members),
        turns_(turns_of(rows.count * rows.row_bytes)),
        link_(engine, processes, make, slots(), turns_ * rows.count * rows.row_bytes) {
    index_ = engine.allocate(rows.count * kIndexBytes, "a permutation to measure");
    if (engine.error()) return;
    const std::vector<std::int64_t> index = permutation();
    engine.write(index_, index.data(), rows.count * kIndexBytes);
  }
  ~Exchanging() {
    if (index_ != nullptr) link_.engine().release(index_);
  }
  Exchanging(const Exchanging&) = delete;
  Exchanging& operator=(const Exchanging&) = delete;

  /// Microseconds; 0 after a failure.
  double dispatch() {
    return each([&](std::size_t turn) {
      permute(link_.in((turn + 1) % static_cast<std::size_t>(turns_)), link_.out(turn));
      exchange(turn);
    });
  }
  double combine() {
    return each([&](std::size_t turn) {
      exchange(turn);
      permute(link_.in(turn), link_.out(turn));
    });
  }
  [[nodiscard]] const std::optional<Error>& error() const { return link_.error(); }

 private:
  static constexpr std::int64_t kIndexBytes = sizeof(std::int64_t);

  [[nodiscard]] std::int64_t sent_bytes() const { return (rows_.count - kept_) * rows_.row_bytes; }
  [[nodiscard]] std::vector<Slot> slots() const {
    std::vector<Slot> slots;
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      slots.push_back({.bytes = sent_bytes(), .place = turn * rows_.count * rows_.row_bytes});
    }
    return slots;
  }
  // It is drawn as those of a run are.
  [[nodiscard]] std::vector<std::int64_t> permutation() const {
    std::vector<std::int64_t> index(static_cast<std::size_t>(rows_.count));
    std::iota(index.begin(), index.end(), std::int64_t{0});
    const Draw draw{.seed = 1};
    for (std::size_t last = index.size(); last > 1; --last) {
      std::swap(index[last - 1], index[draw.below(last, last)]);
    }
    return index;
  }
  double each(const std::function<void(std::size_t)>& once) {
    return link_.median_of_steps([&] {
      const double took = link_.timed(Link::kMessages, [&] {
        for (std::int64_t trip = 0; trip < kTrips; ++trip) {
          once(turn_++ % static_cast<std::size_t>(turns_));
        }
      });
      return took / kTrips;
    });
  }
  void permute(const std::byte* from, std::byte* to) {
    link_.launch(Gather{.rows = rows_.count,
                        .row_bytes = rows_.row_bytes,
                        .index = reinterpret_cast<const std::int64_t*>(index_),
                        .from = from,
                        .to = to});
  }
  void exchange(std::size_t turn) {
    if (kept_ > 0) {
      link_.launch(Copy{.bytes = kept_ * rows_.row_bytes,
                        .from = link_.out(turn) + sent_bytes(),
                        .to = link_.in(turn) + sent_bytes()});
    }
    link_.both_ways(turn, turn + 1);
  }

  ExchangedRows rows_;
  std::int64_t kept_;  // rows
  std::int64_t turns_;
  std::size_t turn_ = 0;
  Link link_;
  std::byte* index_ = nullptr;
};

// The gradients of a module, which two processes sum as two replicas do.
double reduces(Link& link, const std::vector<SummedGradient>& gradients) {
  return link.median_of_steps([&] {
    const double took = link.timed(Link::kMessages, [&] {
      for (std::int64_t trip = 0; trip < kTrips; ++trip) {
        link.both_ways(0, gradients.size());
        for (std::size_t which = 0; which < gradients.size(); ++which) {
          const SummedGradient& gradient = gradients[which];
          link.launch(Add{.to_type = gradient.type,
                          .from_type = gradient.type,
                          .count = gradient.elements,
                          .from = link.in(which),
                          .to = link.out(which)});
          link.launch(
              Copy{.bytes = gradient.bytes(), .from = link.out(which), .to = link.in(which)});
        }
      }
    });
    return took / kTrips;
  });
}

RunFailure broken(const Error& error) {
  return {.kind = RunFailure::Kind::Broken, .message = error.message, .help = error.help};
}

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
    const auto compute = [&] {
      for (const Stepper::Captured& captured : at.graphs) at.engine.replay(captured.graph, 0);
    };
    const double beside = trip.takes_beside(compute);
    const double slows = trip.slows(compute);
    const double late = trip.takes_when_late();
    error = trip.error();
    if (error || alone <= 0) return;
    // Both processes compute all the time, and each message has one of them as its sender.
    cost.crowded = std::max(1.0, beside / alone);
    cost.slowdown = std::max(1.0, slows);
    const double ahead = cost.bandwidth ? std::max(0.0, alone - late) * *cost.bandwidth : 0;
    cost.ahead = std::min(static_cast<std::int64_t>(ahead), *cost.bytes);
  });
  if (error) return broken(*error);
  return failed;
}

Result<ExchangeCost, RunFailure> measure_exchanges_between(Engine& engine, Processes& processes,
                                                           const BetweenFactory& make,
                                                           const ExchangedRows& rows) {
  Exchanging exchanging(engine, processes, make, rows);
  const double dispatch = exchanging.dispatch();
  const double combine = exchanging.combine();
  if (exchanging.error()) return broken(*exchanging.error());
  return ExchangeCost{.dispatch = dispatch, .combine = combine};
}

Result<double, RunFailure> measure_reduction_between(const Measurable& of, Processes& processes,
                                                     const BetweenFactory& make,
                                                     std::int32_t members) {
  const auto gradients = gradients_to_reduce(of.module, of.options);
  if (!gradients) return gradients.error();
  std::vector<Slot> slots;
  std::int64_t place = 0;
  for (const SummedGradient& gradient : *gradients) {
    slots.push_back({.bytes = gradient.bytes(), .place = place});
    place += aligned(gradient.bytes());
  }
  Link link(of.engine, processes, make, std::move(slots), place);
  const double of_two = reduces(link, *gradients);
  if (link.error()) return broken(*link.error());
  return (members - 1) * of_two;
}

}  // namespace capo::run

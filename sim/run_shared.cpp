#include "core/base/assert.h"
#include "core/base/index.h"
#include "sim/simulate.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace capo {

namespace {

class SharedRun {
 public:
  SharedRun(const Subject& subject, const Durations& durations, const Costs& costs)
      : graph_(subject.graph),
        durations_(durations),
        costs_(costs),
        transfers_occupy_(subject.links != Links::Ideal),
        shares_(!costs.devices.empty()),
        slow_(1 / costs.slowdown),
        crowded_(costs.crowded),
        goes_ahead_(costs.ahead > 0 && subject.links == Links::Rendezvous),
        times_(subject.graph.task_of.size()),
        waits_(subject.graph.edges) {
    const std::size_t vertices = graph_.task_of.size();
    notes_.reserve(vertices);
    for (Vertex vertex = 0; vertex < vertices; ++vertex) {
      notes_.push_back(noted(vertex));
      times_.at[vertex].done = durations.of(vertex);  // until it has run
    }
    if (goes_ahead_) {
      sent_at_.resize(vertices);
      alone_.resize(vertices);
    }
    std::int32_t devices = static_cast<std::int32_t>(subject.schedule.ranks.size());
    for (const std::int32_t device : costs.devices) devices = std::max(devices, device + 1);
    devices_.resize(as_index(devices));
    if (crowded_ != 1) find_meetings();
  }

  TaskTimes run() {
    for (Vertex from = 0; goes_ahead_ && from < times_.at.size(); ++from) {
      graph_.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
        if (kind == EdgeKind::Message || kind == EdgeKind::Rendezvous)
          alone_[to] = !notes_[from].is_member && !notes_[to].is_member;
      });
    }
    for (Vertex vertex = 0; vertex < times_.at.size(); ++vertex) {
      if (waits_.none(vertex)) push(0, Event::Kind::Ready, vertex);
    }
    while (!events_.empty()) {
      const Event event = events_.pop();
      now_ = events_.now();
      if (event.kind() == Event::Kind::Ready) {
        start(event.vertex());
      } else {
        end(event);
      }
    }
    CAPO_ASSERT(ran_ == times_.at.size(), "only what finishes is simulated");
    return std::move(times_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  // An event of a moment as one number, by which those of one moment follow each other: at one time
  // what ends makes room first, and then the lowest vertex.
  class Event {
   public:
    enum class Kind : std::uint8_t { Over, Ready };

    // `version` is of an end of Running; an older one was put off or moved up.
    Event(Kind kind, Vertex vertex, std::uint32_t version)
        : packed_((kind == Kind::Ready ? kReady : 0) | std::uint64_t{vertex} << kVersionBits |
                  (version & kVersions)) {}

    [[nodiscard]] Kind kind() const { return packed_ >= kReady ? Kind::Ready : Kind::Over; }
    [[nodiscard]] Vertex vertex() const { return static_cast<Vertex>(packed_ >> kVersionBits); }
    [[nodiscard]] bool is_of(std::uint32_t version) const {
      return (packed_ & kVersions) == (version & kVersions);
    }
    friend auto operator<=>(const Event&, const Event&) = default;

   private:
    static constexpr int kVersionBits = 31;
    static constexpr std::uint64_t kVersions = (std::uint64_t{1} << kVersionBits) - 1;
    static constexpr std::uint64_t kReady = std::uint64_t{1} << 63U;

    std::uint64_t packed_;
  };

  // The events to come. Most are of the moment at hand, and these are few, so they are kept apart
  // and have no time: comparing is what a simulation by events spends its time on.
  class Events {
   public:
    [[nodiscard]] bool empty() const { return at_once_.empty() && later_.empty(); }
    [[nodiscard]] double now() const { return now_; }
    void push(double time, Event event) {
      if (time == now_) {
        at_once_.push(event);
      } else {
        later_.push({time, event});
      }
    }
    Event pop() {
      if (at_once_.empty()) now_ = later_.top().time;
      for (; !later_.empty() && later_.top().time == now_; later_.pop())
        at_once_.push(later_.top().event);
      const Event next = at_once_.top();
      at_once_.pop();
      return next;
    }

   private:
    struct Later {
      double time;
      Event event;

      bool operator>(const Later& other) const {
        return time != other.time ? time > other.time : event > other.event;
      }
    };
    template <typename Of>
    using FirstToCome = std::priority_queue<Of, std::vector<Of>, std::greater<>>;

    double now_ = 0;
    FirstToCome<Event> at_once_;
    FirstToCome<Later> later_;
  };

  // A computation under way, or a message. Few are at a time, so that all they need stays at hand,
  // as a list by vertex would not.
  struct Running {
    Vertex vertex;
    double left;        // at full speed
    double counted_at;  // when `left` was true
    double speed = 1;   // of a message since then
    std::uint32_t version = 0;
  };

  struct Device {
    std::vector<Running> running;
    std::int32_t communicating = 0;
    bool crowds = false;                  // it computes, as the messages under way have counted it
    std::vector<std::uint32_t> meetings;  // under way, of which a member is here
  };

  // The collectives of several ranks that meet at one point.
  struct Meeting {
    std::vector<std::size_t> devices;  // of the members
    std::int32_t under_way = 0;        // ends
    std::int32_t crowding = 0;         // devices that compute, while any end is under way
  };

  // Asked for at every event, and so kept apart from the tasks, which are made from several lists.
  struct Note {
    RankId rank;
    Kind kind;
    bool communicates;  // between a transfer's or collective's end and its members' starts it moves
    bool is_member;     // of a fused group
  };

  [[nodiscard]] Task task_of(Vertex vertex) const { return graph_.tasks[graph_.task_of[vertex]]; }
  [[nodiscard]] Note noted(Vertex vertex) const {
    const Task task = task_of(vertex);
    const bool is_end = vertex == task.start + (task.split ? 1 : 0);
    const bool moves = !is_compute(task.kind) && (!is_transfer(task.kind) || transfers_occupy_);
    return {.rank = task.rank,
            .kind = task.kind,
            .communicates = is_end && moves,
            .is_member = task.member};
  }
  [[nodiscard]] std::size_t device_number(RankId rank) const {
    return shares_ ? as_index(costs_.devices[rank.index()]) : rank.index();
  }
  Device& device_of(Vertex vertex) { return devices_[device_number(notes_[vertex].rank)]; }
  [[nodiscard]] bool computes(Vertex vertex) const { return is_compute(notes_[vertex].kind); }
  [[nodiscard]] bool communicates(Vertex vertex) const { return notes_[vertex].communicates; }

  void push(double time, Event::Kind kind, Vertex vertex, std::uint32_t version = 0) {
    events_.push(time, Event(kind, vertex, version));
  }

  void start(Vertex vertex) {
    Device& device = device_of(vertex);
    times_.at[vertex].begin = now_;
    const double duration = times_.at[vertex].done;
    if (!computes(vertex)) {
      if (communicates(vertex)) communicate(device, +1);
      const double left = duration - went_ahead(vertex);
      if (!is_crowded(vertex)) return push(now_ + left, Event::Kind::Over, vertex);
      if (is_collective(vertex)) meet(vertex, +1);
      moving_.push_back(
          {.vertex = vertex, .left = left, .counted_at = now_, .speed = speed_of_message(vertex)});
      return push_end(moving_.back());
    }
    const auto begin = [&] {
      device.running.push_back({.vertex = vertex, .left = duration, .counted_at = now_});
    };
    if (shares_) {
      change(device, begin);
    } else {
      begin();
      push_end(device.running.back(), device);
    }
    crowd(device);
  }

  // The part of a message's time that went by while its receive was not there yet. Members of a
  // fused group move together, and nothing of them goes ahead.
  [[nodiscard]] double went_ahead(Vertex vertex) const {
    if (!goes_ahead_ || !communicates(vertex) || !alone_[vertex]) return 0;
    return std::min(now_ - sent_at_[vertex], durations_.ahead(task_of(vertex)));
  }

  // Finds the points at which several ranks meet, and which of these each end is behind.
  void find_meetings() {
    meeting_of_.assign(graph_.task_of.size(), kNone);
    for (Vertex point = 0; point < graph_.task_of.size(); ++point) {
      if (!graph_.is_meeting(point)) continue;
      std::vector<Vertex> ends;
      graph_.edges.for_each_out(point, [&](Vertex end, EdgeKind) { ends.push_back(end); });
      if (ends.size() < 2) continue;
      Meeting meeting;
      for (const Vertex end : ends) {
        meeting_of_[end] = static_cast<std::uint32_t>(meetings_.size());
        meeting.devices.push_back(device_number(notes_[end].rank));
      }
      std::ranges::sort(meeting.devices);
      const auto last = std::unique(meeting.devices.begin(), meeting.devices.end());
      meeting.devices.erase(last, meeting.devices.end());
      meetings_.push_back(std::move(meeting));
    }
  }

  // A message, or a part of a collective's, whose ends may compute meanwhile.
  [[nodiscard]] bool is_crowded(Vertex vertex) const {
    if (crowded_ == 1 || !communicates(vertex)) return false;
    return is_transfer(notes_[vertex].kind) || meeting_of_[vertex] != kNone;
  }
  [[nodiscard]] bool is_collective(Vertex vertex) const {
    return !is_transfer(notes_[vertex].kind);
  }

  // One more or one less end of a collective that is under way.
  void meet(Vertex end, std::int32_t by) {
    const std::uint32_t number = meeting_of_[end];
    Meeting& meeting = meetings_[number];
    if (meeting.under_way == 0) {
      meeting.crowding = 0;
      for (const std::size_t at : meeting.devices) {
        devices_[at].meetings.push_back(number);
        meeting.crowding += devices_[at].crowds ? 1 : 0;
      }
    }
    meeting.under_way += by;
    if (meeting.under_way > 0) return;
    for (const std::size_t at : meeting.devices) std::erase(devices_[at].meetings, number);
  }

  // A message is moved by the device that sends it, and in a collective all send.
  [[nodiscard]] double speed_of_message(Vertex vertex) const {
    if (is_collective(vertex)) {
      return meetings_[meeting_of_[vertex]].crowding > 0 ? 1 / crowded_ : 1;
    }
    const Note& note = notes_[vertex];
    const RankId sender = is_send(note.kind) ? note.rank : durations_.peer(task_of(vertex));
    return crowds(sender) ? 1 / crowded_ : 1;
  }
  [[nodiscard]] bool crowds(RankId rank) const { return devices_[device_number(rank)].crowds; }

  void push_end(const Running& message) {
    push(now_ + message.left / message.speed, Event::Kind::Over, message.vertex, message.version);
  }

  // Messages go on at the speed that they have once the device has begun or ceased to compute.
  void crowd(Device& device) {
    if (crowded_ == 1 || device.crowds != device.running.empty()) return;
    device.crowds = !device.running.empty();
    for (const std::uint32_t number : device.meetings) {
      meetings_[number].crowding += device.crowds ? 1 : -1;
    }
    for (Running& one : moving_) {
      const double speed = speed_of_message(one.vertex);
      if (speed == one.speed) continue;
      one.left = std::max(one.left - (now_ - one.counted_at) * one.speed, 0.0);
      one.counted_at = now_;
      one.speed = speed;
      ++one.version;
      push_end(one);
    }
  }

  void push_end(const Running& one, const Device& device) {
    const double end = now_ + one.left / speed(one.vertex, device);
    push(end, Event::Kind::Over, one.vertex, one.version);
  }

  [[nodiscard]] double speed(Vertex vertex, const Device& device) const {
    const double alone = device.communicating > 0 ? slow_ : 1;
    if (!shares_ || device.running.size() == 1) return alone;
    const double others = static_cast<double>(device.running.size()) - 1;
    const double by_each = 2 * durations_.beside(graph_.task_of[vertex]) - 1;
    return alone / (1 + others * std::max(by_each, 0.0));
  }

  // Whether such an edge of a send's start leads to an end of its message.
  static bool from_start_to_end(EdgeKind kind) {
    return kind == EdgeKind::Span || kind == EdgeKind::Message;
  }

  // One more or one less that communicates.
  void communicate(Device& device, std::int32_t by) {
    const auto count = [&] { device.communicating += by; };
    const bool first_or_last = device.communicating == 0 || device.communicating + by == 0;
    costs_.slowdown != 1 && first_or_last ? change(device, count) : count();
  }

  // Computations go on at the speed that they have once something else has begun or ended.
  template <typename Modify>
  void change(Device& device, Modify modify) {
    for (Running& one : device.running) {
      one.left = std::max(one.left - (now_ - one.counted_at) * speed(one.vertex, device), 0.0);
      one.counted_at = now_;
    }
    modify();
    for (Running& one : device.running) {
      ++one.version;
      push_end(one, device);
    }
  }

  void end(Event event) {
    if (!computes(event.vertex())) return arrive(event);
    Device& device = device_of(event.vertex());
    const auto ended = std::ranges::find(device.running, event.vertex(), &Running::vertex);
    if (ended == device.running.end() || !event.is_of(ended->version)) return;
    over(event.vertex());
    const auto erase = [&] { device.running.erase(ended); };
    shares_ ? change(device, erase) : erase();
    crowd(device);
  }

  void arrive(Event event) {
    if (!is_crowded(event.vertex())) return over(event.vertex());
    const auto ended = std::ranges::find(moving_, event.vertex(), &Running::vertex);
    if (ended == moving_.end() || !event.is_of(ended->version)) return;
    moving_.erase(ended);
    if (is_collective(event.vertex())) meet(event.vertex(), -1);
    over(event.vertex());
  }

  void over(Vertex vertex) {
    ++ran_;
    times_.at[vertex].done = now_;
    times_.makespan = std::max(times_.makespan, now_);
    Device& device = device_of(vertex);
    if (communicates(vertex)) communicate(device, -1);
    graph_.edges.for_each_out(vertex, [&](Vertex to, EdgeKind kind) {
      if (goes_ahead_ && is_send(notes_[vertex].kind) && from_start_to_end(kind)) {
        sent_at_[to] = now_;
      }
      times_.bind(to, vertex, now_ + durations_.lag(kind, vertex, to));
      if (waits_.take_last(to)) push(times_.at[to].begin, Event::Kind::Ready, to);
    });
  }

  const TaskGraph& graph_;
  const Durations& durations_;
  const Costs& costs_;
  bool transfers_occupy_;
  bool shares_;      // ranks may have a device together
  double slow_;      // the speed beside communication
  double crowded_;   // by which a message takes longer while its sender computes
  bool goes_ahead_;  // the first bytes of a message do not wait for its receive
  double now_ = 0;
  std::size_t ran_ = 0;
  std::vector<Note> notes_;  // by vertex
  TaskTimes times_;
  WaitCounts waits_;
  std::vector<Device> devices_;
  // Both are told for each end of a message, if some of it goes ahead: when its send began, and
  // whether neither side is a member of a fused group.
  std::vector<double> sent_at_;
  std::vector<bool> alone_;
  std::vector<Running> moving_;            // messages, if computation makes them slower
  std::vector<Meeting> meetings_;          // then also these
  std::vector<std::uint32_t> meeting_of_;  // by end of a collective; kNone: it is alone
  Events events_;
};

}  // namespace

TaskTimes run_shared(const Subject& subject, const Durations& durations, const Costs& costs) {
  return SharedRun(subject, durations, costs).run();
}

}  // namespace capo

#include "core/base/assert.h"
#include "core/base/index.h"
#include "sim/simulate.h"

#include <algorithm>
#include <queue>

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
        slow_(1 / costs.slowdown) {
    const std::size_t vertices = graph_.task_of.size();
    times_.at.resize(vertices);
    work_.resize(vertices);
    std::int32_t devices = static_cast<std::int32_t>(subject.schedule.ranks.size());
    for (const std::int32_t device : costs.devices) devices = std::max(devices, device + 1);
    devices_.resize(as_index(devices));
  }

  TaskTimes run() {
    for (Vertex from = 0; from < times_.at.size(); ++from) {
      for_each_edge(from, [&](Vertex to, EdgeKind) { ++times_.at[to].waits_for; });
    }
    for (Vertex vertex = 0; vertex < times_.at.size(); ++vertex) {
      if (times_.at[vertex].waits_for == 0) push(0, Event::Kind::Ready, vertex);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.kind == Event::Kind::Ready) {
        start(event.vertex);
      } else if (event.version == work_[event.vertex].version) {
        over(event.vertex);
      }
    }
    CAPO_ASSERT(ran_ == times_.at.size(), "only what finishes is simulated");
    return std::move(times_);
  }

 private:
  struct Event {
    enum class Kind : std::uint8_t { Over, Ready };  // at one time what ends makes room first

    double time;
    Kind kind;
    Vertex vertex;
    std::uint32_t version;  // of the vertex's end; an older one was put off or moved up

    bool operator<(const Event& other) const {  // the last of these is the next to come
      if (time != other.time) return time > other.time;
      if (kind != other.kind) return kind > other.kind;
      return vertex > other.vertex;
    }
  };

  // What is left of a computation. All of it lies side by side, since half of the time goes into
  // fetching it.
  struct Work {
    double left = 0;        // at full speed
    double counted_at = 0;  // when `left` was true
    std::uint32_t version = 0;
  };

  struct Device {
    std::vector<Vertex> running;  // computations
    std::int32_t communicating = 0;
  };

  template <typename Visit>
  void for_each_edge(Vertex from, Visit visit) const {
    const auto [first, last] = boost::out_edges(from, graph_.edges);
    for (auto edge = first; edge != last; ++edge) {
      visit(boost::target(*edge, graph_.edges), graph_.edges[*edge]);
    }
  }

  [[nodiscard]] const Task& task_of(Vertex vertex) const {
    return graph_.tasks[graph_.task_of[vertex]];
  }
  Device& device_of(Vertex vertex) {
    const auto rank = task_of(vertex).rank.index();
    return devices_[shares_ ? as_index(costs_.devices[rank]) : rank];
  }
  [[nodiscard]] bool computes(Vertex vertex) const { return is_compute(task_of(vertex).kind); }
  // A transfer's or collective's end, between which and its members' starts it moves bytes.
  [[nodiscard]] bool communicates(Vertex vertex) const {
    const Task& task = task_of(vertex);
    if (is_compute(task.kind) || graph_.is_meeting(vertex)) return false;
    if (is_transfer(task.kind) && !transfers_occupy_) return false;
    return vertex == task.start + (task.split ? 1 : 0);
  }

  void push(double time, Event::Kind kind, Vertex vertex) {
    events_.push({.time = time, .kind = kind, .vertex = vertex, .version = work_[vertex].version});
  }

  void start(Vertex vertex) {
    Device& device = device_of(vertex);
    times_.at[vertex].begin = now_;
    const double duration = durations_.of(vertex);
    if (!computes(vertex)) {
      if (communicates(vertex)) communicate(device, +1);
      push(now_ + duration, Event::Kind::Over, vertex);
      return;
    }
    work_[vertex].left = duration;
    work_[vertex].counted_at = now_;
    if (shares_) {
      change(device, [&] { device.running.push_back(vertex); });
    } else {
      device.running.push_back(vertex);
      push_end(vertex, device);
    }
  }

  void push_end(Vertex vertex, const Device& device) {
    push(now_ + work_[vertex].left / speed(vertex, device), Event::Kind::Over, vertex);
  }

  [[nodiscard]] double speed(Vertex vertex, const Device& device) const {
    const double alone = device.communicating > 0 ? slow_ : 1;
    if (!shares_ || device.running.size() == 1) return alone;
    const double others = static_cast<double>(device.running.size()) - 1;
    const double by_each = 2 * durations_.beside(graph_.task_of[vertex]) - 1;
    return alone / (1 + others * std::max(by_each, 0.0));
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
    for (const Vertex vertex : device.running) {
      Work& work = work_[vertex];
      work.left = std::max(work.left - (now_ - work.counted_at) * speed(vertex, device), 0.0);
      work.counted_at = now_;
    }
    modify();
    for (const Vertex vertex : device.running) {
      ++work_[vertex].version;
      push_end(vertex, device);
    }
  }

  void over(Vertex vertex) {
    ++ran_;
    times_.at[vertex].done = now_;
    times_.makespan = std::max(times_.makespan, now_);
    Device& device = device_of(vertex);
    if (communicates(vertex)) communicate(device, -1);
    for_each_edge(vertex, [&](Vertex to, EdgeKind kind) {
      const double there = now_ + durations_.lag(kind, vertex, to);
      TaskTimes::At& next = times_.at[to];
      if (there > next.begin || (there == next.begin && vertex < next.bound_by))
        next.bound_by = vertex;
      next.begin = std::max(next.begin, there);
      if (--next.waits_for == 0) push(next.begin, Event::Kind::Ready, to);
    });
    if (!computes(vertex)) return;
    ++work_[vertex].version;
    const auto ended = std::find(device.running.begin(), device.running.end(), vertex);
    if (shares_) {
      work_[vertex].left = 0;
      change(device, [&] { device.running.erase(ended); });
    } else {
      device.running.erase(ended);
    }
  }

  const TaskGraph& graph_;
  const Durations& durations_;
  const Costs& costs_;
  bool transfers_occupy_;
  bool shares_;  // ranks may have a device together
  double slow_;  // the speed beside communication
  double now_ = 0;
  std::size_t ran_ = 0;
  TaskTimes times_;
  std::vector<Work> work_;  // by vertex
  std::vector<Device> devices_;
  std::priority_queue<Event> events_;
};

}  // namespace

TaskTimes run_shared(const Subject& subject, const Durations& durations, const Costs& costs) {
  return SharedRun(subject, durations, costs).run();
}

}  // namespace capo

#include "core/plan/course.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace capo {

BufferId fed_by(const BufferTable& table, const StageMap& map, std::int32_t rank,
                const Work& work) {
  if (!map.wired() || work.kind == Kind::BackwardWeight) return kNoBuffer;
  const bool forward = work.kind == Kind::Forward;
  if (work.layer != kAllLayers) {
    // Between the layers of a chunk lies work that is not graphed.
    const std::int32_t first = forward ? 0 : table.layers(rank, work.chunk) - 1;
    if (work.layer != first) return kNoBuffer;
  }
  const std::int32_t stage = map.stage_of(rank, work.chunk);
  const std::int32_t maker = map.neighbour(work.kind, stage);
  if (maker == kNoStage || !map.same_rank(maker, stage)) return kNoBuffer;
  const std::int32_t chunk = map.home(maker).chunk;
  if (table.layers(rank, chunk) == 0) return kNoBuffer;
  const std::int32_t layer = forward ? table.layers(rank, chunk) - 1 : 0;
  return table.id(rank, chunk, layer, work.microbatch,
                  forward ? BufferKind::Output : BufferKind::GradInput);
}

namespace {

// Compilers make vectors of a loop of a known length. Positions have a sign, since processors
// without AVX compare vectors of such numbers alone, and those of 16 bits in one step.
constexpr std::size_t kBlock = 8;

// `length` rounded up to whole blocks.
constexpr std::size_t whole_blocks(std::size_t length) {
  return (length + kBlock - 1) / kBlock * kBlock;
}

// Clocks are arrays of positions, joined by keeping the later of each two. Precondition of both:
// `length` is one of whole blocks.
template <typename Position>
void keep_later(const Position* __restrict source, Position* __restrict target,
                std::size_t length) {
  for (std::size_t block = 0; block < length; block += kBlock) {
    for (std::size_t i = block; i < block + kBlock; ++i) target[i] = std::max(target[i], source[i]);
  }
}
template <typename Position>
void keep_later_in_both(Position* __restrict a, Position* __restrict b, std::size_t length) {
  for (std::size_t block = 0; block < length; block += kBlock) {
    for (std::size_t i = block; i < block + kBlock; ++i) a[i] = b[i] = std::max(a[i], b[i]);
  }
}

// Clocks of vertices that wait; a vertex without a clock has not waited yet.
class Clocks {
 public:
  explicit Clocks(std::size_t vertices, std::size_t streams)
      : streams_(whole_blocks(streams)), slot_(vertices, kNone) {}

  // Null if the vertex waited for nothing.
  std::int32_t* of(Vertex vertex) { return slot_[vertex] == kNone ? nullptr : at(slot_[vertex]); }
  std::int32_t* make(Vertex vertex) {
    if (slot_[vertex] == kNone) {
      slot_[vertex] = take();
      std::fill_n(at(slot_[vertex]), streams_, 0);
    }
    return at(slot_[vertex]);
  }
  // Whether the vertex is known to come behind the end of a task, and so behind all that was over
  // by then.
  [[nodiscard]] bool hold(Vertex vertex, Point task) {
    const std::int32_t* over = of(vertex);
    return over != nullptr && over[task.stream] >= static_cast<std::int32_t>(task.position);
  }
  // Everything that is over before `from` is over before `to`.
  void join(Vertex from, Vertex to, bool last) {
    if (slot_[to] == kNone && last) {
      slot_[to] = std::exchange(slot_[from], kNone);
      return;
    }
    const bool fresh = slot_[to] == kNone;
    if (fresh) slot_[to] = take();
    const std::int32_t* source = at(slot_[from]);
    std::int32_t* target = at(slot_[to]);
    if (fresh) {
      std::copy_n(source, streams_, target);
    } else {
      keep_later(source, target, streams_);
    }
  }
  void release(Vertex vertex) {
    if (slot_[vertex] != kNone) free_.push_back(std::exchange(slot_[vertex], kNone));
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::int32_t* at(std::uint32_t slot) { return &clocks_[slot * streams_]; }
  std::uint32_t take() {
    if (free_.empty()) {
      clocks_.resize(clocks_.size() + streams_);
      return static_cast<std::uint32_t>(clocks_.size() / streams_ - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  std::size_t streams_;               // rounded up to whole blocks
  std::vector<std::uint32_t> slot_;   // by vertex
  std::vector<std::int32_t> clocks_;  // streams_ numbers each
  std::vector<std::uint32_t> free_;
};

class GraphCourse {
 public:
  GraphCourse(const BufferTable& table, const StageMap& map, const TaskGraph& graph,
              const Lowered& lowered, const std::vector<std::vector<Delay>>& delay,
              CourseVisitor& visitor)
      : table_(table),
        map_(map),
        graph_(graph),
        lowered_(lowered),
        delay_(delay),
        visitor_(visitor),
        position_(graph.tasks.size()),
        clocks_(graph.task_of.size(), graph.streams.size()) {
    number();
  }

  void run() {
    const std::size_t vertices = graph_.task_of.size();
    std::vector<std::uint32_t> waits_for(vertices, 0);
    for (Vertex v = 0; v < vertices; ++v) {
      graph_.edges.for_each_out(v, [&](Vertex to, EdgeKind) { ++waits_for[to]; });
    }
    std::vector<Vertex> ready;
    std::vector<Vertex> sent;
    const auto wake = [&](Vertex v) { (ends_send(v) ? sent : ready).push_back(v); };
    for (Vertex v = 0; v < vertices; ++v) {
      if (waits_for[v] == 0) wake(v);
    }
    std::size_t ran = 0;
    while (!ready.empty() || !sent.empty()) {
      auto& from = sent.empty() ? ready : sent;
      const Vertex vertex = from.back();
      from.pop_back();
      ++ran;
      happen(vertex);
      const TaskId task = graph_.task_of[vertex];
      const bool over = !graph_.is_meeting(vertex) && vertex == graph_.end(task);
      std::size_t left = graph_.edges.out_degree(vertex);
      graph_.edges.for_each_out(vertex, [&](Vertex next, EdgeKind) {
        --left;
        if (!over || !clocks_.hold(next, point(task))) clocks_.join(vertex, next, left == 0);
        if (--waits_for[next] == 0) wake(next);
      });
      clocks_.release(vertex);
    }
    CAPO_ASSERT(ran == vertices, "only what finishes has a course");
  }

 private:
  [[nodiscard]] bool ends_send(Vertex vertex) const {
    const TaskId task = graph_.task_of[vertex];
    return is_send(graph_.tasks[task].kind) && !graph_.is_meeting(vertex) &&
           vertex == graph_.end(task);
  }

  // Gives each task its position on its stream; tasks of one vertex share one.
  void number() {
    CAPO_ASSERT(graph_.tasks.size() <= 0x7fffffff, "a clock holds each position");
    std::vector<std::uint32_t> last(graph_.streams.size(), 0);
    std::vector<Vertex> vertex(graph_.streams.size(), 0xffffffff);
    for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
      const Task& task = graph_.tasks[id];
      if (vertex[task.stream] != task.start) ++last[task.stream];
      vertex[task.stream] = task.start;
      position_[id] = last[task.stream];
    }
  }

  [[nodiscard]] Point point(TaskId id) const {
    return {.stream = graph_.tasks[id].stream, .position = position_[id]};
  }

  void happen(Vertex vertex) {
    std::int32_t* over = clocks_.make(vertex);
    if (graph_.is_meeting(vertex)) return;
    const bool end = vertex == graph_.end(graph_.task_of[vertex]);
    if (!end) {
      graph_.for_each_task(vertex, [&](TaskId id) { report_begun(id, over); });
      return;
    }
    graph_.for_each_task(vertex, [&](TaskId id) { report(id, over); });
    graph_.for_each_task(vertex, [&](TaskId id) {
      over[graph_.tasks[id].stream] = static_cast<std::int32_t>(position_[id]);
    });
  }

  void report_begun(TaskId id, const std::int32_t* over) {
    const Task& task = graph_.tasks[id];
    if (!is_receive(task.kind)) return;
    const Step& step = step_of(lowered_, task);
    visitor_.receiving({.rank = task.rank,
                        .chunk = step.chunk,
                        .microbatch = task.microbatch,
                        .entry = step.entry,
                        .kind = task.kind},
                       Clock(over, point(id)));
  }

  void report(TaskId id, const std::int32_t* over) {
    const Task& task = graph_.tasks[id];
    const Step& step = step_of(lowered_, task);
    const Clock clock(over, point(id));
    if (is_work(step)) {
      const Work work = work_of(step, delay_[task.rank.index()]);
      visitor_.work(task.rank, work, fed_by(table_, map_, task.rank, work), clock);
    } else if (is_send(task.kind)) {
      visitor_.sent({.rank = task.rank,
                     .chunk = step.chunk,
                     .microbatch = task.microbatch,
                     .entry = step.entry,
                     .kind = task.kind,
                     .received = point(receive_of(id))},
                    clock);
    }
  }

  // A graph that finishes has a receive for each send, which may be fused with others.
  [[nodiscard]] TaskId receive_of(TaskId send) const {
    const std::int32_t there = map_.neighbour(graph_.tasks[send].kind, graph_.tasks[send].stage);
    TaskId found = kNoTask;
    graph_.edges.for_each_out(graph_.start(send), [&](Vertex to, EdgeKind kind) {
      if (kind != EdgeKind::Message) return;
      graph_.for_each_task(graph_.start(graph_.task_of[to]), [&](TaskId id) {
        const Task& other = graph_.tasks[id];
        if (other.kind == other_end(graph_.tasks[send].kind) && other.stage == there &&
            other.microbatch == graph_.tasks[send].microbatch) {
          found = id;
        }
      });
    });
    CAPO_ASSERT(found != kNoTask, "what finishes has a receive for each send");
    return found;
  }

  const BufferTable& table_;
  const StageMap& map_;
  const TaskGraph& graph_;
  const Lowered& lowered_;
  const std::vector<std::vector<Delay>>& delay_;
  CourseVisitor& visitor_;
  std::vector<std::uint32_t> position_;  // by task
  Clocks clocks_;
};

}  // namespace

void CourseVisitor::receiving(const Receiving&, const Clock&) {
}

void run_orders(const BufferTable& table, const StageMap& map,
                const std::vector<std::vector<Work>>& work, CourseVisitor& visitor) {
  for (std::uint32_t r = 0; r < work.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    std::uint32_t position = 0;
    for (const Work& next : work[r]) {
      if (!next.joins) ++position;
      visitor.work(rank, next, fed_by(table, map, rank, next),
                   Clock(nullptr, {.stream = r, .position = position}));
    }
  }
}

void run_graph(const BufferTable& table, const StageMap& map, const TaskGraph& graph,
               const Lowered& lowered, const std::vector<std::vector<Delay>>& delay,
               CourseVisitor& visitor) {
  GraphCourse(table, map, graph, lowered, delay, visitor).run();
}

}  // namespace capo

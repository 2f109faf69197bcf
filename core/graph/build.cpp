#include "core/graph/build.h"

#include "core/graph/edge_list.h"
#include "core/graph/meetings.h"
#include "core/graph/task_lookup.h"
#include "core/order/fuse_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace capo {

namespace {

bool has_exchanges(const Lowered& lowered) {
  return std::any_of(lowered.ranks.begin(), lowered.ranks.end(), [](const auto& steps) {
    return std::any_of(steps.begin(), steps.end(),
                       [](const Step& step) { return is_exchange(step.kind); });
  });
}

class Builder {
 public:
  Builder(const Lowered& lowered, const StageMap& map, std::int32_t microbatches,
          std::size_t things, std::span<const CollectiveGroup> groups = {})
      : lowered_(lowered),
        map_(map),
        groups_(groups),
        lookup_(map.stages(), microbatches, things) {}

  void reserve(std::size_t edges_per_task) {
    std::size_t steps = 0;
    for (const auto& rank : lowered_.ranks) steps += rank.size();
    graph.tasks.reserve(steps);
    graph.task_of.reserve(steps * 2);
    edges_.reserve(steps * 2, steps * edges_per_task);
  }

  enum class Take : std::uint8_t { Computations, WithExchangesInTurn, AllButTransfers, All };

  // Adds tasks, streams and vertices, rank by rank in the order of issue.
  void add_tasks(Take take, const Environment& environment) {
    const Communicators layout = environment.layout();
    exchanges_in_turn_ = take == Take::WithExchangesInTurn;
    weight_stream_ = take != Take::Computations && environment.has_weight_stream();
    exchanges_ = take != Take::Computations && has_exchanges(lowered_);
    if (exchanges_) first_.emplace(map_.stages(), lookup_.microbatches(), kComputedThings);
    for (std::size_t r = 0; r < lowered_.ranks.size(); ++r) {
      graph.first_of.push_back(static_cast<TaskId>(graph.tasks.size()));
      const auto rank = static_cast<std::int32_t>(r);
      first_stream_ = static_cast<std::uint32_t>(graph.streams.size());
      graph.streams.push_back({.rank = rank});
      const auto& steps = lowered_.ranks[r];
      for (std::uint32_t at = 0; at < steps.size(); ++at) {
        if (takes(take, steps[at].kind)) add_task(rank, steps, at, layout);
      }
    }
    graph.first_of.push_back(static_cast<TaskId>(graph.tasks.size()));
  }

  // Puts each task behind the one before on its stream, a transfer behind the computation before
  // it, and computations behind the transfers that they wait for.
  void add_issue_order() {
    std::vector<TaskId> latest_in(graph.streams.size(), kNoTask);
    for (std::size_t r = 0; r + 1 < graph.first_of.size(); ++r) {
      TaskId computation = kNoTask;
      std::array<TaskId, 2> unwaited{kNoTask,
                                     kNoTask};  // the next send of their kind waits for them
      pending_waits_.clear();
      for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
        const Task task = graph.tasks[id];
        TaskId& latest = latest_in[task.stream];
        const bool joins = latest != kNoTask && graph.start(latest) == task.start;
        if (latest != kNoTask && !joins) {
          edges_.add(end(latest), task.start,
                     is_transfer(task.kind) ? EdgeKind::Queue : EdgeKind::Stream);
        }
        latest = id;
        if (runs_apart(task.kind)) {
          if (joins) continue;
          if (computation != kNoTask) edges_.add(end(computation), task.start, EdgeKind::Issue);
        } else if (is_compute(task.kind) || is_wait(task.kind)) {
          computation = id;
          if (joins) continue;
          for (const TaskId waited : pending_waits_) edge(waited, id, EdgeKind::Wait);
          pending_waits_.clear();
        } else if (is_transfer(task.kind)) {
          if (computation != kNoTask) edges_.add(end(computation), task.start, EdgeKind::Issue);
          note_waits(id, unwaited);
        }
      }
    }
  }

  // Holds a rank at each wait that is written into its order until the send or reduction is over.
  // Whatever is issued behind the wait, a transfer too, comes after it.
  void add_written_waits() {
    if (!has_waits_) return;
    for (std::size_t r = 0; r + 1 < graph.first_of.size(); ++r) {
      std::map<StageId, TaskId> reduced;
      for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
        const Task& task = graph.tasks[id];
        if (task.kind == Kind::ReduceGradient) reduced[task.stage] = id;
        if (task.kind == Kind::WaitReduceGradient) {
          const auto reduction = reduced.find(task.stage);
          wait_for(reduction == reduced.end() ? kNoTask : reduction->second, id);
        }
        if (!is_send_wait(task.kind)) continue;
        const TaskId send =
            find(task.kind == Kind::WaitSendForward ? Thing::SendF : Thing::SendB, task);
        wait_for(send, id);
      }
    }
  }

  // An unshard is over before the first computation that reads its parameters, and all computations
  // of the chunk are over before its parameters are given up or their gradients reduced.
  void add_parameter_order() {
    if (!has_parameter_actions_) return;
    for (std::size_t r = 0; r + 1 < graph.first_of.size(); ++r) {
      std::map<std::int32_t, TaskId> computed;  // by stage: the latest computation
      std::map<std::int32_t, TaskId>
          weighed;  // by stage: the latest on the stream of weight gradients
      std::map<std::int32_t, TaskId> unsharded;  // by stage: an unshard that no task has read
      for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
        const Task& task = graph.tasks[id];
        if (is_compute(task.kind)) {
          const auto found = unsharded.find(task.stage);
          if (found != unsharded.end()) {
            data(found->second, id);
            unsharded.erase(found);
          }
          (runs_apart(task.kind) ? weighed : computed)[task.stage] = id;
        } else if (task.kind == Kind::Unshard) {
          unsharded[task.stage] = id;
        } else if (is_parameter_action(task.kind)) {
          for (const auto* latest : {&computed, &weighed}) {
            const auto found = latest->find(task.stage);
            if (found != latest->end()) data(found->second, id);
          }
        }
      }
    }
  }

  // Chains the nodes of one microbatch of a stage over all streams, with one event that each waits
  // for and records. A weight gradient does neither.
  void add_events() {
    if (!exchanges_) return;
    TaskLookup latest(map_.stages(), lookup_.microbatches(), 1);
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      if (!is_node(task.kind) || !lookup_.holds(task.stage, task.microbatch)) continue;
      TaskId& before = latest.at(Thing::Forward, task.stage, task.microbatch);
      const bool crosses = before != kNoTask && graph.tasks[before].stream != task.stream;
      if (crosses) edge(before, id, EdgeKind::Event);
      before = id;
    }
  }

  // Puts forward before backward before weight gradient of one stage and microbatch.
  void add_local_data() {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      if (is_backward(task.kind) && begins(id)) data(find(Thing::Forward, task), id);
      // If layers are taken apart, each W has its own B before it on the same stream.
      if (task.kind == Kind::BackwardWeight && !exchanges_) data(find(Thing::Backward, task), id);
    }
  }

  // Lets each stage read its input straight from the task of the neighbour that made it.
  void add_direct_data() {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      if (!is_node(task.kind) || !begins(id)) continue;
      const Thing made = is_forward_node(task.kind) ? Thing::Forward : Thing::Backward;
      const StageId maker = map_.neighbour(task.kind, task.stage);
      data(lookup_.find(made, maker, task.microbatch), id);
    }
  }

  // Lets each stage read its input through a transfer, and notes every fault of a transfer that one
  // rank alone shows.
  void add_transferred_data() {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task task = graph.tasks[id];
      if (is_send(task.kind)) {
        const Thing made = task.kind == Kind::SendForward ? Thing::Forward : Thing::Backward;
        const TaskId producer = find(made, task);
        if (producer == kNoTask) {
          graph.tasks.set_never(id);
        } else if (!same_rank(producer, id) || graph.tasks[producer].step > task.step) {
          fault(TransferFault::Kind::SendTooEarly, id, producer);
          graph.tasks.set_never(id);
        } else {
          edge(producer, id, EdgeKind::Data);
        }
      } else if (!begins(id)) {
        continue;
      } else if (is_forward_node(task.kind)) {
        receive_input(id, Thing::Forward, Thing::ReceiveF);
      } else if (is_backward_node(task.kind)) {
        receive_input(id, Thing::Backward, Thing::ReceiveB);
      }
    }
  }

  void pair(const Environment& environment) {
    pair_transfers(lowered_, map_, lookup_, environment, graph, edges_, faults);
  }
  void meet() { meet_collectives(lowered_, groups_, graph, edges_, faults); }

  // Nobody looks tasks up any more, and building the edges takes the most memory.
  void finish() {
    lookup_ = TaskLookup(0, 0);
    first_.reset();
    graph.edges = edges_.take_graph(graph.task_of.size());
    graph.member_edges = edges_.take_member_edges();
  }

  TaskGraph graph;
  std::vector<TransferFault> faults;

 private:
  [[nodiscard]] static bool takes(Take take, Kind kind) {
    return take == Take::All || is_compute(kind) ||
           (take == Take::AllButTransfers && !is_transfer(kind) && !is_send_wait(kind)) ||
           (take == Take::WithExchangesInTurn && is_exchange(kind));
  }
  [[nodiscard]] Vertex end(TaskId task) const { return graph.end(task); }
  [[nodiscard]] Step step_of(const Task& task) const { return capo::step_of(lowered_, task); }
  [[nodiscard]] TaskId find(Thing thing, const Task& of) const {
    return lookup_.find(thing, of.stage, of.microbatch);
  }
  [[nodiscard]] bool same_rank(TaskId a, TaskId b) const {
    return graph.tasks[a].rank == graph.tasks[b].rank;
  }

  // Whether a task of this kind is a computation on a stream beside the others.
  [[nodiscard]] bool runs_apart(Kind kind) const {
    return weight_stream_ && kind == Kind::BackwardWeight;
  }
  // Whether two steps of a composite can be one vertex: weight gradients on a stream of their own
  // are if they are one call.
  [[nodiscard]] bool share_a_stream(const Step& before, const Step& step) const {
    if (runs_apart(before.kind) && runs_apart(step.kind)) return in_one_call(before, step);
    return !runs_apart(before.kind) && !runs_apart(step.kind);
  }
  [[nodiscard]] static bool is_parameter_action(Kind kind) {
    return kind == Kind::Unshard || kind == Kind::Reshard || kind == Kind::ReduceGradient;
  }
  // Whether the task is the first node of its forward or backward (see is_node()).
  [[nodiscard]] bool begins(TaskId id) const {
    if (!exchanges_) return true;
    const Task& task = graph.tasks[id];
    const Thing thing = is_forward_node(task.kind) ? Thing::Forward : Thing::Backward;
    return first_->find(thing, task.stage, task.microbatch) == id;
  }

  void note_waits(TaskId id, std::array<TaskId, 2>& unwaited) {
    const Task& task = graph.tasks[id];
    const Wait wait = step_of(task).wait;
    if (wait == Wait::AtOnce) pending_waits_.push_back(id);
    if (!is_send(task.kind)) return;
    TaskId& before = unwaited[task.kind == Kind::SendForward ? 0 : 1];
    if (before != kNoTask) pending_waits_.push_back(before);
    before = wait == Wait::AtNext ? id : kNoTask;
  }

  // A wait for what its rank never begins is never over.
  void wait_for(TaskId begun, TaskId wait) {
    if (begun != kNoTask && same_rank(begun, wait))
      edge(begun, wait, EdgeKind::Wait);
    else
      graph.tasks.set_never(wait);
  }

  void edge(TaskId from, TaskId to, EdgeKind kind) {
    edges_.add(graph, {from, end(from)}, {to, graph.start(to)}, kind);
  }
  // The members of a composite share a vertex and order nothing among themselves.
  void data(TaskId from, TaskId to) {
    if (from == kNoTask || graph.start(from) == graph.start(to)) return;
    edge(from, to, EdgeKind::Data);
  }
  void fault(TransferFault::Kind kind, TaskId task, TaskId other = kNoTask) {
    faults.push_back({.kind = kind, .task = task, .other = other});
  }

  void add_task(std::int32_t rank, const StepList& steps, std::uint32_t at, Communicators layout) {
    const Step& step = steps[at];
    const auto id = static_cast<TaskId>(graph.tasks.size());
    Task task{.rank = rank,
              .stage = map_.stage_of(rank, step.chunk),
              .microbatch = step.microbatch,
              .step = at,
              .kind = step.kind};
    const bool transfer = is_transfer(step.kind);
    const bool in_turn =
        is_wait(step.kind) || (is_compute(step.kind) ? !runs_apart(step.kind) : exchanges_in_turn_);
    task.stream = in_turn ? first_stream_ : stream_of(task, layout);
    task.split = transfer || (!groups_.empty() && !is_compute(step.kind) &&
                              group_of(groups_, rank, step.kind) < groups_.size());
    has_parameter_actions_ = has_parameter_actions_ || is_parameter_action(step.kind);
    const bool issued_apart = transfer && on_lazy_channel(layout, steps, at);
    if (!issued_apart && id > graph.first_of.back() && joins_latest(steps, task)) {
      graph.tasks.set_member(id - 1);
      task.start = graph.start(id - 1);
      task.member = true;
    } else {
      task.start = static_cast<Vertex>(graph.task_of.size());
      graph.task_of.push_back(id);
      if (task.split) {
        graph.task_of.push_back(id);
        edges_.add(task.start, task.start + 1, EdgeKind::Span);
      }
    }
    graph.tasks.push_back(task);
    has_waits_ = has_waits_ || is_wait(step.kind);
    if (has_microbatch(step.kind) && !is_send_wait(step.kind)) enter(id);
  }

  // Whether a task shares the vertex of the latest task of its rank.
  [[nodiscard]] bool joins_latest(const StepList& steps, const Task& task) const {
    const Task latest = graph.tasks.back();
    return in_one(steps, latest.step, task.step) && latest.split == task.split &&
           share_a_stream(steps[latest.step], steps[task.step]) &&
           is_transfer(latest.kind) == is_transfer(task.kind);
  }

  // Whether two steps belong to one composite or group, even if steps between them are left out.
  [[nodiscard]] static bool in_one(const StepList& steps, std::uint32_t first, std::uint32_t last) {
    while (last > first && steps[last].group == Group::Continues) --last;
    return last == first;
  }

  // Enters the task into the lookup, unless its name is taken or its stage lives elsewhere.
  void enter(TaskId id) {
    const Task task = graph.tasks[id];
    if (!lookup_.holds(task.stage, task.microbatch) || map_.home(task.stage).rank != task.rank) {
      return;
    }
    if (exchanges_ && is_node(task.kind)) {
      // The first node reads the input, the last one makes the output.
      const Thing thing = is_forward_node(task.kind) ? Thing::Forward : Thing::Backward;
      TaskId& first = first_->at(thing, task.stage, task.microbatch);
      if (first == kNoTask) first = id;
      lookup_.at(thing, task.stage, task.microbatch) = id;
      return;
    }
    TaskId& slot = lookup_.at(thing_of(task.kind), task.stage, task.microbatch);
    if (slot == kNoTask) {
      slot = id;
    } else if (is_transfer(task.kind)) {
      fault(TransferFault::Kind::Repeated, id, slot);
    }
  }

  // Returns the stream of a task that runs beside the computations. A rank has few, so a scan finds
  // it.
  std::uint32_t stream_of(const Task& task, Communicators layout) {
    const Stream stream = is_transfer(task.kind)  ? queue_of(task, layout)
                          : is_compute(task.kind) ? Stream{.rank = task.rank, .name = "wgrad"}
                                                  : collective_stream_of(task);
    for (std::uint32_t i = first_stream_ + 1; i < graph.streams.size(); ++i) {
      if (graph.streams[i] == stream) return i;
    }
    graph.streams.push_back(stream);
    return static_cast<std::uint32_t>(graph.streams.size() - 1);
  }

  [[nodiscard]] Stream queue_of(const Task& task, Communicators layout) const {
    Stream stream{.rank = task.rank,
                  .runs = Stream::Runs::Transfers,
                  .communicator = step_of(task).communicator};
    const StageId stage = map_.neighbour(task.kind, task.stage);
    const RankId peer = stage == kNoStage ? task.rank : map_.home(stage).rank;
    const bool of_pair = layout == Communicators::PerPair ||
                         on_lazy_channel(layout, lowered_.ranks[task.rank.index()], task.step);
    if (of_pair) {
      stream.peer_low = std::min(task.rank, peer);
      stream.peer_high = std::max(task.rank, peer);
    } else if (layout == Communicators::PerEdge) {
      stream.peer_low = is_send(task.kind) ? task.rank : peer;
      stream.peer_high = is_send(task.kind) ? peer : task.rank;
    } else if (layout == Communicators::PerDirection) {
      stream.name = carries_gradient(task.kind) ? "upstream" : "downstream";
    }
    return stream;
  }

  [[nodiscard]] Stream collective_stream_of(const Task& task) const {
    Stream stream{.rank = task.rank,
                  .runs = Stream::Runs::Collectives,
                  .name = is_exchange(task.kind) ? "comm" : "dp"};
    const std::uint32_t group = group_of(groups_, task.rank, task.kind);
    if (group == groups_.size()) return stream;
    for (const auto& [kind, name] : groups_[group].streams) {
      if (kind == task.kind) stream.name = name;
    }
    return stream;
  }

  // Adds the edge to `reader` from its input, which is made on this rank or received.
  void receive_input(TaskId reader, Thing made, Thing received) {
    const Task task = graph.tasks[reader];
    const StageId producer_stage = map_.neighbour(task.kind, task.stage);
    if (producer_stage == kNoStage) return;
    if (map_.same_rank(producer_stage, task.stage)) {
      data(lookup_.find(made, producer_stage, task.microbatch), reader);
      return;
    }
    const TaskId receive = find(received, task);
    if (receive == kNoTask) {
      const Thing sent = made == Thing::Forward ? Thing::SendF : Thing::SendB;
      fault(TransferFault::Kind::NotReceived, reader,
            lookup_.find(sent, producer_stage, task.microbatch));
      graph.tasks.set_never(reader);
    } else if (same_rank(receive, reader) && graph.tasks[receive].step > task.step) {
      fault(TransferFault::Kind::ReceiveTooLate, receive, reader);
      graph.tasks.set_never(reader);
    } else {
      edge(receive, reader, EdgeKind::Data);
    }
  }

  const Lowered& lowered_;
  const StageMap& map_;
  std::span<const CollectiveGroup> groups_;
  TaskLookup lookup_;                // the last node of a pass that has several
  std::optional<TaskLookup> first_;  // the first node of a pass; nullopt without exchanges
  bool exchanges_ = false;
  bool exchanges_in_turn_ = false;  // exchanges run on the stream of computations
  bool weight_stream_ = false;
  bool has_parameter_actions_ = false;
  bool has_waits_ = false;
  std::uint32_t first_stream_ = 0;  // the stream of computations of the rank at hand
  std::vector<TaskId> pending_waits_;
  EdgeList edges_;
};

}  // namespace

TaskGraph wire_directly(const Lowered& lowered, const StageMap& map, std::int32_t microbatches,
                        Exchanges exchanges) {
  Builder builder(lowered, map, microbatches, kComputedThings);
  builder.reserve(3);
  builder.add_tasks(exchanges == Exchanges::InTurn ? Builder::Take::WithExchangesInTurn
                                                   : Builder::Take::Computations,
                    {});
  builder.add_issue_order();
  builder.add_local_data();
  builder.add_direct_data();
  builder.finish();
  return std::move(builder.graph);
}

TaskGraph wire_ideally(const Lowered& lowered, const StageMap& map, std::int32_t microbatches,
                       const Environment& environment, std::span<const CollectiveGroup> groups) {
  Builder builder(lowered, map, microbatches, kComputedThings, groups);
  builder.reserve(4);
  builder.add_tasks(Builder::Take::AllButTransfers, environment);
  builder.add_issue_order();
  builder.add_parameter_order();
  builder.add_written_waits();
  builder.add_events();
  builder.add_local_data();
  builder.add_direct_data();
  builder.meet();
  builder.finish();
  return std::move(builder.graph);
}

WiredTransfers wire_transfers(const Lowered& lowered, const StageMap& map,
                              std::int32_t microbatches, const Environment& environment,
                              std::span<const CollectiveGroup> groups) {
  Builder builder(lowered, map, microbatches, kThings, groups);
  builder.reserve(5);
  builder.add_tasks(Builder::Take::All, environment);
  builder.add_issue_order();
  builder.add_parameter_order();
  builder.add_written_waits();
  builder.add_events();
  builder.add_local_data();
  builder.add_transferred_data();
  builder.pair(environment);
  builder.meet();
  builder.finish();
  return {.graph = std::move(builder.graph), .faults = std::move(builder.faults)};
}

}  // namespace capo

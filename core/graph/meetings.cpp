#include "core/graph/meetings.h"

#include "core/base/assert.h"
#include "core/graph/edge_list.h"
#include "core/graph/task_lookup.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace capo {

namespace {

// The ends of the messages from one rank to another on one communicator, in the order of issue.
struct Channel {
  std::vector<TaskId> sends;
  std::vector<TaskId> receives;
};

class Pairing {
 public:
  Pairing(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup, TaskGraph& graph,
          const Environment& environment, std::vector<TransferFault>& faults)
      : lowered_(lowered),
        map_(map),
        lookup_(lookup),
        graph_(graph),
        held_(environment.held()),
        layout_(environment.layout()),
        faults_(faults) {}

  // Sorts each transfer into those that have a partner and those that wait for ever.
  void find_partners() {
    for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
      const Task task = graph_.tasks[id];
      if (!is_transfer(task.kind)) continue;
      const StageId there = map_.neighbour(task.kind, task.stage);
      const bool nowhere =
          there == kNoStage || map_.home(there).rank < 0 || map_.home(there).rank == task.rank;
      if (nowhere) {
        fault(TransferFault::Kind::Nowhere, id);
        graph_.tasks.set_never(id);
        continue;
      }
      // The task repeats a transfer, which was reported, or a stray rank makes it.
      const bool another = find(task.kind, task.stage, task.microbatch) != id;
      if (another) continue;
      const bool sends = is_send(task.kind);
      const TaskId partner = find(other_end(task.kind), there, task.microbatch);
      const std::uint64_t communicator = communicator_of(task);
      if (partner == kNoTask) {
        fault(sends ? TransferFault::Kind::SendWithout : TransferFault::Kind::ReceiveWithout, id);
      } else if (communicator == communicator_of(graph_.tasks[partner])) {
        Channel& channel = channels_[key_of(task, map_.home(there).rank, communicator)];
        (sends ? channel.sends : channel.receives).push_back(id);
        continue;
      } else if (!sends) {
        fault(TransferFault::Kind::OtherCommunicator, id, partner);
      }
      if (!sends || held_ == 0) graph_.tasks.set_never(id);
    }
  }

  void meet(EdgeList& edges) {
    for (const auto& [key, channel] : channels_) meet_in(channel, edges);
  }

 private:
  [[nodiscard]] TaskId find(Kind kind, StageId stage, MicrobatchId microbatch) const {
    return lookup_.find(thing_of(kind), stage, microbatch);
  }
  // A communicator takes two bits.
  [[nodiscard]] static std::uint64_t key_of(const Task& task, RankId peer,
                                            std::uint64_t communicator) {
    const RankId from = is_send(task.kind) ? task.rank : peer;
    const RankId to = is_send(task.kind) ? peer : task.rank;
    return (static_cast<std::uint64_t>(from) << 33) | (static_cast<std::uint64_t>(to) << 2) |
           communicator;
  }
  void meet_in(const Channel& channel, EdgeList& edges) {
    const auto& [sends, receives] = channel;
    CAPO_ASSERT(sends.size() == receives.size(), "each has its partner");
    bool reported = false;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const TaskId send = sends[i];
      const TaskId receive = receives[i];
      // Only the first pair that disagrees is a fault: those behind it follow from it.
      const bool agree = message_of(graph_.tasks[send]) == message_of(graph_.tasks[receive]);
      if (!agree && !reported) {
        reported = true;
        fault(TransferFault::Kind::Mismatch, receive, send);
      }
      edges.add(graph_, {send, graph_.start(send)}, {receive, graph_.end(receive)},
                EdgeKind::Message);
      if (i >= held_) {
        const TaskId makes_room = receives[i - held_];
        edges.add(graph_, {makes_room, graph_.start(makes_room)}, {send, graph_.end(send)},
                  EdgeKind::Rendezvous);
      }
    }
  }
  [[nodiscard]] std::uint64_t communicator_of(const Task& task) const {
    return communicator_between(layout_, lowered_, task);
  }
  void fault(TransferFault::Kind kind, TaskId task, TaskId other = kNoTask) {
    faults_.push_back({.kind = kind, .task = task, .other = other});
  }

  const Lowered& lowered_;
  const StageMap& map_;
  const TaskLookup& lookup_;
  TaskGraph& graph_;
  std::uint64_t held_;  // messages in a channel
  Communicators layout_;
  std::vector<TransferFault>& faults_;
  std::map<std::uint64_t, Channel> channels_;
};

}  // namespace

Message message_of(const Task& transfer) {
  switch (transfer.kind) {
    case Kind::SendForward:
      return {true, transfer.stage + 1, transfer.microbatch};
    case Kind::ReceiveForward:
      return {true, transfer.stage, transfer.microbatch};
    case Kind::SendBackward:
      return {false, transfer.stage - 1, transfer.microbatch};
    default:
      return {false, transfer.stage, transfer.microbatch};
  }
}

std::uint8_t communicator_between(Communicators layout, const Lowered& lowered,
                                  const Task& transfer) {
  const StepList& steps = lowered.ranks[transfer.rank.index()];
  const bool other = (layout == Communicators::PerDirection && carries_gradient(transfer.kind)) ||
                     on_lazy_channel(layout, steps, transfer.step);
  return static_cast<std::uint8_t>((other ? 2U : 0U) | steps[transfer.step].communicator);
}

bool on_lazy_channel(Communicators layout, const StepList& steps, std::uint32_t at) {
  return layout == Communicators::LazyHybrid && !in_mixed_group(steps, at);
}

void pair_transfers(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup,
                    const Environment& environment, TaskGraph& graph, EdgeList& edges,
                    std::vector<TransferFault>& faults) {
  Pairing pairing(lowered, map, lookup, graph, environment, faults);
  pairing.find_partners();
  pairing.meet(edges);
}

namespace {

// Puts all starts before one point and all ends behind it.
void join(std::span<const TaskId> tasks, TaskGraph& graph, EdgeList& edges) {
  const TaskId first = tasks.front();
  const auto point = static_cast<Vertex>(graph.task_of.size());
  graph.task_of.push_back(first);
  for (const TaskId task : tasks) {
    edges.add(graph, {task, graph.start(task)}, {first, point}, EdgeKind::Collective);
    edges.add(graph, {first, point}, {task, graph.end(task)}, EdgeKind::Collective);
  }
}

// Lets the k-th collective of each member meet. Returns false and notes a fault if they differ.
bool meet(const Lowered& lowered, const std::vector<std::vector<TaskId>>& members, std::size_t k,
          std::uint32_t group, TaskGraph& graph, EdgeList& edges,
          std::vector<TransferFault>& faults) {
  TaskId first = kNoTask;
  for (const auto& member : members) {
    if (k < member.size() && first == kNoTask) first = member[k];
  }
  const Collective together = collective_of(lowered, graph.tasks[first]);
  for (const auto& member : members) {
    const bool ends = k >= member.size();
    if (!ends && collective_of(lowered, graph.tasks[member[k]]) == together) continue;
    faults.push_back({.kind = TransferFault::Kind::CollectiveOrder,
                      .task = ends ? first : member[k],
                      .other = ends ? kNoTask : first,
                      .group = group});
    for (const auto& waiting : members) {
      if (k < waiting.size()) graph.tasks.set_never(waiting[k]);
    }
    return false;
  }
  std::vector<TaskId> meeting;
  for (const auto& member : members) meeting.push_back(member[k]);
  join(meeting, graph, edges);
  return true;
}

}  // namespace

Collective collective_of(const Lowered& lowered, const Task& task) {
  const Step& step = step_of(lowered, task);
  return {
      .kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch, .layer = step.layer};
}

std::uint32_t group_of(std::span<const CollectiveGroup> groups, RankId rank, Kind kind) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
    const auto& members = group.members;
    return group.performs(kind) && std::find(members.begin(), members.end(), rank) != members.end();
  });
  return static_cast<std::uint32_t>(found - groups.begin());
}

std::vector<TaskId> collectives_of(const TaskGraph& graph, const CollectiveGroup& group,
                                   RankId rank) {
  std::vector<TaskId> found;
  const std::size_t r = rank.index();
  if (r + 1 >= graph.first_of.size()) return found;
  for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
    if (group.performs(graph.tasks[id].kind)) found.push_back(id);
  }
  return found;
}

void meet_collectives(const Lowered& lowered, std::span<const CollectiveGroup> groups,
                      TaskGraph& graph, EdgeList& edges, std::vector<TransferFault>& faults) {
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    std::vector<std::vector<TaskId>> members;
    std::size_t longest = 0;
    for (const std::int32_t rank : groups[g].members) {
      members.push_back(collectives_of(graph, groups[g], rank));
      longest = std::max(longest, members.back().size());
    }
    for (std::size_t k = 0; k < longest; ++k) {
      if (!meet(lowered, members, k, g, graph, edges, faults)) break;
    }
  }
}

namespace {

// Finds the first uses of communicators and lets the members of each meet.
class FirstUseWiring {
 public:
  FirstUseWiring(const TaskGraph& graph, std::span<const CollectiveGroup> groups)
      : of_(graph), groups_(groups) {}

  FirstUses run() {
    for (std::size_t r = 0; r + 1 < of_.first_of.size(); ++r) add_uses_of(r);
    made_.graph.first_of.push_back(static_cast<TaskId>(made_.graph.tasks.size()));
    for (const auto& [communicator, uses] : uses_) meet_members(communicator, uses);
    made_.graph.edges = edges_.take_graph(made_.graph.task_of.size());
    return std::move(made_);
  }

 private:
  // Two ranks, -1 for all; a communicator between them, its name, and the declared group, which is
  // past the last for transfers.
  using Communicator =
      std::tuple<std::int32_t, std::int32_t, std::uint8_t, std::string_view, std::uint32_t>;

  [[nodiscard]] std::optional<Communicator> communicator_of(const Task& task) const {
    const Stream& stream = of_.streams[task.stream];
    const auto transfers = static_cast<std::uint32_t>(groups_.size());
    if (stream.runs == Stream::Runs::Transfers)
      return Communicator{stream.peer_low, stream.peer_high, stream.communicator, stream.name,
                          transfers};
    const std::uint32_t group = group_of(groups_, task.rank, task.kind);
    if (stream.runs != Stream::Runs::Collectives || group == transfers) return std::nullopt;
    return Communicator{-1, -1, std::uint8_t{0}, std::string_view(), group};
  }

  void add_uses_of(std::size_t rank) {
    TaskGraph& graph = made_.graph;
    const auto host = static_cast<std::uint32_t>(graph.streams.size());
    graph.streams.push_back({.rank = static_cast<std::int32_t>(rank)});
    graph.first_of.push_back(static_cast<TaskId>(graph.tasks.size()));
    for (TaskId id = of_.first_of[rank]; id < of_.first_of[rank + 1]; ++id) {
      const auto communicator = communicator_of(of_.tasks[id]);
      if (!communicator) continue;
      std::vector<TaskId>& uses = uses_[*communicator];
      const bool again = !uses.empty() && graph.tasks[uses.back()].rank == of_.tasks[id].rank;
      if (!again) uses.push_back(add_use(of_.tasks[id], host));
    }
  }

  // A use is behind the one before it on the same host.
  TaskId add_use(Task use, std::uint32_t host) {
    TaskGraph& graph = made_.graph;
    const auto id = static_cast<TaskId>(graph.tasks.size());
    use.stream = host;
    use.start = static_cast<Vertex>(graph.task_of.size());
    use.split = true;
    use.never = use.member = false;
    graph.tasks.push_back(use);
    graph.task_of.push_back(id);
    graph.task_of.push_back(id);
    if (id > graph.first_of.back()) edges_.add(graph.end(id - 1), use.start, EdgeKind::Stream);
    edges_.add(use.start, use.start + 1, EdgeKind::Span);
    return id;
  }

  [[nodiscard]] std::vector<RankId> members_of(const Communicator& communicator) const {
    const auto& [low, high, number, name, group] = communicator;
    std::vector<RankId> members;
    if (group < groups_.size()) {
      members.assign(groups_[group].members.begin(), groups_[group].members.end());
    } else if (low >= 0) {
      members = {low, high};
    } else {
      for (std::size_t r = 0; r < made_.graph.streams.size(); ++r)
        members.push_back(made_.graph.streams[r].rank);
    }
    return members;
  }

  void meet_members(const Communicator& communicator, const std::vector<TaskId>& uses) {
    TaskGraph& graph = made_.graph;
    for (const RankId member : members_of(communicator)) {
      const bool comes = std::any_of(uses.begin(), uses.end(),
                                     [&](TaskId use) { return graph.tasks[use].rank == member; });
      if (comes) continue;
      made_.absences.push_back({.task = uses.front(), .member = member});
      for (const TaskId use : uses) graph.tasks.set_never(use);
      return;
    }
    join(uses, graph, edges_);
  }

  const TaskGraph& of_;
  std::span<const CollectiveGroup> groups_;
  FirstUses made_;
  std::map<Communicator, std::vector<TaskId>> uses_;  // of each rank the first
  EdgeList edges_;
};

}  // namespace

FirstUses wire_first_uses(const TaskGraph& graph, std::span<const CollectiveGroup> groups) {
  return FirstUseWiring(graph, groups).run();
}

}  // namespace capo

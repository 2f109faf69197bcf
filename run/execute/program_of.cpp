// The making of a program, of program.h.

#include "core/base/assert.h"
#include "core/graph/meetings.h"
#include "run/execute/program.h"
#include "run/execute/program_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace capo::run {

namespace {

using NodeId = std::uint32_t;
constexpr NodeId kNoNode = 0xffffffff;

// A vertex before its parts are known: the tasks that happen there.
struct Node {
  std::uint32_t stream = 0;
  std::int32_t rank = 0;
  std::vector<Work> works;
  std::vector<TaskId> begins;                     // transfers that begin here
  std::vector<TaskId> transfers;                  // transfers that end here
  std::vector<TaskId> exchanges;                  // that begin or end here
  std::int32_t chunk = 0;                         // of the reduction that meets here
  std::map<std::int32_t, std::uint32_t> members;  // its ranks with their streams; none: none does
};

class Builder {
 public:
  Builder(const BufferTable& table, const Course& course)
      : table_(table),
        course_(course),
        cells_(table),
        handovers_(table, course),
        exchanges_(table, course, handovers_, program),
        given_out_(table, handovers_, exchanges_, program) {
    course.graph != nullptr ? take_graph(*course.graph) : take_orders();
    order_gradients();
    if (course.graph != nullptr) order_reductions(*course.graph);
  }

  // Puts the edge in, unless it would close a circle; says whether it did.
  bool force(const Forced& forced) {
    index_sites();
    const NodeId before = node_of(forced.first);
    const NodeId after = node_of(forced.second);
    if (before == after) return true;
    std::vector<NodeId> behind{after};
    if (is_send(forced.second.kind)) {
      // A send has read its buffer when either end is over.
      for (const TaskId id : nodes_[after].transfers) {
        const NodeId received = other_end_of(id);
        if (received != kNoNode && received != before) behind.push_back(received);
      }
    }
    if (reaches(behind, before)) return false;
    forced_ = true;
    for (const NodeId node : behind) edge(before, node);
    return true;
  }

  // Returns false if there is no order.
  [[nodiscard]] bool launch_all() {
    std::vector<std::uint32_t> waits_for(nodes_.size(), 0);
    for (const auto& successors : after_) {
      for (const NodeId next : successors) ++waits_for[next];
    }
    // Wave by wave: all ranks move on together, as they would in time.
    std::vector<NodeId> wave;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      if (waits_for[node] == 0) wave.push_back(node);
    }
    op_of_.assign(nodes_.size(), kNoNode);
    program.waits.resize(nodes_.size());
    while (!wave.empty()) {
      std::sort(wave.begin(), wave.end());
      std::vector<NodeId> next_wave;
      for (const NodeId node : wave) {
        launch(node);
        for (const NodeId next : after_[node]) {
          if (nodes_[next].stream != nodes_[node].stream) waits_of_[next].push_back(op_of_[node]);
          if (--waits_for[next] == 0) next_wave.push_back(next);
        }
      }
      wave = std::move(next_wave);
    }
    if (program.ops.size() < nodes_.size()) return false;
    given_out_.end();
    if (forced_) order_as_launched();
    return true;
  }

  Program program;

 private:
  void edge(NodeId from, NodeId to) { after_[from].push_back(to); }

  [[nodiscard]] bool reaches(std::vector<NodeId> from, NodeId to) const {
    std::vector<bool> seen(nodes_.size(), false);
    while (!from.empty()) {
      const NodeId node = from.back();
      from.pop_back();
      if (node == to) return true;
      if (seen[node]) continue;
      seen[node] = true;
      from.insert(from.end(), after_[node].begin(), after_[node].end());
    }
    return false;
  }

  NodeId add_node(std::uint32_t stream, std::int32_t rank) {
    nodes_.push_back({.stream = stream, .rank = rank});
    after_.emplace_back();
    waits_of_.emplace_back();
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  void take_orders() {
    for (std::uint32_t r = 0; r < course_.work.size(); ++r) {
      const auto rank = static_cast<std::int32_t>(r);
      program.rank_of_stream.push_back(rank);
      NodeId last = kNoNode;
      for (const Work& work : course_.work[r]) {
        if (!work.joins) {
          const NodeId node = add_node(r, rank);
          if (last != kNoNode) edge(last, node);
          last = node;
        }
        nodes_[last].works.push_back(work);
      }
    }
  }

  void take_graph(const TaskGraph& graph) {
    for (const Stream& stream : graph.streams) program.rank_of_stream.push_back(stream.rank);
    for (Vertex vertex = 0; vertex < graph.task_of.size(); ++vertex) {
      const TaskId first = graph.task_of[vertex];
      Node& node = nodes_[add_node(graph.tasks[first].stream, graph.tasks[first].rank)];
      if (graph.is_meeting(vertex)) continue;
      if (vertex != graph.end(first)) {
        graph.for_each_task(vertex, [&](TaskId id) {
          const Kind kind = graph.tasks[id].kind;
          if (is_transfer(kind)) node.begins.push_back(id);
          if (is_exchange(kind)) node.exchanges.push_back(id);
        });
        continue;
      }
      graph.for_each_task(vertex, [&](TaskId id) {
        const Task& task = graph.tasks[id];
        const Step& step = step_of(*course_.lowered, task);
        if (is_work(step)) {
          node.works.push_back(work_of(step, (*course_.delay)[task.rank.index()]));
        } else if (is_transfer(task.kind)) {
          node.transfers.push_back(id);
        } else if (is_exchange(task.kind)) {
          node.exchanges.push_back(id);
        }
      });
    }
    for (Vertex vertex = 0; vertex < graph.task_of.size(); ++vertex) {
      graph.edges.for_each_out(vertex, [&](Vertex to, EdgeKind) {
        edge(vertex, to);
        if (!graph.is_meeting(to)) return;
        meet(graph.tasks[graph.task_of[vertex]], graph.tasks[graph.task_of[to]], to);
      });
    }
    exchange_at_meetings(graph);
    program.transfers = transfers_of(table_, course_);
    for (std::uint32_t at = 0; at < program.transfers.size(); ++at) {
      transfer_at_[{program.transfers[at].cell, program.transfers[at].way}] = at;
    }
  }

  // Enters the rank of a member at the point where all perform `collective`. A composite that has
  // several collectives meets others at as many points.
  void meet(const Task& member, const Task& collective, NodeId point) {
    if (is_exchange(collective.kind)) exchanges_.meets(point, member.rank, member.stream);
    if (collective.kind != Kind::ReduceGradient) return;
    nodes_[point].chunk = step_of(*course_.lowered, collective).chunk;
    nodes_[point].members[member.rank] = member.stream;
  }

  // Tells exchanges of several ranks where these meet.
  void exchange_at_meetings(const TaskGraph& graph) {
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      for (const NodeId next : after_[node]) {
        if (!graph.is_meeting(next)) continue;
        const auto met = collective_of(*course_.lowered, graph.tasks[graph.task_of[next]]);
        for (const TaskId task : nodes_[node].exchanges) {
          if (collective_of(*course_.lowered, graph.tasks[task]) == met) {
            exchanges_.goes_through(next, task);
          }
        }
      }
    }
  }

  [[nodiscard]] Transfer& transfer_of(const Task& task) {
    const StageMap& map = *course_.map;
    const bool forward = task.kind == Kind::SendForward || task.kind == Kind::ReceiveForward;
    const StageMap::Place& to =
        map.home(is_send(task.kind) ? map.neighbour(task.kind, task.stage) : task.stage);
    const std::uint32_t cell = cells_.of(to.rank, to.chunk, task.microbatch);
    return program.transfers[transfer_at_.at({cell, forward ? Way::Forward : Way::Backward})];
  }

  // A whole backward and a weight gradient of one chunk add to the same tensors: they do so in the
  // order in which the rank lists them, also where the one runs beside the other.
  void order_gradients() {
    std::map<std::pair<std::int32_t, std::int32_t>, NodeId> last;  // by rank and chunk
    std::map<WorkKey, NodeId> node_of_work;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      for (const Work& work : nodes_[node].works) {
        node_of_work[key_of(nodes_[node].rank, work)] = node;
      }
    }
    for (std::size_t r = 0; r < course_.work.size(); ++r) {
      const auto rank = static_cast<std::int32_t>(r);
      for (const Work& work : course_.work[r]) {
        if (work.kind == Kind::Forward || work.delayed) continue;
        const NodeId node = node_of_work.at(key_of(rank, work));
        const auto [before, first] = last.try_emplace({rank, work.chunk}, node);
        if (!first && nodes_[before->second].stream != nodes_[node].stream) {
          edge(before->second, node);
        }
        before->second = node;
      }
    }
  }

  // A gradient that a rank lists behind a reduction of its chunk comes too late, and it is not to
  // be chance whether it shows. Nothing else holds it back: an edge that would close a circle is
  // left out.
  void order_reductions(const TaskGraph& graph) {
    for (NodeId point = 0; point < nodes_.size(); ++point) {
      for (const auto& [rank, stream] : nodes_[point].members) order_behind(graph, point, rank);
    }
  }

  void order_behind(const TaskGraph& graph, NodeId point, std::int32_t rank) {
    const std::int32_t chunk = nodes_[point].chunk;
    bool behind = false;
    for (TaskId id = graph.first_of[RankId(rank).index()];
         id < graph.first_of[RankId(rank).index() + 1]; ++id) {
      const Task& task = graph.tasks[id];
      if (step_of(*course_.lowered, task).chunk != chunk) continue;
      const NodeId node = graph.end(id);
      if (task.kind == Kind::ReduceGradient && !behind) {
        const auto& after = after_[point];
        behind = std::find(after.begin(), after.end(), node) != after.end();
      }
      const bool adds = is_backward(task.kind) || task.kind == Kind::BackwardWeight;
      if (behind && adds && !reaches({node}, point)) edge(point, node);
    }
  }

  // Sites are looked up only if an edge is forced.
  void index_sites() {
    if (!node_of_site_.empty()) return;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      const std::int32_t rank = nodes_[node].rank;
      for (const Work& work : nodes_[node].works) {
        node_of_site_.try_emplace({rank, work.entry, work.kind}, node);
      }
      for (const TaskId id : nodes_[node].transfers) {
        const Task& task = course_.graph->tasks[id];
        node_of_site_.try_emplace({rank, step_of(*course_.lowered, task).entry, task.kind}, node);
        node_of_end_[{task.kind, task.stage, task.microbatch}] = node;
      }
    }
  }

  [[nodiscard]] NodeId node_of(const MemoryUser& site) const {
    const auto found = node_of_site_.find({site.rank, site.entry, site.kind});
    CAPO_ASSERT(found != node_of_site_.end(), "a hazard's writer and reader are of its course");
    return found->second;
  }

  [[nodiscard]] NodeId other_end_of(TaskId id) const {
    const Task& task = course_.graph->tasks[id];
    const StageId there = course_.map->neighbour(task.kind, task.stage);
    const auto found = node_of_end_.find({other_end(task.kind), there, task.microbatch});
    return found == node_of_end_.end() ? kNoNode : found->second;
  }

  void launch(NodeId id) {
    op_of_[id] = static_cast<std::uint32_t>(program.ops.size());
    auto& waits = program.waits[op_of_[id]] = std::move(waits_of_[id]);
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    const auto first = static_cast<std::uint32_t>(program.parts.size());
    const Node& node = nodes_[id];
    for (const TaskId task : node.begins) begin_transfer(course_.graph->tasks[task]);
    for (const TaskId task : node.transfers) {
      finish_transfer(op_of_[id], node.stream, course_.graph->tasks[task]);
    }
    for (const TaskId task : node.exchanges) {
      course_.graph->end(task) == id ? exchanges_.end(task) : exchanges_.begin(task);
    }
    if (!node.members.empty()) reduce(node);
    exchanges_.cross(id, node.rank);
    for (const Work& work : node.works) {
      if (!joins_call(first, work)) add_work(node, work);
    }
    program.ops.push_back({.stream = node.stream,
                           .first_part = first,
                           .end_part = static_cast<std::uint32_t>(program.parts.size())});
  }

  void reduce(const Node& node) {
    program.parts.push_back({.kind = OpPart::Kind::Reduce,
                             .way = Way::Backward,
                             .rank = node.rank,
                             .to = static_cast<std::uint32_t>(program.reductions.size())});
    Reduction& reduction = program.reductions.emplace_back(Reduction{.chunk = node.chunk});
    auto& streams = program.reduced_on.emplace_back();
    for (const auto& [rank, stream] : node.members) {
      reduction.ranks.push_back(rank);
      streams.push_back(stream);
    }
  }

  // Adds a weight gradient to the call before it, if that is of the same op and has room.
  bool joins_call(std::uint32_t first_part, const Work& work) {
    static_assert(kMostFusedWeights == kMostBatches);
    if (program.parts.size() == first_part) return false;
    OpPart& before = program.parts.back();
    const bool joins = before.kind == OpPart::Kind::Work && in_one_call(before.work, work) &&
                       before.further.size() + 1 < kMostBatches;
    if (joins) before.further.push_back(work);
    return joins;
  }

  void add_work(const Node& node, const Work& work) {
    const std::int32_t rank = node.rank;
    const bool backward = is_backward(work.kind);
    const Way way = backward ? Way::Backward : Way::Forward;
    OpPart part{.kind = OpPart::Kind::Work, .way = way, .rank = rank, .work = work};
    const std::int32_t layers = table_.layers(rank, work.chunk);
    if (work.kind != Kind::BackwardWeight && layers > 0) {
      const std::int32_t last = layers - 1;
      const std::int32_t layer = work.layer == kAllLayers ? (backward ? last : 0) : work.layer;
      part.origin = exchanges_.origin_of(rank, work, layer);
      exchanges_.note_run(rank, work);
    }
    program.parts.push_back(part);
    if (backward && layers > 0) given_out_.note_run(rank, work, node.stream);
  }

  void add_end(OpPart::Kind kind, const Transfer& transfer, End end) {
    if (transfer.from == kNoBuffer) return;
    program.parts.push_back({.kind = kind,
                             .way = transfer.way,
                             .rank = transfer.channel.sender,
                             .from = transfer.from,
                             .to = static_cast<std::uint32_t>(&transfer - program.transfers.data()),
                             .end = end});
  }

  void begin_transfer(const Task& task) {
    const Transfer& transfer = transfer_of(task);
    is_send(task.kind) ? add_end(OpPart::Kind::Send, transfer, End::Send)
                       : add_end(OpPart::Kind::Receive, transfer, End::Receive);
  }

  void finish_transfer(std::uint32_t op, std::uint32_t stream, const Task& task) {
    Transfer& transfer = transfer_of(task);
    const End end = is_send(task.kind) ? End::Send : End::Receive;
    auto& [first, second] = transfer.ends;
    if (first == kNoOp) {
      first = op;
      return add_end(OpPart::Kind::Deliver, transfer, end);
    }
    second = op;
    add_end(OpPart::Kind::Delivered, transfer, end);
    if (program.ops[first].stream != stream) program.waits[op].push_back(first);
  }

  // Each op waits for the one before it, so that no engine runs them in another order.
  void order_as_launched() {
    for (std::uint32_t op = 1; op < program.ops.size(); ++op) {
      if (program.ops[op].stream == program.ops[op - 1].stream) continue;
      auto& waits = program.waits[op];
      if (std::find(waits.begin(), waits.end(), op - 1) == waits.end()) waits.push_back(op - 1);
    }
  }

  const BufferTable& table_;
  const Course& course_;
  Cells cells_;
  Handovers handovers_;
  ExchangesOfProgram exchanges_;
  GivenOut given_out_;
  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> after_;
  std::vector<std::vector<std::uint32_t>> waits_of_;  // by node: ops of other streams
  std::vector<std::uint32_t> op_of_;                  // by node
  std::map<std::pair<std::uint32_t, Way>, std::uint32_t> transfer_at_;
  bool forced_ = false;
  std::map<std::tuple<std::int32_t, std::uint32_t, Kind>, NodeId> node_of_site_;
  std::map<std::tuple<Kind, std::int32_t, std::int32_t>, NodeId> node_of_end_;
};

}  // namespace

std::optional<Program> program_of(const BufferTable& table, const Course& course,
                                  const std::vector<Forced>& forced) {
  Builder builder(table, course);
  for (const Forced& edge : forced) {
    if (!builder.force(edge)) return std::nullopt;
  }
  if (!builder.launch_all()) return std::nullopt;
  return std::move(builder.program);
}

Program program_forcing(const BufferTable& table, const Course& course,
                        const std::vector<Forced>& races) {
  Builder builder(table, course);
  for (const Forced& race : races) builder.force(race);
  CAPO_ASSERT(builder.launch_all(), "edges that close no circle leave an order");
  return std::move(builder.program);
}

}  // namespace capo::run

#include "run/execute/program.h"

#include "core/base/assert.h"
#include "core/graph/meetings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
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
  // An exchange of several ranks has these, and what they send to and fro.
  std::map<std::int32_t, std::uint32_t> crossing;
  std::vector<std::uint32_t> out;
  std::vector<std::uint32_t> back;
};

// The buffer that each work reads of its neighbour on the same rank.
class FedBy final : public CourseVisitor {
 public:
  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock&) override {
    if (fed_by != kNoBuffer) of_[key_of(rank, work)] = fed_by;
  }
  void sent(const Sending&, const Clock&) override {}

  [[nodiscard]] BufferId of(std::int32_t rank, const Work& work) const {
    const auto found = of_.find(key_of(rank, work));
    return found == of_.end() ? kNoBuffer : found->second;
  }

 private:
  std::map<WorkKey, BufferId> of_;
};

class Builder {
 public:
  Builder(const BufferTable& table, const Course& course)
      : table_(table), course_(course), cells_(table), handed_on_(table.ranks()) {
    run_course(table, course, fed_by_);
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
    collect_what_is_left();
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
        meet(graph.tasks[graph.task_of[vertex]], graph.tasks[graph.task_of[to]], nodes_[to]);
      });
    }
    cross_at_meetings(graph);
    program.transfers = transfers_of(table_, course_);
    for (std::uint32_t at = 0; at < program.transfers.size(); ++at) {
      transfer_at_[{program.transfers[at].cell, program.transfers[at].way}] = at;
    }
  }

  // Enters the rank of a member at the point where all perform `collective`. A composite that has
  // several collectives meets others at as many points.
  void meet(const Task& member, const Task& collective, Node& point) {
    if (is_exchange(collective.kind)) point.crossing[member.rank] = member.stream;
    if (collective.kind != Kind::ReduceGradient) return;
    point.chunk = step_of(*course_.lowered, collective).chunk;
    point.members[member.rank] = member.stream;
  }

  // Tells exchanges of several ranks where these meet.
  void cross_at_meetings(const TaskGraph& graph) {
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      for (const NodeId next : after_[node]) {
        if (!graph.is_meeting(next) || nodes_[next].crossing.size() < 2) continue;
        const auto met = collective_of(*course_.lowered, graph.tasks[graph.task_of[next]]);
        for (const TaskId task : nodes_[node].exchanges) {
          if (collective_of(*course_.lowered, graph.tasks[task]) == met) crosses_at_[task] = next;
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
    stream_ = node.stream;
    for (const TaskId task : node.begins) begin_transfer(course_.graph->tasks[task]);
    for (const TaskId task : node.transfers) {
      finish_transfer(op_of_[id], node.stream, course_.graph->tasks[task]);
    }
    for (const TaskId task : node.exchanges) exchange(id, task);
    if (!node.members.empty()) reduce(node);
    if (!node.out.empty() || !node.back.empty()) cross(nodes_[id]);
    for (const Work& work : node.works) {
      if (!joins_call(first, work)) add_work(node.rank, work);
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

  // Exchanges that go out from here for the first time are divided over each other. Which rows lie
  // where is settled with that, so that they find back.
  void cross(Node& point) {
    const auto rank_of = [&](std::uint32_t exchange) {
      return cells_.at(program.exchanges[exchange].cell).rank;
    };
    const auto by_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_of(a) < rank_of(b); };
    std::sort(point.out.begin(), point.out.end(), by_rank);
    std::sort(point.back.begin(), point.back.end(), by_rank);
    std::vector<std::uint32_t> first;
    std::copy_if(point.out.begin(), point.out.end(), std::back_inserter(first),
                 [&](std::uint32_t exchange) { return program.exchanges[exchange].among.empty(); });
    for (const std::uint32_t exchange : first) program.exchanges[exchange].among = first;
    const auto stays = [&](std::uint32_t exchange) {
      return !program.exchanges[exchange].crosses();
    };
    std::erase_if(point.out, stays);
    std::erase_if(point.back, stays);
    if (point.out.empty() && point.back.empty()) return;
    const std::uint32_t any = point.out.empty() ? point.back.front() : point.out.front();
    program.parts.push_back({.kind = OpPart::Kind::Cross,
                             .way = program.exchanges[any].way,
                             .rank = point.rank,
                             .to = static_cast<std::uint32_t>(program.crossings.size())});
    Crossing& crossing = program.crossings.emplace_back(
        Crossing{.out = std::move(point.out), .back = std::move(point.back)});
    for (const auto& [rank, stream] : point.crossing) {
      crossing.ranks.push_back(rank);
      crossing.streams.push_back(stream);
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

  void add_work(std::int32_t rank, const Work& work) {
    const bool backward = is_backward(work.kind);
    const Way way = backward ? Way::Backward : Way::Forward;
    OpPart part{.kind = OpPart::Kind::Work, .way = way, .rank = rank, .work = work};
    const std::int32_t layers = table_.layers(rank, work.chunk);
    if (work.kind != Kind::BackwardWeight && layers > 0) {
      const std::int32_t last = layers - 1;
      const std::int32_t layer = work.layer == kAllLayers ? (backward ? last : 0) : work.layer;
      const std::uint32_t cell = cells_.of(rank, work.chunk, work.microbatch);
      const auto exchanged = exchange_of_.find({cell, layer, way});
      part.origin = exchanged == exchange_of_.end()
                        ? origin_of(rank, work, layer)
                        : Origin{returns_[exchanged->second] ? Origin::Kind::Permuted
                                                             : Origin::Kind::Exchanged,
                                 exchanged->second};
      ran_.insert(key_of(rank, work));
    }
    program.parts.push_back(part);
    if (backward && layers > 0) give_out(rank, work);
  }

  // Tells where a layer of a chunk finds what it reads, if no exchange has moved it.
  [[nodiscard]] Origin origin_of(std::int32_t rank, const Work& work, std::int32_t layer) const {
    const bool backward = is_backward(work.kind);
    const std::int32_t behind = backward ? layer + 1 : layer - 1;
    if (behind >= 0 && behind < table_.layers(rank, work.chunk)) {
      const auto kind = backward ? BufferKind::GradInput : BufferKind::Output;
      return {Origin::Kind::Buffer, table_.id(rank, work.chunk, behind, work.microbatch, kind)};
    }
    if (const BufferId fed = fed_by_.of(rank, work); fed != kNoBuffer) {
      return {Origin::Kind::Buffer, fed};
    }
    const StageMap& map = *course_.map;
    const std::uint32_t cell = cells_.of(rank, work.chunk, work.microbatch);
    const std::int32_t maker =
        map.wired() ? map.neighbour(work.kind, map.stage_of(rank, work.chunk)) : kNoStage;
    return {maker == kNoStage ? Origin::Kind::Given : Origin::Kind::Landing, cell};
  }

  // Collects the grad input of a chunk that no stage stands before, since it leaves the step; if
  // the chunk hands it on, after its send is over.
  void give_out(std::int32_t rank, const Work& work) {
    BufferId handing_on = kNoBuffer;
    const auto each = [&](std::int32_t layer) {
      const BufferId made =
          table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::GradInput);
      if (layer == 0 && is_out(rank, work) && gives_out(rank, work.chunk)) {
        collect(made);  // experts' rows go back from there
      } else if (table_.facts(rank, work.chunk, layer).hands_on) {
        handing_on = made;
      } else if (layer == 0 && leaves(rank, work.chunk)) {
        collect(made);
      }
    };
    if (work.layer != kAllLayers) {
      each(work.layer);
    } else {
      for (std::int32_t layer = table_.layers(rank, work.chunk); layer-- > 0;) each(layer);
    }
    if (handing_on == kNoBuffer) return;
    HandedOn& before = handed_on_[RankId(rank).index()];
    collect(before.buffer);
    before = {.buffer = handing_on, .stream = stream_};
  }

  // Whether a backward reads rows that are with it, and are to go back.
  [[nodiscard]] bool is_out(std::int32_t rank, const Work& work) const {
    const auto found = exchange_of_.find({cells_.of(rank, work.chunk, work.microbatch),
                                          table_.layers(rank, work.chunk) - 1, Way::Backward});
    return work.layer == kAllLayers && found != exchange_of_.end() && returns_[found->second];
  }

  [[nodiscard]] bool gives_out(std::int32_t rank, std::int32_t chunk) const {
    return leaves(rank, chunk) || table_.facts(rank, chunk, 0).hands_on;
  }

  [[nodiscard]] bool leaves(std::int32_t rank, std::int32_t chunk) const {
    const StageMap& map = *course_.map;
    return !map.wired() || map.before(map.stage_of(rank, chunk)) == kNoStage;
  }

  [[nodiscard]] OpPart collecting(BufferId made) const {
    const Buffer of = table_.at(made);
    return {.kind = OpPart::Kind::Collect,
            .way = Way::Backward,
            .rank = of.rank,
            .from = made,
            .to = cells_.of(of.rank, of.chunk, of.microbatch)};
  }
  // Appends to the op at hand.
  void collect(BufferId made) {
    if (made != kNoBuffer) program.parts.push_back(collecting(made));
  }
  // The last op of each other stream of a stream's rank.
  [[nodiscard]] std::vector<std::uint32_t> last_beside(std::uint32_t stream) const {
    std::map<std::uint32_t, std::uint32_t> last;
    for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
      const std::uint32_t other = program.ops[op].stream;
      if (other != stream && program.rank_of_stream[other] == program.rank_of_stream[stream])
        last[other] = op;
    }
    std::vector<std::uint32_t> ops;
    for (const auto& [other, op] : last) ops.push_back(op);
    return ops;
  }
  // Appends to the last op of the stream that made it. If the rank has other streams, an op of its
  // own waits for them, since the step ends behind all that the rank does.
  void collect_what_is_left() {
    for (const HandedOn& left : handed_on_) {
      if (left.buffer == kNoBuffer) continue;
      if (auto others = last_beside(left.stream); !others.empty()) {
        const auto part = static_cast<std::uint32_t>(program.parts.size());
        program.parts.push_back(collecting(left.buffer));
        program.ops.push_back({.stream = left.stream, .first_part = part, .end_part = part + 1});
        program.waits.push_back(std::move(others));
        continue;
      }
      const auto last = std::find_if(program.ops.rbegin(), program.ops.rend(),
                                     [&](const Op& op) { return op.stream == left.stream; });
      program.parts.insert(program.parts.begin() + last->end_part, collecting(left.buffer));
      ++last->end_part;
      std::for_each(program.ops.rbegin(), last, [](Op& op) {
        ++op.first_part;
        ++op.end_part;
      });
    }
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

  // An exchange of several ranks begins at one node and ends at another, with the point between
  // them where the ranks meet; any other is over where it ends.
  void exchange(NodeId id, TaskId task) {
    const Node& node = nodes_[id];
    const bool ends = course_.graph->end(task) == id;
    const auto crosses_at = crosses_at_.find(task);
    if (crosses_at == crosses_at_.end()) {
      if (!ends) return;
      if (const auto moved = begin_exchange(node.rank, task)) end_exchange(*moved);
      return;
    }
    Node& point = nodes_[crosses_at->second];
    if (ends) {
      if (const auto begun = begun_.find(task); begun != begun_.end()) end_exchange(begun->second);
      return;
    }
    const auto moved = begin_exchange(node.rank, task);
    if (!moved) return;
    begun_[task] = *moved;
    (moved->kind == OpPart::Kind::Return ? point.back : point.out).push_back(moved->to);
  }

  void end_exchange(const OpPart& moved) {
    if (moved.kind == OpPart::Kind::Return) program.parts.push_back(moved);
  }

  // Permutes, or returns what is to be put behind the point where ranks meet; nullopt if it moves
  // nothing.
  std::optional<OpPart> begin_exchange(std::int32_t rank, TaskId id) {
    const Task& task = course_.graph->tasks[id];
    const Step& step = step_of(*course_.lowered, task);
    const std::int32_t layers = table_.layers(rank, step.chunk);
    if (layers == 0 || step.microbatch >= table_.microbatches()) return std::nullopt;
    const bool forward = task.kind == Kind::DispatchForward || task.kind == Kind::CombineForward;
    const Way way = forward ? Way::Forward : Way::Backward;
    const bool apart = takes_layers_apart();
    const Work work{.chunk = step.chunk,
                    .microbatch = step.microbatch,
                    .layer = apart ? static_cast<std::int32_t>(step.layer) : kAllLayers,
                    .kind = forward ? Kind::Forward : backward_of(rank, step)};
    const bool outgoing = ran_.contains(key_of(rank, work));
    if (outgoing && !apart) {
      if (auto part = return_of_experts(rank, work, way)) return part;
    }
    // The grad input of a backward that has run is not the exchange's to change.
    if (outgoing && !forward) return std::nullopt;
    const std::int32_t end = forward == outgoing ? layers - 1 : 0;
    const std::int32_t layer = apart ? work.layer : (forward ? end : layers - 1);
    const std::uint32_t cell = cells_.of(rank, step.chunk, step.microbatch);
    const BufferId output =
        outgoing ? table_.id(rank, step.chunk, layer, step.microbatch, BufferKind::Output)
                 : kNoBuffer;
    const auto [at, first] =
        (outgoing ? exchange_behind_ : exchange_of_)
            .try_emplace({cell, layer, way}, static_cast<std::uint32_t>(program.exchanges.size()));
    if (first) {
      program.exchanges.push_back({.cell = cell,
                                   .layer = layer,
                                   .way = way,
                                   .behind = outgoing,
                                   .route = route_of(cell, way, at->second)});
      returns_.push_back(false);
    }
    const bool returns = returns_[at->second];
    returns_[at->second] = !returns;
    OpPart part{.kind = returns ? OpPart::Kind::Return : OpPart::Kind::Permute,
                .way = way,
                .rank = rank,
                .from = output,
                .to = at->second};
    if (returns) return part;
    part.origin = outgoing ? Origin{Origin::Kind::Buffer, output}
                  : first  ? origin_of(rank, work, layer)
                           : Origin{Origin::Kind::Exchanged, at->second};
    program.parts.push_back(part);
    return part;
  }

  // Brings back what a chunk made of rows that are still with it; nullopt if none are.
  std::optional<OpPart> return_of_experts(std::int32_t rank, const Work& work, Way way) {
    const bool forward = way == Way::Forward;
    const std::int32_t last = table_.layers(rank, work.chunk) - 1;
    const std::uint32_t cell = cells_.of(rank, work.chunk, work.microbatch);
    const auto out = exchange_of_.find({cell, forward ? 0 : last, way});
    if (out == exchange_of_.end() || !returns_[out->second]) return std::nullopt;
    returns_[out->second] = false;
    Exchange& exchange = program.exchanges[out->second];
    exchange.made = table_.id(rank, work.chunk, forward ? last : 0, work.microbatch,
                              forward ? BufferKind::Output : BufferKind::GradInput);
    exchange.leaves = !forward && gives_out(rank, work.chunk);
    return OpPart{.kind = OpPart::Kind::Return,
                  .way = way,
                  .rank = rank,
                  .from = exchange.leaves ? kNoBuffer : exchange.made,
                  .to = out->second};
  }

  // Gradients of rows that were with experts go to them by the way of the rows.
  [[nodiscard]] std::uint32_t route_of(std::uint32_t cell, Way way, std::uint32_t own) const {
    if (way == Way::Forward) return own;
    const auto before = exchange_of_.find({cell, 0, Way::Forward});
    const bool went =
        before != exchange_of_.end() && program.exchanges[before->second].around_experts();
    return went ? before->second : own;
  }

  // Tells whether the course runs the layers of a chunk one by one.
  [[nodiscard]] bool takes_layers_apart() {
    if (!apart_) {
      apart_ = std::any_of(
          course_.lowered->ranks.begin(), course_.lowered->ranks.end(), [](const auto& steps) {
            return std::any_of(steps.begin(), steps.end(),
                               [](const Step& step) { return step.part != Part::Whole; });
          });
    }
    return *apart_;
  }

  // A backward of a mixed chunk may be either half.
  [[nodiscard]] Kind backward_of(std::int32_t rank, const Step& step) const {
    for (const Step& other : course_.lowered->ranks[RankId(rank).index()]) {
      if (is_backward(other.kind) && other.chunk == step.chunk &&
          other.microbatch == step.microbatch) {
        return other.kind;
      }
    }
    return Kind::Backward;
  }

  // Each op waits for the one before it, so that no engine runs them in another order.
  void order_as_launched() {
    for (std::uint32_t op = 1; op < program.ops.size(); ++op) {
      if (program.ops[op].stream == program.ops[op - 1].stream) continue;
      auto& waits = program.waits[op];
      if (std::find(waits.begin(), waits.end(), op - 1) == waits.end()) waits.push_back(op - 1);
    }
  }

  using ExchangeKey = std::tuple<std::uint32_t, std::int32_t, Way>;

  const BufferTable& table_;
  const Course& course_;
  Cells cells_;
  FedBy fed_by_;
  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> after_;
  std::vector<std::vector<std::uint32_t>> waits_of_;  // by node: ops of other streams
  std::vector<std::uint32_t> op_of_;                  // by node
  // A buffer that may still be on its way, and the stream that it was made on.
  struct HandedOn {
    BufferId buffer = kNoBuffer;
    std::uint32_t stream = 0;
  };
  std::vector<HandedOn> handed_on_;  // by rank
  std::uint32_t stream_ = 0;         // of the op at hand
  std::map<std::pair<std::uint32_t, Way>, std::uint32_t> transfer_at_;
  std::map<ExchangeKey, std::uint32_t> exchange_of_;      // before a work
  std::map<ExchangeKey, std::uint32_t> exchange_behind_;  // after one
  std::vector<bool> returns_;            // by exchange: whether its next part is a Return
  std::map<TaskId, NodeId> crosses_at_;  // exchanges of several ranks, with where these meet
  std::map<TaskId, OpPart> begun_;       // the same ones, until they end
  std::set<WorkKey> ran_;
  std::optional<bool> apart_;
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

// A certificate of an accepted step under a plan without hazards, capo's own or another's: what a
// program that trusts no line of capo's can check.
//
//   {"bytes": {"0 pool": 4096}, "vertices": 8, "streams": [[0,1,2]], "edges": [[2,5]],
//    "order": [0,1,...],
//    "buffers": [{"rank": 0, "offset": 0, "bytes": 64, "uses": [[0,0,0,[0]]], ...}],
//    "shared": [{"before": 3, "after": 9, "paths": [[1,5,6]]}]}
//
// A linear order of all vertices of the task graph shows that nothing waits for itself. For each
// pair of buffers of which one takes over memory of the other, paths show that every use of the one
// is over before the other is written first. A buffer that is a neighbour's tensor stands with that
// (`also`), and where a graph makes what is then copied has a line of its own (`made`). If the step
// never ends, a circle of edges shows that:
//
//   {"vertices": 8, "streams": [...], "edges": [[2,5],[5,2]], "circle": [2,5], "tasks": [...]}
//
// docs/schema/certificate.schema.json has the members, tools/check_certificate.py checks them.
// Tested by certificate_test.cpp and tests/schema/certificate_test.py.

#include "core/rules/certificate.h"

#include "core/base/assert.h"
#include "core/plan/uses.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/task_words.h"
#include "core/text/json_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {

namespace {

constexpr Vertex kNoVertex = 0xffffffff;
constexpr std::uint32_t kNoStream = 0xffffffff;

// The vertices of a step, each stream's in a chain of edges, and the edges between streams.
struct Steps {
  std::vector<std::vector<Vertex>> streams;
  std::vector<std::vector<Vertex>> next;  // by vertex: all edges, also those of its chain
  std::vector<Vertex> order;              // each vertex behind those that it waits for
  std::vector<std::uint32_t> place;       // by vertex, in `order`
  // Each vertex has its stream and position there; one where a collective meets has kNoStream.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> at;
  // Streams and positions, as the course counts them, have the first and the last vertex of a task.
  std::vector<std::vector<std::pair<Vertex, Vertex>>> tasks;

  [[nodiscard]] std::pair<Vertex, Vertex> task(Point point) const {
    return tasks[point.stream][point.position - 1];
  }
  // Whether a vertex comes before another on its stream.
  [[nodiscard]] bool hops(Vertex from, Vertex to) const {
    return at[from].first == at[to].first && at[from].second < at[to].second;
  }
  // A vertex and those behind it on its stream.
  [[nodiscard]] std::span<const Vertex> from(const Vertex& vertex) const {
    const auto [stream, position] = at[vertex];
    if (stream == kNoStream) return {&vertex, 1};
    return std::span(streams[stream]).subspan(position);
  }
};

Steps steps_of(const TaskGraph& graph) {
  Steps steps{.streams = std::vector<std::vector<Vertex>>(graph.streams.size()),
              .next = std::vector<std::vector<Vertex>>(graph.task_of.size()),
              .tasks = std::vector<std::vector<std::pair<Vertex, Vertex>>>(graph.streams.size())};
  // A composite whose members are on several streams has its vertices on the first of these alone,
  // and what is behind it on another one begins a chain of its own.
  std::vector<bool> placed(graph.task_of.size());
  std::vector<std::size_t> chain_of(graph.streams.size());
  std::iota(chain_of.begin(), chain_of.end(), std::size_t{0});
  std::vector<bool> ended(graph.streams.size());
  const auto place = [&](std::uint32_t stream, Vertex vertex) {
    if (placed[vertex]) {
      ended[stream] = true;
      return;
    }
    placed[vertex] = true;
    if (ended[stream]) {
      ended[stream] = false;
      chain_of[stream] = steps.streams.size();
      steps.streams.emplace_back();
    }
    steps.streams[chain_of[stream]].push_back(vertex);
  };
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const std::uint32_t stream = graph.tasks[id].stream;
    auto& tasks = steps.tasks[stream];
    if (!tasks.empty() && tasks.back().first == graph.start(id)) continue;
    tasks.emplace_back(graph.start(id), graph.end(id));
    place(stream, graph.start(id));
    if (graph.end(id) != graph.start(id)) place(stream, graph.end(id));
  }
  for (Vertex v = 0; v < graph.task_of.size(); ++v) {
    graph.edges.for_each_out(v, [&](Vertex to, EdgeKind) { steps.next[v].push_back(to); });
  }
  return steps;
}

// Without a task graph every rank is one stream.
Steps steps_of(const std::vector<std::vector<Work>>& work) {
  Steps steps;
  for (const auto& rank : work) {
    auto& stream = steps.streams.emplace_back();
    auto& tasks = steps.tasks.emplace_back();
    for (const Work& of : rank) {
      if (of.joins) continue;
      const auto vertex = static_cast<Vertex>(steps.next.size());
      steps.next.emplace_back();
      if (!stream.empty()) steps.next[stream.back()].push_back(vertex);
      stream.push_back(vertex);
      tasks.emplace_back(vertex, vertex);
    }
  }
  return steps;
}

// Returns by vertex how many others it waits for that are in no order; none if no edges close a
// circle.
std::vector<std::uint32_t> put_in_order(Steps& steps) {
  std::vector<std::uint32_t> waits_for(steps.next.size());
  for (const auto& next : steps.next) {
    for (const Vertex v : next) ++waits_for[v];
  }
  std::deque<Vertex> ready;
  for (Vertex v = 0; v < steps.next.size(); ++v) {
    if (waits_for[v] == 0) ready.push_back(v);
  }
  steps.place.resize(steps.next.size());
  for (; !ready.empty(); ready.pop_front()) {
    const Vertex v = ready.front();
    steps.place[v] = static_cast<std::uint32_t>(steps.order.size());
    steps.order.push_back(v);
    for (const Vertex next : steps.next[v]) {
      if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
  steps.at.assign(steps.next.size(), {kNoStream, 0});
  for (std::uint32_t s = 0; s < steps.streams.size(); ++s) {
    for (std::uint32_t k = 0; k < steps.streams[s].size(); ++k)
      steps.at[steps.streams[s][k]] = {s, k};
  }
  return waits_for;
}

// A circle of edges among the vertices that wait; each of them waits for one that does.
std::vector<Vertex> circle_of(const Steps& steps, const std::vector<std::uint32_t>& waits_for) {
  std::vector<Vertex> before(steps.next.size(), kNoVertex);
  Vertex at = kNoVertex;
  for (Vertex v = 0; v < steps.next.size(); ++v) {
    if (waits_for[v] == 0) continue;
    for (const Vertex next : steps.next[v]) before[next] = v;
    at = v;
  }
  std::vector<bool> seen(steps.next.size());
  std::vector<Vertex> walk;
  for (; !seen[at]; at = before[at]) {
    seen[at] = true;
    walk.push_back(at);
  }
  walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), at));
  std::reverse(walk.begin(), walk.end());
  return walk;
}

// The graph's members of a certificate.
std::string graph_text(const Steps& steps) {
  std::string out = fmt::format("\"vertices\": {},\n\"streams\": [", steps.next.size());
  const char* comma = "";
  for (const auto& stream : steps.streams) {
    out += fmt::format("{}\n[{}]", std::exchange(comma, ","), fmt::join(stream, ","));
  }
  out += "],\n\"edges\": [";
  comma = "";
  for (Vertex v = 0; v < steps.next.size(); ++v) {
    for (const Vertex next : steps.next[v])
      out += fmt::format("{}[{},{}]", std::exchange(comma, ","), v, next);
  }
  return out + "]";
}

// A use of a buffer by its vertex. Within one piece of work the layers run one after another.
struct UseAt {
  Vertex vertex;
  std::uint32_t work;        // a number of its own for each piece of work and each send
  std::uint32_t layer;       // 0: what the work is fed is copied in; its layers run from 1 on
  std::vector<Vertex> over;  // the use is over with any of these
};

class Uses final : public UseVisitor {
 public:
  Uses(const BufferTable& table, const Plan& plan, const Steps& steps)
      : UseVisitor(table), of(table.all()), plan_(plan), steps_(steps) {}

  std::vector<std::vector<UseAt>> of;  // by buffer, those of a tensor with its maker

 private:
  void use(const BufferUse& found) override {
    const auto [begin, end] = steps_.task(found.at);
    UseAt use{.vertex = begin, .work = found.number, .layer = found.layer, .over = {begin}};
    if (found.received) use.over = {end};
    if (found.received && *found.received != found.at)
      use.over.push_back(steps_.task(*found.received).second);
    of[plan_.tensor_of(found.buffer)].push_back(std::move(use));
  }

  const Plan& plan_;
  const Steps& steps_;
};

// Finds paths along edges and streams. Each is short: it names no vertex between those where it
// comes to a stream and leaves it.
class Paths {
 public:
  explicit Paths(const Steps& steps) : steps_(steps), come_from_(steps.next.size(), kNoVertex) {}

  // A path from one of `from` to `to`, which waits for one of them.
  std::vector<Vertex> find(const std::vector<Vertex>& from, Vertex to) {
    std::deque<Vertex> reached;
    for (const Vertex v : from) reach(v, v, reached);
    for (; come_from_[to] == kNoVertex; reached.pop_front()) {
      CAPO_ASSERT(!reached.empty(), "what takes memory over waits until it is free");
      go_on(reached.front(), to, reached);
    }
    std::vector<Vertex> path{to};
    while (come_from_[path.back()] != path.back()) path.push_back(come_from_[path.back()]);
    std::reverse(path.begin(), path.end());
    for (const Vertex v : std::exchange(seen_, {})) come_from_[v] = kNoVertex;
    return path;
  }

 private:
  // Notes where a vertex was come to from; false if somebody has been there.
  bool come(Vertex v, Vertex from) {
    if (come_from_[v] != kNoVertex) return false;
    come_from_[v] = from;
    seen_.push_back(v);
    return true;
  }

  void reach(Vertex v, Vertex from, std::deque<Vertex>& reached) {
    if (come(v, from)) reached.push_back(v);
  }

  // Goes on along the stream of a vertex, and along the edges that leave the stream, as far as
  // there is a way to `to`. What others have come to they go on from.
  void go_on(Vertex begin, Vertex to, std::deque<Vertex>& reached) {
    for (const Vertex v : steps_.from(begin)) {
      if (steps_.place[v] > steps_.place[to] || (v != begin && !come(v, begin))) return;
      for (const Vertex next : steps_.next[v]) {
        if (!steps_.hops(v, next) && steps_.place[next] <= steps_.place[to])
          reach(next, v, reached);
      }
    }
  }

  const Steps& steps_;
  std::vector<Vertex> come_from_;  // by vertex
  std::vector<Vertex> seen_;
};

// A buffer of a certificate: where it lies and who uses it, or where a graph makes it first.
struct Placed {
  BufferId buffer = kNoBuffer;
  std::int64_t address = kNowhere;
  std::vector<UseAt> uses;
  bool made = false;
};

// The memory of one rank, as buffers take it over from each other, by their numbers.
class Memory {
 public:
  // Returns the buffers that lose memory.
  std::vector<std::size_t> take(std::size_t number, std::int64_t begin, std::int64_t end) {
    std::vector<std::size_t> losers;
    auto held = held_.lower_bound(begin);
    if (held != held_.begin() && std::prev(held)->second.end > begin) --held;
    while (held != held_.end() && held->first < end) {
      const auto [from, of] = *held;
      losers.push_back(of.owner);
      held = held_.erase(held);
      if (from < begin) held_[from] = {of.owner, begin};
      if (of.end > end) held = held_.insert({end, {of.owner, of.end}}).first;
    }
    held_[begin] = {number, end};
    std::sort(losers.begin(), losers.end());
    losers.erase(std::unique(losers.begin(), losers.end()), losers.end());
    return losers;
  }

 private:
  struct Held {
    std::size_t owner;
    std::int64_t end;
  };
  std::map<std::int64_t, Held> held_;
};

class CertificateWriter {
 public:
  CertificateWriter(const PlanView& view, Steps steps)
      : view_(view), steps_(std::move(steps)), paths_(steps_) {
    Uses uses(view.table(), view.plan(), steps_);
    run_course(view.table(), view.course(), uses);
    uses.end();
    place_all(std::move(uses.of));
  }

  std::string text() {
    std::string out = fmt::format("{{\"schema\": 1,\n\"plan\": \"{}\",\n", name_of(view_.kind()));
    out += fmt::format("\"bytes\": {{{}}},\n", fmt::join(bytes_needed(), ", "));
    out += graph_text(steps_);
    out += fmt::format(",\n\"order\": [{}],\n\"buffers\": [", fmt::join(steps_.order, ","));
    const char* comma = "";
    for (const Placed& placed : placed_) out += std::exchange(comma, ",") + text_of(placed);
    out += "],\n\"shared\": [";
    comma = "";
    std::vector<Memory> memory(view_.table().ranks());
    for (std::size_t k = 0; k < placed_.size(); ++k) {
      const std::int64_t begin = placed_[k].address;
      const Buffer of = view_.table().at(placed_[k].buffer);
      for (const std::size_t loser :
           memory[as_index(of.rank)].take(k, begin, begin + view_.table().bytes(of)))
        out += std::exchange(comma, ",") + text_of(loser, k);
    }
    return out + "]}\n";
  }

 private:
  // The buffers that have memory, in the order of their first uses, whose numbers they get.
  void place_all(std::vector<std::vector<UseAt>> uses_of) {
    const Plan& plan = view_.plan();
    for (BufferId buffer = 0; buffer < view_.table().all(); ++buffer) {
      auto& uses = uses_of[buffer];
      if (uses.empty() || plan.at(buffer) == kNowhere) continue;
      std::stable_sort(uses.begin(), uses.end(),
                       [this](const UseAt& a, const UseAt& b) { return key(a) < key(b); });
      if (plan.made_at(buffer) != kNowhere)
        placed_.push_back({buffer, plan.made_at(buffer), {uses.front()}, true});
      placed_.push_back({buffer, plan.at(buffer), std::move(uses), false});
    }
    std::stable_sort(placed_.begin(), placed_.end(), [this](const Placed& a, const Placed& b) {
      return key(a.uses.front()) < key(b.uses.front());
    });
    for (BufferId buffer = 0; buffer < plan.tensor.size(); ++buffer) {
      if (plan.tensor[buffer] != buffer) also_[plan.tensor[buffer]].push_back(buffer);
    }
  }

  // "0 pool": 4096, for each region of each rank that holds any buffer.
  [[nodiscard]] std::vector<std::string> bytes_needed() const {
    std::map<std::pair<std::int32_t, std::string_view>, std::int64_t> ends;
    for (const Placed& placed : placed_) {
      const Buffer of = view_.table().at(placed.buffer);
      std::int64_t& end = ends[{of.rank, name_of(region_of(placed.address))}];
      end = std::max(end, offset_of(placed.address) + view_.table().bytes(of));
    }
    std::vector<std::string> texts;
    texts.reserve(ends.size());
    for (const auto& [region, end] : ends)
      texts.push_back(fmt::format("\"{} {}\": {}", region.first, region.second, end));
    return texts;
  }

  [[nodiscard]] std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> key(
      const UseAt& use) const {
    return {steps_.place[use.vertex], use.work, use.layer};
  }

  static std::string text_of(const UseAt& use) {
    return fmt::format("[{},{},{},[{}]]", use.vertex, use.work, use.layer,
                       fmt::join(use.over, ","));
  }

  static std::string name_text(const Buffer& of) {
    return fmt::format(
        "\"rank\": {}, \"chunk\": {}, \"layer\": {}, \"microbatch\": {}, \"kind\": \"{}\"", of.rank,
        of.chunk, of.layer, of.microbatch, name_of(of.kind));
  }

  // This has members only where a buffer is made elsewhere, or is no tensor of its own.
  [[nodiscard]] std::string more_text(const Placed& placed) const {
    if (placed.made) return "\"made\": true, ";
    const auto also = also_.find(placed.buffer);
    if (also == also_.end()) return "";
    std::vector<std::string> names;
    for (const BufferId buffer : also->second)
      names.push_back("{" + name_text(view_.table().at(buffer)) + "}");
    return fmt::format("\"also\": [{}], ", fmt::join(names, ", "));
  }

  // Paths to those uses that do not stand behind the first one on its stream.
  std::string text_of(const Placed& placed) {
    const Buffer of = view_.table().at(placed.buffer);
    std::string out =
        fmt::format("\n{{{}, \"region\": \"{}\", \"offset\": {}, \"bytes\": {}, {}\"uses\": [",
                    name_text(of), name_of(region_of(placed.address)), offset_of(placed.address),
                    view_.table().bytes(of), more_text(placed));
    const char* comma = "";
    for (const UseAt& use : placed.uses) out += std::exchange(comma, ",") + text_of(use);
    out += "], \"paths\": [";
    comma = "";
    for (const UseAt& use : placed.uses) {
      const Vertex first = placed.uses.front().vertex;
      if (use.vertex == first || steps_.hops(first, use.vertex)) continue;
      out += std::exchange(comma, ",") + path({first}, use.vertex);
    }
    return out + "]}";
  }

  // Paths from those uses of the loser that do not stand before the taker on its stream.
  std::string text_of(std::size_t loser, std::size_t taker) {
    std::string out = fmt::format("\n{{\"before\": {}, \"after\": {}, \"paths\": [", loser, taker);
    const UseAt& first = placed_[taker].uses.front();
    const char* comma = "";
    for (const UseAt& use : placed_[loser].uses) {
      // Two pieces of work of a composite share a vertex, and no memory.
      const bool within = use.vertex == first.vertex;
      const bool plain = std::any_of(use.over.begin(), use.over.end(),
                                     [&](Vertex over) { return steps_.hops(over, first.vertex); });
      if (!within && !plain) out += std::exchange(comma, ",") + path(use.over, first.vertex);
    }
    return out + "]}";
  }

  std::string path(const std::vector<Vertex>& from, Vertex to) {
    return fmt::format("[{}]", fmt::join(paths_.find(from, to), ","));
  }

  const PlanView& view_;
  Steps steps_;
  Paths paths_;
  std::vector<Placed> placed_;
  std::map<BufferId, std::vector<BufferId>> also_;  // by maker: those that are its tensor too
};

std::string deadlock_certificate(const Context& context, const Wiring& wiring,
                                 const TaskGraph& graph) {
  Steps steps = steps_of(graph);
  const auto waits_for = put_in_order(steps);
  const std::vector<Vertex> circle = circle_of(steps, waits_for);
  std::vector<std::string> tasks;
  for (const Vertex v : circle) {
    const TaskId task = graph.task_of[v];
    tasks.push_back(json_quoted(words::task_placed(context, wiring, graph, task)));
  }
  return fmt::format("{{\"schema\": 1,\n{},\n\"circle\": [{}],\n\"tasks\": [{}]}}\n",
                     graph_text(steps), fmt::join(circle, ","), fmt::join(tasks, ",\n"));
}

bool has_circle(const TaskGraph& graph, const Execution& execution) {
  return !execution.finishes() && !shortest_cycle(graph, execution).empty();
}

}  // namespace

std::optional<std::string> deadlock_certificate_of(const Context& context) {
  if (!orders_are_clean(context)) return std::nullopt;
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_matter()) continue;
    const TaskGraph& transfers = wiring->transfers().graph;
    if (has_circle(transfers, wiring->execution()))
      return deadlock_certificate(context, *wiring, transfers);
    const TaskGraph& uses = wiring->first_uses().graph;
    if (has_circle(uses, wiring->making())) return deadlock_certificate(context, *wiring, uses);
  }
  return std::nullopt;
}

std::string certificate_of(const PlanView& view) {
  CAPO_ASSERT(view.hazards().empty(), "only a plan that hurts nobody is certified");
  const Course& course = view.course();
  Steps steps = course.graph != nullptr ? steps_of(*course.graph) : steps_of(course.work);
  put_in_order(steps);
  CAPO_ASSERT(steps.order.size() == steps.next.size(), "an accepted step finishes");
  return CertificateWriter(view, std::move(steps)).text();
}

}  // namespace capo

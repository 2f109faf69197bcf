// The rules about stages that read each other's outputs, on one rank and across ranks.
//
//   2 1 -1 -2               chunk 2 runs forward before chunk 1, whose output is its input: D03
//
// How ranks communicate is left out here: what goes wrong there is for transfers.cpp and
// deadlock.cpp. Tested by stages_test.cpp and tests/corpus/rules/D03 and D04.

#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace capo::rules {

namespace {

class StageOrder {
 public:
  StageOrder(const Context& context, const Wiring& wiring, Findings& out)
      : context_(context), wiring_(wiring), out_(out) {}

  // Finds each computation whose input a later one of the same rank makes.
  void find_against_the_order() {
    wiring_.direct().for_each_task_edge([&](const TaskEdge& edge) {
      const Task& made = wiring_.direct().tasks[edge.before];
      const Task& reader = wiring_.direct().tasks[edge.after];
      // Other rules judge within a stage, and the next function judges exchanges.
      const bool of_another = edge.kind == EdgeKind::Data && reader.stage != made.stage &&
                              !is_exchange(reader.kind) && !is_exchange(made.kind);
      if (of_another && reader.rank == made.rank && reader.step < made.step)
        report(reading_of(reader, made), false);
    });
  }

  // Finds forwards and backwards with exchanges of tokens: the first entry reads, the last one
  // makes.
  void find_exchanges_against_the_order(std::int32_t rank) {
    const OrderView& order = context_.order_of(wiring_, rank);
    const auto passes = passes_of(order);
    for (const auto& [pass, own] : passes) {
      const Kind kind = pass.forward ? Kind::Forward : Kind::Backward;
      const StageId stage = wiring_.map().neighbour(kind, pass.stage);
      const auto made = passes.find({pass.forward, stage, pass.microbatch});
      if (made == passes.end() || !(own.exchanges || made->second.exchanges)) continue;
      const std::size_t needed = made->second.last;
      const bool together = words::run_together(order, own.first, needed);
      if (own.first < needed || together)
        report({rank, own.first, needed, pass.forward, stage, pass.microbatch}, together);
    }
  }

  // Members of one composite run side by side, so that neither can read the other.
  void find_in_composites() {
    const TaskGraph& graph = wiring_.direct();
    for (TaskId first = 0; first < graph.tasks.size(); ++first) {
      const Vertex composite = graph.tasks[first].start;
      if (graph.task_of[composite] != first || !graph.tasks[first].member) continue;
      std::multimap<Pass, TaskId> made;
      graph.for_each_task(composite, [&](TaskId task) {
        if (is_pass(graph.tasks[task])) made.emplace(pass_of(graph.tasks[task]), task);
      });
      graph.for_each_task(composite, [&](TaskId reading) {
        const Task& reader = graph.tasks[reading];
        if (!is_pass(reader)) return;
        const auto [begin, end] = made.equal_range(read_by(reader));
        for (auto making = begin; making != end; ++making) {
          report(reading_of(reader, graph.tasks[making->second]), true);
        }
      });
    }
  }

 private:
  // A forward or backward of a stage.
  struct Pass {
    bool forward;
    std::int32_t stage;
    std::int32_t microbatch;

    friend auto operator<=>(const Pass&, const Pass&) = default;
  };

  [[nodiscard]] static bool is_pass(const Task& task) {
    return task.kind == Kind::Forward || is_backward(task.kind);
  }
  [[nodiscard]] static Pass pass_of(const Task& task) {
    return {task.kind == Kind::Forward, task.stage, task.microbatch};
  }
  // The forward or backward whose output the task reads.
  [[nodiscard]] Pass read_by(const Task& task) const {
    return {task.kind == Kind::Forward, wiring_.map().neighbour(task.kind, task.stage),
            task.microbatch};
  }

  // An entry, and the one of the same rank that makes what it reads.
  struct Reading {
    std::int32_t rank;
    std::size_t at;
    std::size_t needed;
    bool forward;
    std::int32_t made_by;  ///< the stage
    std::int32_t microbatch;
  };

  [[nodiscard]] Reading reading_of(const Task& reader, const Task& made) const {
    const auto& steps = wiring_.lowered_for(wiring_.direct()).ranks[RankId(reader.rank).index()];
    return {
        reader.rank, steps[reader.step].entry, steps[made.step].entry, reader.kind == Kind::Forward,
        made.stage,  made.microbatch};
  }

  // The entries of a forward or backward, where exchanges of tokens are among them.
  struct Ends {
    std::size_t first;
    std::size_t last;
    bool exchanges;
  };

  [[nodiscard]] std::map<Pass, Ends> passes_of(const OrderView& order) const {
    std::map<Pass, Ends> passes;
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      const bool exchanges = is_exchange(entry.kind);
      const bool forward = entry.kind == Kind::Forward || is_forward_exchange(entry.kind);
      if (!exchanges && !forward && !is_backward(entry.kind)) continue;
      const std::int32_t stage = wiring_.map().stage_of(order.rank, entry.chunk);
      Ends& ends =
          passes.try_emplace({forward, stage, entry.microbatch}, Ends{at, at, false}).first->second;
      ends.last = at;
      ends.exchanges = ends.exchanges || exchanges;
    }
    return passes;
  }

  void report(const Reading& reading, bool together) {
    if (context_.judged_before(wiring_, {reading.rank})) return;
    const OrderView& order = context_.order_of(wiring_, reading.rank);
    const auto& [rank, at, needed, forward, made_by, microbatch] = reading;
    if (!out_.found_at(order.entries[at].span())) return;
    const char* what = forward ? "output" : "gradient";
    Diagnostic finding;
    finding.labels = {{order.entries[at].span(), ""}};
    if (together) {
      const std::string own = member(order, at);
      const std::string other = member(order, needed);
      finding.message =
          fmt::format("{} at index {}{} runs together with {}, whose {} it reads", own,
                      words::index_of(order, at), words::of_order(context_, order), other, what);
      finding.help.text =
          fmt::format("take {} out of the composite and put it behind {}", own, other);
    } else {
      const std::string other = fmt::format("{} {}", words::quoted(context_, order.entries[needed]),
                                            words::later(order, at, needed));
      finding.message = fmt::format("{} runs before {}, whose {} it reads",
                                    words::placed(context_, order, at), other, what);
      finding.help.text =
          fmt::format("move {} behind {}", words::quoted(context_, order.entries[at]), other);
    }
    if (order.entries[at].span() != order.entries[needed].span()) {
      finding.labels.push_back({order.entries[needed].span(),
                                fmt::format("stage {} runs {} for microbatch {} here", made_by,
                                            forward ? "forward" : "backward", microbatch)});
    }
    finding.witness = {.kind = WitnessKind::Path,
                       .tasks = {words::reference(context_, order, at),
                                 words::reference(context_, order, needed)}};
    out_.report(std::move(finding));
  }

  // A member of a composite by itself: a table's cell holds all of them.
  [[nodiscard]] std::string member(const OrderView& order, std::size_t at) const {
    return fmt::format("`{}`", words::entry_text(context_, order, order.entries[at].action()));
  }

  const Context& context_;
  const Wiring& wiring_;
  Findings& out_;
};

// A stage runs after the stage whose output it reads: forwards in the order of the stages,
// backwards against it.
//
//   2 1 -1 -2               chunk 2 runs forward before chunk 1, whose output is its input
//
// The rule judges what one rank holds, if chunks are wired to each other; what several ranks make
// impossible together is dependency_cycle's. Members of a composite run side by side, so that none
// of them can read another. Exchanges of tokens belong to the forward or backward that they stand
// beside: nothing is over before its last one.
void stage_order(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    StageOrder rule(context, *wiring, out);
    if (has_composites(wiring->schedule())) rule.find_in_composites();
    if (!wiring->executable()) rule.find_against_the_order();
    if (!has_exchanges(wiring->schedule())) continue;
    for (std::size_t r = 0; r < wiring->schedule().ranks.size(); ++r)
      rule.find_exchanges_against_the_order(static_cast<std::int32_t>(r));
  }
}

// The orders of all ranks together can be executed: no computation waits, around some corner, for
// itself.
//
//   rank 0: F1.0 B1.0 F1.1 B1.1         rank 0 wants microbatch 0 back before it sends 1,
//   rank 1: F1.1 F1.0 B1.0 B1.1         and rank 1 wants 1 before it works on 0
//
// Each order may be right by itself. The finding stands at the first computation that never runs;
// the witness is the shortest cycle: any distance along one
// rank's order counts as one step. If a rank contradicts itself, stage_order has said so and this
// rule is silent.
void dependency_cycle(const Context& context, Findings& out) {
  if (context.schedule().ranks.size() < 2) return;
  for (const auto& wiring : context.wirings()) {
    // A composite by itself may be what cannot be executed: stage_order names it.
    if (wiring->executable() || wiring->direct_execution().finishes()) continue;
    const TaskGraph& graph = wiring->direct();
    const auto cycle = shortest_cycle(graph, wiring->direct_execution());
    const std::vector<std::int32_t> ranks = ranks_of(graph, cycle);
    if (ranks.size() < 2 || context.judged_before(*wiring, ranks)) continue;
    const TaskId first = first_stuck(graph, wiring->direct_execution());
    const auto place = [&] { return words::task_span(context, *wiring, graph, first); };
    if (!out.found_at(place)) continue;
    Diagnostic finding;
    finding.message =
        fmt::format("{} wait for each other: their orders cannot be {} together",
                    words::list_of(ranks), wiring->replay() ? "replayed" : "executed");
    finding.witness.kind = WitnessKind::Path;
    words::describe_waits(context, *wiring, graph, cycle, first, finding);
    finding.help.text = "move one of these in its rank's order, so that the circle opens";
    out.report(std::move(finding));
  }
}

constexpr Rule kStagesRules[] = {
    {.id = "D03",
     .name = "stage-order",
     .title = "a stage before the stage whose output it reads",
     .family = Family::Dependencies,
     .pass = Pass::Stages,
     .check = stage_order,
     .draws = DrawnCycle::AgainstTheOrder},
    {.id = "D04",
     .name = "dependency-cycle",
     .title = "orders that wait for each other",
     .family = Family::Dependencies,
     .pass = Pass::Stages,
     .check = dependency_cycle,
     .draws = DrawnCycle::OfComputations},
};

}  // namespace

std::span<const Rule> stage_rules() {
  return kStagesRules;
}

}  // namespace capo::rules

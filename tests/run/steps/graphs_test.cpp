// Graphs read back, before and after replays: what they touch, and what they wait for.
//
//   per-action  every address lies in memory that this work may touch; nodes are a chain
//   per-step    every address lies in memory of the step; two works are joined by a path exactly
//               if the task graph orders them
//   both        nodes are what was launched into the capture, each once
//
// The task graph and core/plan/accesses.h are what plans are made by; nothing of the driver is
// asked, but for where a work finds its input.

#include "core/graph/task_graph.h"
#include "core/plan/accesses.h"
#include "tests/run/graph_memory.h"
#include "tests/run/labelled_engine.h"
#include "tests/run/read_back.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

constexpr const char* kInterleaved =
    "capo 1\nranks 2\nmicrobatches 4\nplacement loop\n"
    "rank 0: F1.0 F1.1 F2.0 F2.1 F1.2 B2.0 F1.3 B2.1 F2.2 B1.0 F2.3 B1.1 B2.2 B2.3 B1.2 B1.3\n"
    "rank 1: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 F1.2 B1.0 F1.3 B1.1 F2.2 B2.2 F2.3 B2.3 B1.2 B1.3\n";
constexpr const char* kZeroBubble =
    "capo 1\nmicrobatches 3\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 F1.2 W1.0 B1.1 W1.1 B1.2 W1.2\n"
    "rank 1: F1.0 B1.0 F1.1 B1.1 W1.0 F1.2 B1.2 W1.1 W1.2\n";
// Both chunks of a V's bend are on one rank: what the one makes the other reads where it lies.
constexpr const char* kV =
    "capo 1\nmicrobatches 2\nplacement v\n"
    "rank 0: F1.0 F1.1 F2.0 B2.0 W2.0 F2.1 B2.1 W2.1 B1.0 W1.0 B1.1 W1.1\n"
    "rank 1: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 W2.0 W1.0 B2.1 W2.1 B1.1 W1.1\n";

struct Case {
  std::string words;
  Input input;
  CheckOptions options;
};

// Every kind, with copies and without, wherever its sizes lie.
std::vector<Module> modules() {
  std::vector<Module> all;
  for (const ModuleKind kind : kRunKinds) {
    Module module = small(kind);
    all.push_back(module);
    if (has_router(kind)) continue;  // its experts have no bias
    module.name += ", bias";
    module.flags.bias = true;
    module.flags.scale_bias = kind == ModuleKind::GroupedLinearOp;
    all.push_back(module);
    if (is_grouped(kind)) {
      for (const Splits splits : {Splits::Host, Splits::Input}) {
        all.push_back(small(kind));
        all.back().splits = splits;
        all.back().name += fmt::format(", sizes on {}", name_of(splits));
      }
    }
  }
  all.push_back(small_with_experts());
  all.push_back(small(ModuleKind::Linear));
  all.back().name += ", copies";
  all.back().flags.gathered_input = true;
  all.back().flags.gathered_grad_output = true;
  all.push_back(configured(ModuleKind::Linear, gradients::GradientMode::Vanilla));
  all.back().name += ", not fused";
  return all;
}

std::vector<Case> cases(PlanKind plan, const std::vector<std::string>& texts) {
  std::vector<Case> all;
  for (const Module& module : modules()) {
    for (const std::string& text : texts) {
      const Input input = typed(text);
      all.push_back({fmt::format("{}, {}\n{}", module.name, name_of(plan), text), input,
                     every_layer(module, plan)});
    }
  }
  return all;
}

// Sizes on the host, and what TransformerEngine's contract loses, come in through the unchecked
// door alone; then every microbatch's gradient has a place of its own, and probes stand between
// works.
bool is_rejected(const Case& each) {
  return !rules_broken(each.input, each.options).empty();
}

template <typename Look>
RunReport look_at(const Case& each, Granularity graphs, Look look) {
  LabelledEngine engine(test_engine());
  RunOptions options{.graphs = graphs};
  options.inspect = [&](const Inspection& at) { look(at, engine); };
  if (!is_rejected(each)) return report_on(engine, verified(each.input, each.options), options);
  options.sizes = SizeKind::Balanced;  // as at the capture
  return report_on(engine, admitted(each.input, each.options), options);
}

// --- what they touch -----------------------------------------------------------------------------

const std::vector<std::string> kOneRank{"[1, 1, -1, -1]", "[1, -1, -1.5, 1, -1, -1.5]",
                                        "[1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]"};

const Area* holder(const std::vector<Area>& areas, const Operand& operand) {
  const auto found = std::find_if(areas.begin(), areas.end(),
                                  [&](const Area& area) { return area.holds(operand); });
  return found == areas.end() ? nullptr : &*found;
}

bool in(BufferKind kind, const std::vector<Area>& areas, const Operand& operand) {
  return std::any_of(areas.begin(), areas.end(), [&](const Area& area) {
    return area.owner == Owner::Buffer && area.kind == kind && area.holds(operand);
  });
}

// The operands of one node of a piece of work, one by one.
void expect_own(const Work& work, const std::vector<Area>& areas, const Operands& node) {
  for (const Operand& operand : node.list) {
    const Area* area = holder(areas, operand);
    if (area == nullptr) {
      ADD_FAILURE() << "a call of kind " << node.call << " touches " << operand.bytes
                    << " bytes of nobody's";
      continue;
    }
    if (operand.touch == Touch::Read) continue;
    EXPECT_NE(area->owner, Owner::Parameter);
    EXPECT_NE(area->owner, Owner::Input);
    if (work.kind != Kind::BackwardWeight) continue;
    EXPECT_TRUE(area->owner == Owner::Gradient || in(BufferKind::Scratch, areas, operand));
  }
}

// Copies into static inputs and incoming gradients.
std::size_t copies_in(const std::vector<Area>& areas, const std::vector<Operands>& nodes) {
  static const std::size_t copy = Call(Copy{}).index();
  std::size_t count = 0;
  for (const Operands& node : nodes) {
    if (node.call != copy) continue;
    const Operand& to = node.list.back();
    if (in(BufferKind::StaticInput, areas, to) || in(BufferKind::GradOutput, areas, to)) ++count;
  }
  return count;
}

std::map<std::pair<std::int32_t, std::uint32_t>, Origin> origins(const Inspection& at) {
  std::map<std::pair<std::int32_t, std::uint32_t>, Origin> all;
  const auto program = program_of(at.step.view().table(), at.step.replayed());
  for (const OpPart& part : program.value().parts) {
    if (part.kind == OpPart::Kind::Work) all[{part.rank, part.work.entry}] = part.origin;
  }
  return all;
}

void expect_chains_of_own_memory(const Inspection& at, LabelledEngine& engine) {
  GraphMemory memory(at);
  const auto origin_of = origins(at);
  for (const Stepper::Captured& captured : at.graphs) {
    ASSERT_TRUE(captured.work.has_value());
    const Work& work = *captured.work;
    SCOPED_TRACE(name_of(captured.rank, work));
    const std::vector<Area> areas =
        memory.of(captured.rank, work, origin_of.at({captured.rank, work.entry}));
    const std::vector<GraphNode> nodes = engine.inspect(captured.graph);
    EXPECT_FALSE(nodes.empty());
    expect_chain(nodes);
    const std::vector<Operands> operands = all_operands_of(nodes, engine);
    nodes_of_launches(engine.launches(captured.graph), operands, engine);
    for (const Operands& node : operands) expect_own(work, areas, node);
    const bool weight = work.kind == Kind::BackwardWeight;
    const bool sizes = at.layers.at(captured.rank, work.chunk, 0).sizes_in_input;
    EXPECT_EQ(copies_in(areas, operands), weight                                ? 0U
                                          : work.kind == Kind::Forward && sizes ? 2U
                                                                                : 1U);
  }
}

// Each graph as calls that can be compared.
std::vector<std::vector<Operands>> calls(const Inspection& at, Engine& engine) {
  std::vector<std::vector<Operands>> all;
  for (const Stepper::Captured& captured : at.graphs) {
    all.push_back(all_operands_of(engine.inspect(captured.graph), engine));
  }
  return all;
}

TEST(Graphs, OfActionsAreChainsThatTouchTheirOwnMemoryAlone) {
  std::size_t runs = 0;
  std::vector<Case> all = cases(PlanKind::Safe, {kInterleaved, kZeroBubble, kV});
  for (const PlanKind plan : {PlanKind::Safe, PlanKind::Te}) {
    for (Case& each : cases(plan, kOneRank)) all.push_back(std::move(each));
  }
  for (const Case& each : all) {
    SCOPED_TRACE(each.words);
    std::vector<std::vector<std::vector<Operands>>> seen;
    const RunReport report =
        look_at(each, Granularity::PerAction, [&](const auto& at, auto& engine) {
          expect_chains_of_own_memory(at, engine);
          seen.push_back(calls(at, engine));
        });
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_TRUE(seen[0] == seen[1]);
    EXPECT_EQ(report.replays, 3U);
    // Graphs do not depend on what TransformerEngine's contract makes of gradients.
    EXPECT_TRUE(report.bit_equal || each.options.plan.kind == PlanKind::Te);
    ++runs;
    if (HasFailure()) return;
  }
  EXPECT_EQ(runs, all.size());
}

// --- what they wait for --------------------------------------------------------------------------

struct Placed {
  std::int32_t rank = 0;
  Work work;
  Vertex vertex = 0;
  std::uint32_t first = 0;  ///< node
  std::uint32_t last = 0;
};

// Every work of a step with its vertex, and the nodes that were captured under its name.
std::vector<Placed> placed_works(const Course& course, const std::vector<CapturedLaunch>& launches,
                                 const std::vector<std::uint32_t>& node_of) {
  std::vector<Placed> all;
  for (TaskId id = 0; id < course.graph->tasks.size(); ++id) {
    const Task& task = course.graph->tasks[id];
    const Step& step = step_of(*course.lowered, task);
    if (!is_work(step)) continue;
    const auto& delay = (*course.delay)[static_cast<std::size_t>(task.rank)];
    Placed placed{.rank = task.rank, .work = work_of(step, delay), .vertex = task.start};
    const std::string name = name_of(placed.rank, placed.work);
    const auto of_it = [&](const CapturedLaunch& launch) { return launch.label == name; };
    const auto first = std::find_if(launches.begin(), launches.end(), of_it);
    const auto last = std::find_if(launches.rbegin(), launches.rend(), of_it);
    EXPECT_NE(first, launches.end()) << name;
    if (first == launches.end()) continue;
    placed.first = node_of[static_cast<std::size_t>(first - launches.begin())];
    placed.last = node_of[static_cast<std::size_t>(launches.rend() - last) - 1];
    all.push_back(placed);
  }
  return all;
}

std::vector<bool> reachable(const TaskGraph& graph, Vertex from) {
  std::vector<bool> seen(graph.task_of.size(), false);
  std::vector<Vertex> open{from};
  while (!open.empty()) {
    const Vertex vertex = open.back();
    open.pop_back();
    graph.edges.for_each_out(vertex, [&](Vertex next, EdgeKind) {
      if (seen[next]) return;
      seen[next] = true;
      open.push_back(next);
    });
  }
  return seen;
}

struct Pairs {
  std::size_t ordered = 0;
  std::size_t unordered = 0;
};

// Paths between works are those of the task graph.
Pairs expect_paths(const Inspection& at, LabelledEngine& engine) {
  Pairs pairs;
  const Course& course = at.step.replayed();
  const GraphId graph = at.graphs.front().graph;
  const std::vector<GraphNode> nodes = engine.inspect(graph);
  const auto& launches = engine.launches(graph);
  const auto node_of = nodes_of_launches(launches, all_operands_of(nodes, engine), engine);
  if (node_of.size() < launches.size()) return pairs;
  const auto over = before(nodes);
  const std::vector<Placed> works = placed_works(course, launches, node_of);
  for (const Placed& a : works) {
    const std::vector<bool> behind = reachable(*course.graph, a.vertex);
    for (const Placed& b : works) {
      if (a.vertex == b.vertex) continue;
      const bool ordered = behind[b.vertex];
      if (ordered) {
        EXPECT_TRUE(over[b.first][a.last])
            << name_of(a.rank, a.work) << " and " << name_of(b.rank, b.work);
        ++pairs.ordered;
      } else if (!reachable(*course.graph, b.vertex)[a.vertex]) {
        EXPECT_FALSE(over[b.last][a.first])
            << name_of(a.rank, a.work) << " and " << name_of(b.rank, b.work);
        ++pairs.unordered;
      }
    }
  }
  return pairs;
}

TEST(Graphs, OfAStepOrderTheWorksThatTheTaskGraphOrdersAndNoOthers) {
  Pairs all_pairs;
  for (const Case& each : cases(PlanKind::Safe, {kInterleaved, kZeroBubble, kV})) {
    if (is_rejected(each)) continue;
    SCOPED_TRACE(each.words);
    std::vector<std::vector<std::vector<Operands>>> seen;
    const RunReport report =
        look_at(each, Granularity::PerStep, [&](const Inspection& at, LabelledEngine& engine) {
          ASSERT_EQ(at.graphs.size(), 1U);
          ASSERT_NE(at.step.replayed().graph, nullptr);
          const Pairs pairs = expect_paths(at, engine);
          all_pairs.ordered += pairs.ordered;
          all_pairs.unordered += pairs.unordered;
          const std::vector<Area> areas = GraphMemory(at).of_the_step();
          seen.push_back(calls(at, engine));
          for (const Operands& node : seen.back().front()) {
            for (const Operand& operand : node.list) EXPECT_NE(holder(areas, operand), nullptr);
          }
        });
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_TRUE(seen[0] == seen[1]);
    EXPECT_TRUE(report.bit_equal);
    if (HasFailure()) return;
  }
  std::printf("%zu ordered pairs of works and %zu unordered ones\n", all_pairs.ordered,
              all_pairs.unordered);
  EXPECT_GT(all_pairs.ordered, 1000U);
  EXPECT_GT(all_pairs.unordered, 1000U);
}

// On one rank and one stream a step is one chain, under either plan.
TEST(Graphs, OfAStepOfOneStreamAreChains) {
  for (const PlanKind plan : {PlanKind::Safe, PlanKind::Te}) {
    for (const Case& each : cases(plan, kOneRank)) {
      SCOPED_TRACE(each.words);
      look_at(each, Granularity::PerStep, [&](const Inspection& at, LabelledEngine& engine) {
        expect_chain(engine.inspect(at.graphs.front().graph));
      });
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace capo::run

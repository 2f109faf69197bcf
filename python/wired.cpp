#include "python/wired.h"

#include "core/base/index.h"
#include "core/draw/draw.h"
#include "core/frameworks/assign.h"
#include "core/graph/task_graph.h"
#include "core/plan/uses.h"
#include "core/report/report.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"
#include "python/not_accepted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace capo::python {

namespace {

constexpr std::array<std::string_view, 10> kEdgeKinds{"stream", "queue",     "issue",      "data",
                                                      "span",   "message",   "rendezvous", "wait",
                                                      "event",  "collective"};
static_assert(as_index(EdgeKind::Collective) + 1 == kEdgeKinds.size());

constexpr std::array<std::string_view, 6> kRegionNames{"static inputs", "grad outputs", "pool",
                                                       "scratch",       "receives",     "copies"};
static_assert(kRegionNames.size() == kRegions.size());

[[noreturn]] void refuse(const Input& input, CheckResult result, std::string_view what) {
  const std::string text = fmt::format("there is no {}", what);
  const Report report = report_of(input, std::move(result), {});
  if (report.verdict != Verdict::Accepted) throw NotAccepted(report, text);
  throw std::runtime_error(to_text(report) + text);
}

// First and last use of each buffer.
class Lifetimes final : public UseVisitor {
 public:
  explicit Lifetimes(const BufferTable& table) : UseVisitor(table), of(table.all()) {}

  struct Lifetime {
    std::uint32_t birth = 0xffffffff;
    std::uint32_t death = 0;
    [[nodiscard]] bool used() const { return birth <= death; }
  };
  std::vector<Lifetime> of;

 private:
  void use(const BufferUse& found) override {
    Lifetime& lifetime = of[found.buffer];
    lifetime.birth = std::min(lifetime.birth, found.entry);
    lifetime.death = std::max(lifetime.death, found.entry);
  }
};

}  // namespace

WiredStep::WiredStep(Input of, CheckOptions declared)
    : input(std::move(of)), options(std::move(declared)) {
  const Context context(input, options);
  CheckResult result = check(context);
  if (!result.orders_clean || context.wirings().empty()) refuse(input, std::move(result), "graph");
  const Wiring& wiring = *context.wirings().back();
  const TaskGraph& graph = wiring.judged();
  const Lowered& lowered = wiring.lowered_for(graph);
  for (const Task& task : graph.tasks) {
    rank.push_back(static_cast<std::int32_t>(task.rank));
    stage.push_back(static_cast<std::int32_t>(task.stage));
    microbatch.push_back(
        task.microbatch == kNoMicrobatch ? -1 : static_cast<std::int32_t>(task.microbatch));
    kind.push_back(static_cast<std::uint8_t>(task.kind));
    entry.push_back(static_cast<std::int32_t>(step_of(lowered, task).entry));
    stream.push_back(task.stream);
    start.push_back(task.start);
    end.push_back(task.start + (task.split ? 1 : 0));
  }
  vertices = graph.task_of.size();
  streams = graph.streams.size();
  for (Vertex from = 0; from < vertices; ++from) {
    graph.edges.for_each_out(from, [&](Vertex to, EdgeKind between) {
      before.push_back(from);
      after.push_back(to);
      edge_kind.push_back(static_cast<std::uint8_t>(between));
    });
  }
}

std::string WiredStep::dot() const {
  auto text = draw(input, options, {});
  if (!text) throw std::runtime_error(text.error().message);
  return *std::move(text);
}

PlannedStep::PlannedStep(const Input& input, const CheckOptions& options) {
  const Context context(input, options);
  CheckResult result = check(context);
  if (!result.plan) refuse(input, std::move(result), "plan");
  const PlanView& view = context.plan_view();
  const BufferTable& table = view.table();
  kind_of_plan = name_of(view.kind());
  sized = table.sized();
  for (const RankMemory& memory : view.memory()) {
    peaks.push_back(memory.peak());
    lower_bounds.push_back(memory.lower_bound);
  }
  Lifetimes lifetimes(table);
  run_course(table, view.course_of(*context.wirings().back()), lifetimes);
  lifetimes.end();
  for (BufferId buffer = 0; buffer < table.all(); ++buffer) {
    const auto& lifetime = lifetimes.of[buffer];
    const std::int64_t address = view.plan().at(buffer);
    if (!lifetime.used() || address == kNowhere) continue;
    const Buffer of = table.at(buffer);
    rank.push_back(of.rank);
    chunk.push_back(of.chunk);
    layer.push_back(of.layer);
    microbatch.push_back(of.microbatch);
    kind.push_back(static_cast<std::uint8_t>(of.kind));
    region.push_back(static_cast<std::uint8_t>(region_of(address)));
    offset.push_back(offset_of(address));
    bytes.push_back(table.bytes(of));
    birth.push_back(lifetime.birth);
    death.push_back(lifetime.death);
  }
}

std::vector<std::string> edge_kind_names() {
  return {kEdgeKinds.begin(), kEdgeKinds.end()};
}

std::vector<std::string> buffer_kind_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind <= as_index(BufferKind::ReceivedGradient); ++kind)
    names.emplace_back(name_of(static_cast<BufferKind>(kind)));
  return names;
}

std::vector<std::string> region_names() {
  return {kRegionNames.begin(), kRegionNames.end()};
}

}  // namespace capo::python

// The rule about grouped products of two streams in one workspace.
//
// Two streams that use one buffer are E01's case, which buffers.cpp reports with the other hazards.
// Tested by streams_test.cpp and tests/corpus/rules/E02.

#include "core/plan/accesses.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/hazard_words.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

struct Race {
  MemoryUser first;
  MemoryUser second;
  const Module* module;
};

bool has_grouped_products(const Module& module) {
  return module.kind && is_grouped(*module.kind);
}

class Finder final : public CourseVisitor {
 public:
  explicit Finder(const BufferTable& table) : table_(table) {}

  void work(std::int32_t rank, const Work& work, BufferId, const Clock& clock) override {
    for_each_layer(table_, rank, work, [&](std::int32_t layer) {
      const Module* module = table_.facts(rank, work.chunk, layer).module;
      if (module == nullptr || !has_grouped_products(*module)) return;
      const std::pair workspace(rank, module->shape.groups.value_or(0));
      const MemoryUser site{.rank = rank, .entry = work.entry, .kind = work.kind};
      auto& users = users_[workspace];
      for (const auto& [stream, user] : users) {
        if (stream != clock.now().stream && !clock.after(user.point) &&
            !races.contains(workspace)) {
          races.emplace(workspace, Race{user.site, site, module});
        }
      }
      users[clock.now().stream] = {site, clock.now()};
    });
  }
  void sent(const Sending&, const Clock&) override {}

  std::map<std::pair<std::int32_t, std::int64_t>, Race> races;  // by rank and number of groups

 private:
  struct User {
    MemoryUser site;
    Point point;
  };

  const BufferTable& table_;
  // The latest use of each workspace by each stream.
  std::map<std::pair<std::int32_t, std::int64_t>, std::map<std::uint32_t, User>> users_;
};

// Grouped products that may run at the same time do not share a workspace.
//
// TE keeps one setup workspace for each device and number of groups: every grouped product writes
// its pointers there before it runs. Two graphs with grouped products on two streams, a weight
// gradient beside a forward, may run with each other's pointers. There is one finding for each rank
// and number of groups. It concerns declared grouped modules that are not fused on the host; plan
// `safe` gives each stream a workspace of its own.
void workspace_race(const Context& context, Findings& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || !is_a_frameworks(view.kind())) return;
  // Computations of a rank have no other stream.
  if (!context.wirings().front()->environment().has_weight_stream()) return;
  Finder finder(view.table());
  run_course(view.table(), view.course(), finder);
  const Wiring& wiring = *context.wirings().front();
  for (const auto& [workspace, race] : finder.races) {
    if (!out.found()) continue;
    const std::string first = memory_user_name(context, wiring, race.first);
    const std::string second = memory_user_name(context, wiring, race.second);
    Diagnostic finding;
    finding.message = fmt::format(
        "{} and {} may run at the same time, and their grouped products (module `{}`) set up one "
        "workspace: each may read the other's pointers",
        first, second, race.module->name);
    finding.labels = {
        {memory_user_span(context, wiring, race.second), "sets the workspace up"},
        {memory_user_span(context, wiring, race.first), "so does this, on another stream"}};
    finding.witness = {.kind = WitnessKind::Replay,
                       .tasks = {memory_user_reference(context, wiring, race.first),
                                 memory_user_reference(context, wiring, race.second)}};
    finding.help.text = fmt::format("let {} wait for {}", second, first);
    out.report(std::move(finding));
  }
}

constexpr Rule kStreamsRules[] = {
    {"E02", "workspace-race", "grouped products of two streams in one workspace", Family::Streams,
     Pass::Buffers, workspace_race},
};

}  // namespace

std::span<const Rule> stream_rules() {
  return kStreamsRules;
}

}  // namespace capo::rules

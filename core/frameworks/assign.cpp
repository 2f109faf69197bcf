#include "core/frameworks/assign.h"

#include "core/frameworks/megatron/local_graphs.h"
#include "core/frameworks/te/reuse.h"
#include "core/plan/safe_plan.h"

#include <algorithm>
#include <numeric>

namespace capo {

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor) {
  if (course.swept) {
    run_swept(table, *course.map, *course.swept, *course.delay, visitor);
  } else if (course.graph == nullptr) {
    run_orders(table, *course.map, course.work, visitor);
  } else {
    run_graph(table, *course.map, *course.graph, *course.lowered, *course.delay, visitor);
  }
}

namespace {

void plan_safely(const BufferTable& table, const Course& capture, Plan& plan) {
  SafePlanner safe(table, *capture.map, plan.address);
  run_course(table, capture, safe);
  safe.lay_out_all();
  plan.ranks = safe.memory();
}

void plan_like_te(const BufferTable& table, const Course& capture, Plan& plan) {
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    plan.ranks.push_back(
        plan_as_te(table, static_cast<std::int32_t>(r), capture.work[r], plan.address));
  }
}

void plan_like_megatron(const BufferTable& table, const Course& capture, const Course& replay,
                        Plan& plan) {
  plan.tensor.resize(table.all());
  std::iota(plan.tensor.begin(), plan.tensor.end(), BufferId{0});
  plan.made.assign(table.all(), kNowhere);
  LocalCopies copies(table, *replay.map, plan.address);
  run_course(table, replay, copies);
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    RankMemory& memory =
        plan.ranks.emplace_back(plan_as_local_graphs(table, rank, capture.work[r], plan));
    // Copies are made while the order is replayed, and the peak is said of an entry that is
    // captured.
    memory.pool += copies.most(rank).bytes;
  }
}

}  // namespace

void add_under_every_plan(const BufferTable& table, const Course& capture,
                          std::vector<RankMemory>& memory) {
  std::vector<std::int64_t> nowhere(table.all(), kNowhere);
  SafePlanner safe(table, *capture.map, nowhere);
  run_course(table, capture, safe);
  for (std::size_t r = 0; r < memory.size(); ++r) {
    memory[r].lower_bound = safe.memory()[r].lower_bound;
    memory[r].transfers = safe.memory()[r].transfers;
  }
}

Plan assign(const BufferTable& table, const Course& capture, PlanKind kind, Granularity granularity,
            LowerBounds bounds, const Course* replay) {
  Plan plan{.kind = kind,
            .granularity = granularity,
            .address = std::vector<std::int64_t>(table.all(), kNowhere),
            .ranks = {},
            .tensor = {},
            .made = {}};
  if (kind == PlanKind::Safe) {
    plan_safely(table, capture, plan);
  } else {
    if (kind == PlanKind::Te) {
      plan_like_te(table, capture, plan);
    } else {
      plan_like_megatron(table, capture, replay == nullptr ? capture : *replay, plan);
    }
    if (bounds == LowerBounds::With) add_under_every_plan(table, capture, plan.ranks);
  }
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    for (const LayerFacts& facts : table.facts_of(static_cast<std::int32_t>(r)))
      plan.ranks[r].weights += facts.weight_bytes;
  }
  return plan;
}

std::vector<Hazard> judge(const BufferTable& table, const Course& replay, const Plan& plan) {
  HazardFinder finder(table, plan);
  run_course(table, replay, finder);
  return std::move(finder.hazards);
}

}  // namespace capo

#include "core/frameworks/assign.h"

#include "core/base/in_parallel.h"
#include "core/frameworks/megatron/local_graphs.h"
#include "core/frameworks/te/reuse.h"
#include "core/plan/safe_plan.h"

#include <numeric>
#include <utility>

namespace capo {

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor) {
  if (course.swept) {
    for (std::size_t r = 0; r < course.swept->ranks(); ++r)
      course.swept->run(table, static_cast<std::int32_t>(r), visitor);
  } else if (course.graph == nullptr) {
    run_orders(table, *course.map, course.work, visitor);
  } else {
    run_graph(table, *course.map, *course.graph, *course.lowered, *course.delay, visitor);
  }
}

namespace {

// Ranks of a sweep are looked at on all processors, if that is worth the threads. To ask how many
// there are takes longer than a small step does.
template <typename Visit>
void for_each_rank(const BufferTable& table, Visit visit) {
  in_parallel(table.ranks(), threads_worth(table.all()),
              [&](std::size_t rank) { visit(static_cast<std::int32_t>(rank)); });
}

// Tells each rank's visitor what happens to that rank.
template <typename OfRank>
class ByRank final : public CourseVisitor {
 public:
  template <typename Make>
  ByRank(const BufferTable& table, Make make) {
    of_ranks_.reserve(table.ranks());
    for (std::size_t r = 0; r < table.ranks(); ++r)
      of_ranks_.push_back(make(static_cast<std::int32_t>(r)));
  }

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override {
    of(rank).work(rank, work, fed_by, clock);
  }
  void sent(const Sending& sending, const Clock& clock) override {
    of(sending.rank).sent(sending, clock);
  }
  void receiving(const Receiving& receiving, const Clock& clock) override {
    of(receiving.rank).receiving(receiving, clock);
  }
  [[nodiscard]] OfRank& of(std::int32_t rank) { return of_ranks_[RankId(rank).index()]; }

 private:
  std::vector<OfRank> of_ranks_;
};

// Runs the course by capo's own planner, and calls over(rank, its planner) when a rank is over.
template <typename Over>
void run_safely(const BufferTable& table, const Course& capture, Over over) {
  const auto planner_of = [&](std::int32_t rank) { return SafePlanner(table, *capture.map, rank); };
  if (capture.swept) {
    for_each_rank(table, [&](std::int32_t rank) {
      SafePlanner planner = planner_of(rank);
      capture.swept->run(table, rank, planner);
      over(rank, planner);
    });
    return;
  }
  ByRank<SafePlanner> planners(table, planner_of);
  run_course(table, capture, planners);
  for_each_rank(table, [&](std::int32_t rank) { over(rank, planners.of(rank)); });
}

void plan_safely(const BufferTable& table, const Course& capture, Plan& plan) {
  plan.ranks.resize(table.ranks());
  run_safely(table, capture, [&](std::int32_t rank, SafePlanner& planner) {
    planner.lay_out(plan.address);
    plan.ranks[RankId(rank).index()] = planner.memory();
  });
}

void plan_like_te(const BufferTable& table, const Course& capture, Plan& plan) {
  plan.ranks.resize(table.ranks());
  for_each_rank(table, [&](std::int32_t rank) {
    const RankWork work(capture, rank);
    plan.ranks[RankId(rank).index()] = plan_as_te(table, rank, work.all(), plan.address);
  });
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
  run_safely(table, capture, [&](std::int32_t rank, const SafePlanner& planner) {
    const RankMemory safe = planner.memory();
    memory[RankId(rank).index()].lower_bound = safe.lower_bound;
    memory[RankId(rank).index()].transfers = safe.transfers;
  });
}

Plan assign(const BufferTable& table, const Course& capture, PlanKind kind, Granularity granularity,
            LowerBounds bounds, const Course* replay) {
  // TransformerEngine says nothing of receives, whose buffers are the last.
  const std::size_t addresses = kind == PlanKind::Te ? table.size() : table.all();
  Plan plan{.kind = kind,
            .granularity = granularity,
            .address = std::vector<std::int64_t>(addresses, kNowhere),
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

namespace {

HazardList judge_rank_by_rank(const BufferTable& table, const SweptCourse& replay,
                              const Plan& plan) {
  std::vector<HazardList> found(table.ranks());
  for_each_rank(table, [&](std::int32_t rank) {
    HazardList& of_rank = found[RankId(rank).index()];
    HazardFinder finder(table, plan, rank, of_rank);
    replay.run(table, rank, finder);
    finder.end();
    of_rank.close();
  });
  HazardList all;
  for (HazardList& of_rank : found) all.append(std::move(of_rank));
  return all;
}

}  // namespace

HazardList judge(const BufferTable& table, const Course& replay, const Plan& plan) {
  if (replay.swept) return judge_rank_by_rank(table, *replay.swept, plan);
  HazardList found;
  ByRank<HazardFinder> finders(
      table, [&](std::int32_t rank) { return HazardFinder(table, plan, rank, found); });
  run_course(table, replay, finders);
  for (std::size_t r = 0; r < table.ranks(); ++r) finders.of(static_cast<std::int32_t>(r)).end();
  return found;
}

}  // namespace capo

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

// Gives each rank what capo's own plan gives it.
void run_safely(const BufferTable& table, const Course& capture, SafePlanner& planner) {
  if (!capture.swept) run_course(table, capture, planner);
  for_each_rank(table, [&](std::int32_t rank) {
    if (capture.swept) capture.swept->run(table, rank, planner);
    planner.lay_out(rank);
  });
}

void plan_safely(const BufferTable& table, const Course& capture, Plan& plan) {
  SafePlanner safe(table, *capture.map, plan.address);
  run_safely(table, capture, safe);
  plan.ranks = safe.memory();
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
  std::vector<std::int64_t> nowhere(table.all(), kNowhere);
  SafePlanner safe(table, *capture.map, nowhere);
  run_safely(table, capture, safe);
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

namespace {

// Tells each rank's finder what happens to that rank.
class Finders final : public CourseVisitor {
 public:
  Finders(const BufferTable& table, const Plan& plan) {
    finders_.reserve(table.ranks());
    for (std::size_t r = 0; r < table.ranks(); ++r)
      finders_.emplace_back(table, plan, static_cast<std::int32_t>(r), found);
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
  void end() {
    for (HazardFinder& finder : finders_) finder.end();
  }

  std::vector<Hazard> found;

 private:
  [[nodiscard]] HazardFinder& of(std::int32_t rank) { return finders_[RankId(rank).index()]; }

  std::vector<HazardFinder> finders_;
};

std::vector<Hazard> judge_rank_by_rank(const BufferTable& table, const SweptCourse& replay,
                                       const Plan& plan) {
  std::vector<std::vector<Hazard>> found(table.ranks());
  for_each_rank(table, [&](std::int32_t rank) {
    std::vector<Hazard>& of_rank = found[RankId(rank).index()];
    HazardFinder finder(table, plan, rank, of_rank);
    replay.run(table, rank, finder);
    finder.end();
    of_rank.shrink_to_fit();
  });
  std::size_t count = 0;
  for (const auto& of_rank : found) count += of_rank.size();
  std::vector<Hazard> all;
  all.reserve(count);
  for (auto& of_rank : found) {
    all.insert(all.end(), of_rank.begin(), of_rank.end());
    of_rank = {};
  }
  return all;
}

}  // namespace

std::vector<Hazard> judge(const BufferTable& table, const Course& replay, const Plan& plan) {
  if (replay.swept) return judge_rank_by_rank(table, *replay.swept, plan);
  Finders finders(table, plan);
  run_course(table, replay, finders);
  finders.end();
  return std::move(finders.found);
}

}  // namespace capo

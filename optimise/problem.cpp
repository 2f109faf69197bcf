#include "optimise/problem.h"

#include "core/base/index.h"
#include "core/graph/stage_map.h"
#include "core/order/declare.h"
#include "core/order/fuse_weights.h"
#include "schedules/catalogue.h"
#include "sim/durations.h"
#include "sim/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo::optimise {

namespace {

using schedules::Move;
using schedules::PublishedOrders;

Schedule schedule_of(const Frame& frame, const PublishedOrders& orders) {
  Schedule schedule = schedules::schedule_of(orders, frame.topology, frame.chunks);
  for (std::size_t rank = 0; rank < frame.stages.size(); ++rank) {
    schedule.ranks[rank].stages = frame.stages[rank];
  }
  return schedule;
}

// A step of as many microbatches as one call takes, most often one. Every stage runs forward at its
// turn and backward at that of its image: a valid order for every placement, since all of one time
// follow one another.
Schedule small_step(const Frame& frame) {
  const std::int32_t microbatches = std::min(frame.weights_in_call, frame.microbatches);
  const StageMap map(placed(frame));
  struct Timed {
    std::int32_t turn;
    Move move;
  };
  std::vector<std::vector<Timed>> timed(as_index(frame.ranks));
  for (std::int32_t stage = 0, turn = 0; stage < map.stages(); ++stage, ++turn) {
    if (map.before(stage) == kNoStage) turn = 0;
    const HeldChunk home = map.home(stage);
    const std::int32_t back = 2 * map.stages() - turn;
    auto& rank = timed[home.rank.index()];
    const auto add = [&](std::int32_t at, Kind kind) {
      for (std::int32_t k = 0; k < microbatches; ++k) {
        rank.push_back({at, {.kind = kind, .chunk = home.chunk, .microbatch = k}});
      }
    };
    add(turn, Kind::Forward);
    add(back, Kind::BackwardInput);
    add(back, Kind::BackwardWeight);
  }
  PublishedOrders orders;
  for (auto& rank : timed) {
    std::stable_sort(rank.begin(), rank.end(),
                     [](const Timed& a, const Timed& b) { return a.turn < b.turn; });
    auto& moves = orders.emplace_back();
    for (const Timed& each : rank) moves.push_back(each.move);
  }
  Schedule step = schedule_of(frame, orders);
  fuse_weights(step, frame.weights_in_call);
  return step;
}

Half half_for(Kind kind) {
  if (kind == Kind::Forward) return Half::Forward;
  return kind == Kind::BackwardWeight ? Half::Weight : Half::Backward;
}

// Chunks are numbered in the order of their stages, so that there is one name for each placement.
std::optional<std::string> refuse_stages(const Frame& frame) {
  const auto all = as_index(frame.ranks) * as_index(frame.chunks);
  std::vector<bool> taken(all, false);
  for (const auto& rank : frame.stages) {
    if (!std::ranges::is_sorted(rank)) {
      return std::string("chunks of a rank are searched in the order of their stages");
    }
    for (const std::int32_t stage : rank) {
      if (stage >= 0 && as_index(stage) < all) taken[as_index(stage)] = true;
    }
  }
  const bool even = frame.stages.size() == as_index(frame.ranks) &&
                    std::ranges::all_of(frame.stages, [&](const auto& rank) {
                      return rank.size() == as_index(frame.chunks);
                    });
  if (even && std::ranges::find(taken, false) == taken.end()) return std::nullopt;
  return fmt::format("{} stages are not placed on {} chunks of each of {} ranks", all, frame.chunks,
                     frame.ranks);
}

std::optional<std::string> refuse_frame(const Frame& frame) {
  if (frame.ranks < 1 || frame.chunks < 1 || frame.microbatches < 1) {
    return "there is at least one rank, one chunk and one microbatch";
  }
  const std::uint64_t tasks = 3 * static_cast<std::uint64_t>(frame.ranks) *
                              static_cast<std::uint64_t>(frame.chunks) *
                              static_cast<std::uint64_t>(frame.microbatches);
  if (tasks > kMostTasks) {
    return fmt::format("there are {} tasks, and no more than {} are searched", tasks, kMostTasks);
  }
  switch (frame.topology) {
    case Topology::Loop:
      return std::nullopt;
    case Topology::V:
      if (frame.chunks % 2 == 0) return std::nullopt;
      return "a V needs an even number of chunks a rank";
    case Topology::Bidirectional:
      if (frame.chunks == 2) return std::nullopt;
      return "two pipelines need two chunks a rank";
    case Topology::Custom:
      return refuse_stages(frame);
    case Topology::Independent:
    case Topology::Chain:
      break;
  }
  return "orders are searched for the placements loop, v, bidirectional and custom";
}

std::optional<std::string> refuse_options(const Frame& frame, const SimulationOptions& options) {
  const Costs& costs = options.costs;
  if (!options.ideal_links.value_or(true)) {
    return "orders are searched for links that are ideal, and not for those that queue";
  }
  if (!costs.devices.empty()) return "orders are searched for ranks with a device each";
  const MemoryChange memory = options.memory.value_or(MemoryChange{});
  if (memory.forward < 0 || memory.backward > 0 || memory.weight > 0) {
    return "orders are searched for memory that forwards take and that backwards give up";
  }
  const bool fused =
      std::any_of(costs.settings.begin(), costs.settings.end(), [](const CostSetting& setting) {
        return setting.key == CostSetting::Key::Fuse && setting.value != 1;
      });
  if (costs.overlap != 1 || costs.slowdown != 1) {
    return "orders are searched without composites and slowdown: `overlap` and `slowdown` have no "
           "use";
  }
  const bool rests = std::ranges::any_of(costs.settings, [](const CostSetting& setting) {
    return setting.key == CostSetting::Key::Rest && setting.value > 0;
  });
  if (rests) return "orders are searched for tasks that take as long as stated: `rest` has no use";
  if (fused && frame.weights_in_call == 1) {
    return "each weight gradient is a call of its own: `fuse` has no use without --fuse-w";
  }
  return std::nullopt;
}

// Calls that no order makes, or that save nothing, are no reason to search.
std::optional<std::string> refuse_calls(const Problem& problem) {
  if (!problem.fuses()) return std::nullopt;
  if (problem.frame.microbatches == 1) {
    return "a chunk has one microbatch, and no call has two weight gradients: --fuse-w has no use";
  }
  const bool saves = std::any_of(problem.series.begin(), problem.series.end(),
                                 [](const Series& each) { return each.further < each.takes; });
  if (saves) return std::nullopt;
  return "--fuse-w has no use where each further weight gradient of a call takes as long as the "
         "first: say what it takes, as --cost fuse=0.35 does";
}

// Declares what a series waits for, on its own rank or on another.
void wait(std::vector<Series>& series, SeriesId waiting, SeriesId first, double lag) {
  if (series[waiting].rank == series[first].rank) {
    series[waiting].behind.push_back(first);
    series[first].before.push_back(waiting);
    return;
  }
  series[waiting].waits_for = first;
  series[waiting].lag = lag;
  series[first].awaited_by = waiting;
}

class Reading {
 public:
  explicit Reading(const Simulation& simulation)
      : simulation_(simulation),
        subject_(simulation.subject()),
        durations_(subject_, simulation.costs()),
        tasks_(3 * as_index(subject_.map.stages()), kNoTask),
        further_(tasks_.size(), kNoTask) {
    const TaskGraph& graph = subject_.graph;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      if (!is_compute(task.kind) || +task.microbatch > 1) continue;
      auto& tasks = +task.microbatch == 0 ? tasks_ : further_;
      tasks[series_of(as_index(+task.stage), half_for(task.kind))] = id;
    }
  }

  [[nodiscard]] std::vector<Series> series() const {
    std::vector<Series> all(tasks_.size());
    const auto changes =
        same_for_all(subject_.schedule, simulation_.memory_model(), simulation_.costs().recomputed);
    for (SeriesId id = 0; id < all.size(); ++id) {
      const auto stage = static_cast<std::int32_t>(stage_of(id));
      const HeldChunk home = subject_.map.home(stage);
      const ChunkMemory& change = changes[home.rank.index()][home.chunk.index()];
      all[id].rank = home.rank.index();
      all[id].takes = durations_.of_task(tasks_[id]);
      all[id].further = further_[id] == kNoTask ? all[id].takes : durations_.of_task(further_[id]);
      all[id].during = half_of(id) == Half::Backward ? change.again : 0;
      all[id].holds = half_of(id) == Half::Forward    ? change.forward
                      : half_of(id) == Half::Backward ? change.backward
                                                      : change.weight;
    }
    for (std::int32_t stage = 0; stage < subject_.map.stages(); ++stage) {
      const auto of = [](std::int32_t s, Half half) { return series_of(as_index(s), half); };
      if (const StageId before = subject_.map.before(stage); before != kNoStage) {
        wait_for(all, of(stage, Half::Forward), of(before, Half::Forward));
      }
      if (const StageId after = subject_.map.after(stage); after != kNoStage) {
        wait_for(all, of(stage, Half::Backward), of(after, Half::Backward));
      }
      wait_for(all, of(stage, Half::Backward), of(stage, Half::Forward));
      wait_for(all, of(stage, Half::Weight), of(stage, Half::Backward));
    }
    return all;
  }

 private:
  void wait_for(std::vector<Series>& all, SeriesId waiting, SeriesId first) const {
    const TaskGraph& graph = subject_.graph;
    wait(all, waiting, first,
         durations_.lag(EdgeKind::Data, graph.end(tasks_[first]), graph.start(tasks_[waiting])));
  }

  const Simulation& simulation_;
  const Subject& subject_;
  Durations durations_;
  std::vector<TaskId> tasks_;    // by series: of the first microbatch
  std::vector<TaskId> further_;  // and of the second, if there is one
};

}  // namespace

Result<Problem, std::string> problem_of(const Frame& frame, const SimulationOptions& options) {
  if (auto why = refuse_frame(frame)) return *std::move(why);
  if (auto why = refuse_options(frame, options)) return *std::move(why);
  Input input{.form = Form::OrderFile, .schedule = small_step(frame)};
  if (auto why = declare_layers(input.schedule, options.costs.modules.layers)) return *why;
  SimulationOptions ideal = options;
  ideal.ideal_links = true;
  ideal.costs.alike = true;
  const auto simulation = simulation_of(input, ideal);
  CAPO_ASSERT(simulation.has_value(), "a step of a few microbatches runs under every placement");
  Problem problem{.frame = frame, .series = Reading(**simulation).series()};
  if (auto why = refuse_calls(problem)) return *std::move(why);
  problem.of_rank.resize(as_index(frame.ranks));
  for (SeriesId id = 0; id < problem.series.size(); ++id) {
    problem.of_rank[problem.series[id].rank].push_back(id);
  }
  if (options.memory_limit) problem.memory_limit = *options.memory_limit;
  const Simulation& step = **simulation;
  problem.closed_forms = lower_bounds(step.subject(), step.costs(), frame.microbatches,
                                      step.memory_model(), problem.memory_limit);
  return problem;
}

Schedule placed(const Frame& frame) {
  return schedule_of(frame, PublishedOrders(as_index(frame.ranks)));
}

Schedule schedule_of(const Problem& problem, const Orders& orders) {
  constexpr Kind kKinds[]{Kind::Forward, Kind::BackwardInput, Kind::BackwardWeight};
  const StageMap map(placed(problem.frame));
  std::vector<std::int32_t> next(problem.series.size(), 0);
  PublishedOrders published;
  for (const auto& order : orders) {
    auto& moves = published.emplace_back();
    moves.reserve(order.size());
    for (const SeriesId series : order) {
      moves.push_back({.kind = kKinds[as_index(half_of(series))],
                       .chunk = map.home(static_cast<std::int32_t>(stage_of(series))).chunk,
                       .microbatch = next[series]++});
    }
  }
  return schedule_of(problem.frame, published);
}

namespace {

std::optional<std::string> other_frame(const Frame& frame, const Schedule& schedule) {
  if (schedule.ranks.size() != as_index(frame.ranks)) {
    return fmt::format("it has {} ranks, not {}", schedule.ranks.size(), frame.ranks);
  }
  const Schedule meant = placed(frame);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const RankOrder& order = schedule.ranks[rank];
    if (order.chunks != frame.chunks) {
      return fmt::format("rank {} has {} chunks, not {}", rank, order.chunks, frame.chunks);
    }
    const bool wired = schedule.topology != Topology::Independent;
    if (wired && order.stages != meant.ranks[rank].stages) {
      return fmt::format("its stages on rank {} are not those of the placement {}", rank,
                         name_of(frame.topology));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Orders, std::string> orders_of(const Problem& problem, const Schedule& schedule) {
  if (auto why = other_frame(problem.frame, schedule)) return *std::move(why);
  const StageMap map(placed(problem.frame));
  Orders orders(schedule.ranks.size());
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const std::vector<Delay> delay = resolved_delay(schedule.ranks[rank]);
    std::vector<std::uint32_t> count(problem.series.size(), 0);
    orders[rank].reserve(problem.tasks_of_rank());
    const auto add = [&](std::size_t stage, Half half) {
      orders[rank].push_back(series_of(stage, half));
      ++count[orders[rank].back()];
    };
    for (const Entry& entry : schedule.ranks[rank].order) {
      if (!is_compute(entry.kind)) continue;
      const StageId stage = map.stage_of(static_cast<std::int32_t>(rank), entry.chunk);
      const Half half = half_for(entry.kind);
      add(stage.index(), half);
      const bool whole =
          entry.kind == Kind::Backward && delay[entry.chunk.index()] != Delay::Always;
      if (whole) add(stage.index(), Half::Weight);
    }
    for (const SeriesId series : problem.of_rank[rank]) {
      if (count[series] == problem.microbatches()) continue;
      return fmt::format("rank {} runs chunk {} with {} microbatches, not {}", rank,
                         +map.home(static_cast<std::int32_t>(stage_of(series))).chunk,
                         count[series], problem.microbatches());
    }
  }
  return orders;
}

Problem relaxed(Problem problem) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    Series& backward = problem.series[series_of(stage, Half::Backward)];
    if (backward.during <= 0) continue;
    // A backward may leave less than its forward kept.
    const double kept = problem.series[series_of(stage, Half::Forward)].holds;
    const double more = std::exchange(backward.during, 0) + backward.holds;
    backward.holds = std::min(0.0, more);
    if (more >= 0) problem.series[series_of(stage, Half::Weight)].holds = -kept;
  }
  return problem;
}

Problem with_weights_behind(Problem problem) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    Series& backward = problem.series[series_of(stage, Half::Backward)];
    Series& weight = problem.series[series_of(stage, Half::Weight)];
    if (backward.awaited_by != kNoSeries) {
      problem.series[backward.awaited_by].lag -= weight.takes;
    }
    backward.takes += std::exchange(weight.takes, 0);
    backward.holds += std::exchange(weight.holds, 0);
  }
  return problem;
}

Orders with_weights_behind(const Orders& orders) {
  Orders behind;
  for (const auto& order : orders) {
    auto& rank = behind.emplace_back();
    for (const SeriesId series : order) {
      if (half_of(series) == Half::Weight) continue;
      rank.push_back(series);
      if (half_of(series) == Half::Backward) rank.push_back(series + 1);
    }
  }
  return behind;
}

}  // namespace capo::optimise

// How fast any schedule could be: bounds below which no order of the same placement gets.
//
// A timeline alone does not say whether it is good; the distance to a bound does. Three bounds for
// a linear placement with costs that are the same everywhere (F, B, W and the latency c of a hop; p
// ranks, m microbatches, memory for K microbatches on a rank, kept share w of it behind B; k =
// floor(K)), for rank i from 0:
//
//   chain_i = (p-i)F + (p-1-i)(B+2c)             from the first F to the first B, at least
//   head_i  = max(0, chain_i - min(m,k) F)       idle before the first B: at most k F fit
//   idle_i  = head_i + floor((m-1-k)/k) win + last, where the windows F_j to B_j of microbatches
//             j = 0, k, 2k, ... and m-1 are disjoint and offer too little work (0 if m <= k): that
//             of x microbatches before their B and y before their W, x + wy <= K-1
//   L1 = start_i + m(F+B+W) + idle_i
//   L2 = start_i + head_i + m(F+B) + i(B+c) + W
//   L3 = start_i + m(chain_i + B + wW)/K         residence times microbatches <= memory times time
//
// start_i = i(F+c) for the makespan and 0 for the span, which L2 says nothing about. On a V
// placement with two chunks the same with chunk costs, twice the memory in chunks and the chain
// down and up. Everywhere else, where costs differ, and where chunks recompute: a rank's earliest
// beginning, its work, and what must follow its last task; and the longest way of one microbatch.
// If the order puts several weight gradients into one call, W is what each takes in the largest of
// its calls. Derived in the notes on published schedules; checked there against proven optima.
// Tested by bounds_test.cpp.

#include "core/base/index.h"
#include "core/graph/stage_map.h"
#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace capo {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRoundedMemory = 1e-9;

// A weight gradient takes this share of its time in the largest call of the step, at most all of
// it.
double least_share(const TaskCosts& costs, std::int32_t call) {
  return call > 1 ? std::min(1.0, (1 + (call - 1) * costs.fuse) / call) : 1;
}

enum class Shape { Linear, V, Other };

Shape shape_of(const StageMap& map, std::size_t ranks) {
  const auto p = static_cast<std::int32_t>(ranks);
  if (!map.wired() || p == 0 || (map.stages() != p && map.stages() != 2 * p)) return Shape::Other;
  for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
    if (map.home(stage).rank != (stage < p ? stage : 2 * p - 1 - stage)) return Shape::Other;
    if (stage > 0 && map.before(stage) == kNoStage) return Shape::Other;
  }
  return map.stages() == p ? Shape::Linear : Shape::V;
}

void raise(Bound& bound, double value, const char* by, std::int32_t rank) {
  if (value > bound.value) bound = {.value = value, .by = by, .rank = rank};
}

// The letters of the formulas in the head comment. Costs are those of a chunk.
struct Uniform {
  double f, b, w, c;
  double most_w;  ///< W where it takes longest; `w` is W where it takes least
  double p, m;
  double kept;    ///< the share of what a forward takes that is held after its input-gradient half
  double memory;  ///< K, in forwards of one chunk

  // How many forwards fit before the first backward.
  [[nodiscard]] double fit(double forwards) const {
    return std::min(forwards, std::floor(memory + kRoundedMemory));
  }

  // The work that other microbatches can offer inside a window, besides forwards. Each is held when
  // it begins, so that they are whole ones.
  [[nodiscard]] double offer() const {
    if (kept <= 0) return kInfinite;
    const double room = memory * (1 + kRoundedMemory) - 1;
    double most = 0;
    for (double before_b = 0; before_b <= room; ++before_b) {
      const double before_w = std::floor((room - before_b) / kept);
      most = std::max(most, before_b * (b + most_w) + before_w * most_w);
    }
    return most;
  }
};

void bound_linear(const Uniform& u, Bounds& bounds) {
  const double work = u.m * (u.f + u.b + u.w);
  const double k = u.fit(kInfinite);
  const double offer = u.m > k ? u.offer() : 0;
  for (std::int32_t rank = 0; rank < u.p; ++rank) {
    const double i = rank;
    const double start = i * (u.f + u.c);
    const double chain = (u.p - i) * u.f + (u.p - 1 - i) * (u.b + 2 * u.c);
    const double head = std::max(0.0, chain - u.fit(u.m) * u.f);
    double idle = head;
    if (u.m > k) {
      const double windows = std::floor((u.m - 1 - k) / k);
      idle += windows * std::max(0.0, chain - k * u.f - offer);
      idle += std::max(0.0, chain - u.f - offer);
    }
    const double residence = u.m * (chain + u.b + u.kept * u.w) / u.memory;
    raise(bounds.makespan, start + work + idle, "L1", rank);
    raise(bounds.makespan, start + head + u.m * (u.f + u.b) + i * (u.b + u.c) + u.w, "L2", rank);
    raise(bounds.makespan, start + residence, "L3", rank);
    raise(bounds.span, work + idle, "L1", rank);
    raise(bounds.span, residence, "L3", rank);
  }
}

void bound_v(const Uniform& u, Bounds& bounds) {
  const double work = 2 * u.m * (u.f + u.b + u.w);
  for (std::int32_t rank = 0; rank < u.p; ++rank) {
    const double i = rank;
    const double start = i * (u.f + u.c);
    const double chain = (2 * u.p - i) * u.f + i * u.b + (2 * u.p - 2) * u.c;
    const double head = std::max(0.0, chain - u.fit(2 * u.m) * u.f);
    const double residence =
        u.m * ((2 * u.p + 1) * (u.f + u.b) + 2 * (2 * u.p - 2) * u.c + 2 * u.kept * u.w) / u.memory;
    raise(bounds.makespan, start + work + head, "L1", rank);
    raise(bounds.makespan, start + head + 2 * u.m * (u.f + u.b) + i * (u.b + u.c) + u.w, "L2",
          rank);
    raise(bounds.makespan, start + residence, "L3", rank);
    raise(bounds.span, work + head, "L1", rank);
    raise(bounds.span, residence, "L3", rank);
  }
}

// A chunk takes so much at least: a whole backward may take less than its halves one after the
// other.
TaskCosts least_of_chunk(const Costs& costs, std::int32_t rank, std::int32_t chunk,
                         std::int32_t layers) {
  TaskCosts least = costs.of_chunk(rank, chunk, std::max(layers, 1));
  const double both = least.backward + least.weight + std::min(0.0, least.more_of_whole);
  least.backward = std::min(least.backward, both);
  least.weight = both - least.backward;
  return least;
}

// The first whole backward of a chunk, which has no gradient to add to, takes so long.
double first_whole(const TaskCosts& costs) {
  const double whole = costs.backward + costs.weight + costs.more_of_whole;
  return whole - less_without_grad(costs, whole);
}

// A weight gradient takes so much at most, behind an input half that takes `backward`.
double most_weight(const TaskCosts& costs, double backward, std::int32_t call) {
  const double more = costs.backward - backward + std::max(0.0, costs.more_of_whole);
  return more + costs.weight * (call > 1 ? std::max(1.0, costs.fuse) : 1);
}

// Bounds from work and ways, which hold for every placement and all costs.
class General {
 public:
  /// `call`: how many weight gradients the largest call has.
  General(const Subject& subject, const Costs& costs, std::int32_t microbatches, std::int32_t call)
      : subject_(subject), costs_(costs), microbatches_(microbatches) {
    const auto layers = layer_counts(subject.schedule);
    for (std::int32_t stage = 0; stage < subject.map.stages(); ++stage) {
      const StageMap::Place& home = subject.map.home(stage);
      const std::int32_t count = layers[RankId(home.rank).index()][ChunkId(home.chunk).index()];
      stages_.push_back(least_of_chunk(costs, home.rank, home.chunk, count));
      const TaskCosts& least = stages_.back();
      firsts_.push_back(
          costs.alike ? kInfinite
                      : first_whole(costs.of_chunk(home.rank, home.chunk, std::max(count, 1))));
      less_.push_back(std::max(0.0, least.backward + least.weight - firsts_.back()));
      stages_.back().weight *= least_share(stages_.back(), call);
    }
    arrive();
  }

  void raise_bounds(Bounds& bounds) const {
    // Weight gradients on a stream of their own are no work of the stream that computes.
    const bool apart = std::any_of(subject_.graph.streams.begin(), subject_.graph.streams.end(),
                                   [](const Stream& stream) { return stream.name == "wgrad"; });
    const std::size_t ranks = subject_.schedule.ranks.size();
    std::vector<double> work(ranks, 0);
    std::vector<double> earliest(ranks, kInfinite);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const auto rank = subject_.map.home(static_cast<std::int32_t>(stage)).rank.index();
      const TaskCosts& costs = stages_[stage];
      work[rank] += microbatches_ * (costs.forward + costs.backward + (apart ? 0 : costs.weight));
      work[rank] -= less_[stage];
      earliest[rank] = std::min(earliest[rank], arrival_[stage]);
      raise(bounds.makespan, path_[stage], "path", -1);
      raise(bounds.span, path_[stage], "path", -1);
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (work[rank] == 0) continue;
      raise(bounds.makespan, earliest[rank] + work[rank], "work", static_cast<std::int32_t>(rank));
      raise(bounds.span, work[rank], "work", static_cast<std::int32_t>(rank));
    }
  }

 private:
  [[nodiscard]] double hop(std::int32_t from, std::int32_t to) const {
    const StageMap& map = subject_.map;
    if (map.same_rank(from, to)) return 0;
    return costs_.between(map.home(from).rank, map.home(to).rank).total();
  }

  // The earliest time of the first microbatch at each stage, and how long it takes from
  // there to the last stage of its pipeline and back.
  void arrive() {
    arrival_.assign(stages_.size(), 0);
    path_.assign(stages_.size(), 0);
    for (std::int32_t stage = 0; stage < subject_.map.stages(); ++stage) {
      const auto at = StageId(stage).index();
      const std::int32_t before = subject_.map.before(stage);
      if (before != kNoStage) {
        arrival_[at] = arrival_[at - 1] + stages_[at - 1].forward + hop(before, stage);
      }
    }
    for (std::int32_t stage = subject_.map.stages() - 1; stage >= 0; --stage) {
      const auto at = StageId(stage).index();
      const std::int32_t after = subject_.map.after(stage);
      path_[at] = stages_[at].forward + std::min(stages_[at].backward, firsts_[at]);
      if (after != kNoStage) path_[at] += path_[at + 1] + hop(stage, after) + hop(after, stage);
    }
  }

  const Subject& subject_;
  const Costs& costs_;
  double microbatches_;
  std::vector<TaskCosts> stages_;
  std::vector<double> firsts_;  // what the first backward of a stage takes, if it is whole
  std::vector<double> less_;    // than others by so much
  std::vector<double> arrival_;
  std::vector<double> path_;
};

}  // namespace

Bounds lower_bounds(const Subject& subject, const Costs& costs, std::int32_t microbatches,
                    const MemoryChange& memory, double memory_limit) {
  Bounds bounds{.memory = memory_limit};
  const std::size_t ranks = subject.schedule.ranks.size();
  if (ranks == 0 || subject.map.stages() == 0) return bounds;
  const std::int32_t call = largest_call(subject);
  General(subject, costs, microbatches, call).raise_bounds(bounds);

  const Shape shape = shape_of(subject.map, ranks);
  const bool one_stream = std::none_of(
      subject.graph.streams.begin(), subject.graph.streams.end(), [](const Stream& stream) {
        return stream.runs == Stream::Runs::Computations && !stream.name.empty();
      });
  if (shape != Shape::Other && costs.uniform() && one_stream) {
    const auto layers = layer_counts(subject.schedule);
    const TaskCosts chunk = least_of_chunk(costs, 0, 1, layers[0][0]);
    const Uniform uniform{
        .f = chunk.forward,
        .b = chunk.backward,
        .w = chunk.weight * least_share(chunk, call),
        .c = costs.between(-1, -1).total(),
        .most_w =
            most_weight(costs.of_chunk(0, 1, std::max(layers[0][0], 1)), chunk.backward, call),
        .p = static_cast<double>(ranks),
        .m = static_cast<double>(microbatches),
        .kept = memory.forward > 0 ? -memory.weight / memory.forward : 0,
        .memory = memory.forward > 0 ? memory_limit / memory.forward * (shape == Shape::V ? 2 : 1)
                                     : kInfinite};
    if (uniform.fit(kInfinite) >= 1) {
      shape == Shape::Linear ? bound_linear(uniform, bounds) : bound_v(uniform, bounds);
    }
  }
  // Composites may take less than their members one after the other.
  const double least = std::min(1.0, costs.overlap);
  bounds.makespan.value *= least;
  bounds.span.value *= least;
  return bounds;
}

}  // namespace capo

#include "optimise/rounds.h"

#include "optimise/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>

namespace capo::optimise {

namespace {

using Turns = std::vector<TimedTurn>;

/// Ends that differ by less than this share of themselves are equal: they are sums.
constexpr double kEqualEnds = 1e-11;

bool are_same(const TimedTurn& turn, const TimedTurn& other, std::int32_t later) {
  return turn.what == other.what && turn.microbatch + later == other.microbatch;
}

std::int32_t microbatches_of(const TimedOrders& orders) {
  std::int32_t most = 0;
  for (const Turns& rank : orders) {
    for (const TimedTurn& turn : rank) most = std::max(most, turn.microbatch + 1);
  }
  return most;
}

/// A rank's tasks of fewer and more rounds, and where they part.
struct Cut {
  const Turns& few;
  const Turns& more;
  std::size_t at = 0;     // so many tasks are the same from the beginning
  std::size_t round = 0;  // so many are put in there
};

// nullopt if more is put in than one piece, or if less than a round comes before it.
std::optional<Cut> cut_of(const Turns& few, const Turns& more, std::int32_t round) {
  if (more.size() <= few.size()) return std::nullopt;
  Cut cut{.few = few, .more = more, .round = more.size() - few.size()};
  while (cut.at < few.size() && are_same(few[cut.at], more[cut.at], 0)) ++cut.at;
  if (cut.at < cut.round) return std::nullopt;
  for (std::size_t i = cut.at; i < few.size(); ++i) {
    if (!are_same(few[i], more[i + cut.round], round)) return std::nullopt;
  }
  return cut;
}

// Whether `most` has what `more` puts in, but so often.
bool is_put_in_again(const Cut& cut, const Turns& most, std::int32_t round, std::size_t times) {
  if (most.size() != cut.few.size() + times * cut.round) return false;
  const auto repeated = [&](std::size_t i) {
    const auto more = static_cast<std::int32_t>((i - cut.at) / cut.round);
    return are_same(cut.more[cut.at + (i - cut.at) % cut.round], most[i], more * round);
  };
  const std::size_t end = cut.at + times * cut.round;
  const auto all = static_cast<std::int32_t>(times) * round;
  for (std::size_t i = 0; i < most.size(); ++i) {
    const bool same = i < cut.at ? are_same(cut.few[i], most[i], 0)
                      : i < end  ? repeated(i)
                                 : are_same(cut.few[i - times * cut.round], most[i], all);
    if (!same) return false;
  }
  return true;
}

// The first microbatch of which anything runs behind the cut, on any rank.
std::int32_t first_behind(const std::vector<Cut>& cuts) {
  std::int32_t first = std::numeric_limits<std::int32_t>::max();
  for (const Cut& cut : cuts) {
    const auto look_at = [&](const Turns& turns, std::size_t end) {
      for (std::size_t i = cut.at; i < end; ++i) first = std::min(first, turns[i].microbatch);
    };
    look_at(cut.few, cut.few.size());
    look_at(cut.more, cut.at + cut.round);
  }
  return first;
}

// Whether what tasks behind the cut wait for is in the round before it.
bool looks_back_a_round(const Cut& cut, std::int32_t first, std::int32_t round) {
  for (std::size_t i = 0; i < cut.at; ++i) {
    const std::int32_t before = i + cut.round < cut.at ? first : first + round;
    if (cut.few[i].microbatch >= before) return false;
  }
  return true;
}

// Raises `least` and `most` to by how much later a rank's tasks of the round before the cut are a
// round later. Returns false if these are other tasks.
bool find_later(const Cut& cut, std::int32_t round, double& least, double& most) {
  for (std::size_t i = cut.at - cut.round; i < cut.at; ++i) {
    const TimedTurn& turn = cut.few[i];
    const TimedTurn& next = cut.more[i + cut.round];
    if (!are_same(turn, next, round)) return false;
    least = std::min(least, next.end - turn.end);
    most = std::max(most, next.end - turn.end);
  }
  return true;
}

}  // namespace

TimedOrders timed_orders(const Problem& problem, const Orders& orders) {
  const std::vector<double> ends = ends_of(problem, orders);
  std::vector<std::uint32_t> count(problem.series.size(), 0);
  TimedOrders timed;
  for (const auto& order : orders) {
    Turns& rank = timed.emplace_back();
    rank.reserve(order.size());
    for (const SeriesId series : order) {
      const std::uint32_t k = count[series]++;
      rank.push_back({.what = series,
                      .microbatch = static_cast<std::int32_t>(k),
                      .end = ends[series * problem.microbatches() + k]});
    }
  }
  return timed;
}

TimedOrders timed_orders(const Simulation& simulation) {
  const TaskGraph& graph = simulation.graph();
  TimedOrders timed(simulation.ranks().size());
  std::map<std::uint32_t, std::int32_t> first;  // microbatch of a stage: two pipelines share them
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const auto stage = static_cast<std::uint32_t>(std::int32_t{task.stage});
    const std::int32_t microbatch = task.microbatch;
    const auto [at, is_new] = first.try_emplace(stage, microbatch);
    if (!is_new) at->second = std::min(at->second, microbatch);
    const std::uint32_t what =
        (stage << 8U) + (task.member ? 128U : 0U) + static_cast<std::uint32_t>(task.kind);
    timed[task.rank.index()].push_back(
        {.what = what, .microbatch = microbatch, .end = simulation.times().end_of(graph, id)});
  }
  for (Turns& rank : timed) {
    for (TimedTurn& turn : rank) turn.microbatch -= first[turn.what >> 8U];
  }
  return timed;
}

std::optional<double> later_by_round(const TimedOrders& few, const TimedOrders& more,
                                     const TimedOrders& most) {
  const std::int32_t round = microbatches_of(more) - microbatches_of(few);
  const std::int32_t all = microbatches_of(most) - microbatches_of(few);
  if (round <= 0 || all % round != 0) return std::nullopt;
  const auto times = static_cast<std::size_t>(all / round);
  std::vector<Cut> cuts;
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    const auto cut = cut_of(few[rank], more[rank], round);
    if (!cut || !is_put_in_again(*cut, most[rank], round, times)) return std::nullopt;
    cuts.push_back(*cut);
  }
  const std::int32_t first = first_behind(cuts);
  double least = std::numeric_limits<double>::infinity();
  double largest = -least;
  double end = 0;
  for (const Cut& cut : cuts) {
    if (!looks_back_a_round(cut, first, round)) return std::nullopt;
    if (!find_later(cut, round, least, largest)) return std::nullopt;
    end = std::max(end, cut.more.back().end);
  }
  if (largest - least > kEqualEnds * end) return std::nullopt;
  return 0.5 * (least + largest);
}

}  // namespace capo::optimise

#include "optimise/construct.h"

#include "core/base/index.h"
#include "optimise/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace capo::optimise {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// A task that a rank could run next.
struct Candidate {
  SeriesId series = kNoSeries;
  double begin = kUnknown;
};

class Construction {
 public:
  Construction(const Problem& problem, const Rules& rules)
      : problem_(problem),
        rules_(rules),
        calls_(problem),
        remakes_(problem.remakes()),
        count_(problem.series.size(), 0),
        end_(problem.tasks(), kUnknown),
        ranks_(problem.of_rank.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      double all = 0;
      for (const SeriesId series : problem.of_rank[rank]) {
        if (half_of(series) == Half::Forward) all += problem.series[series].holds;
        all += problem.series[series].during;
      }
      all *= problem.microbatches();
      const double most = std::min(problem.memory_limit, all);
      ranks_[rank].limit = rules.shares.empty() ? most : most * rules.shares[rank];
      ranks_[rank].order.reserve(problem.tasks_of_rank());
    }
  }

  std::optional<Orders> run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) decide(rank);
    for (std::uint32_t left = problem_.tasks(); left > 0; --left) {
      std::size_t soonest = 0;
      for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].next.begin < ranks_[soonest].next.begin) soonest = rank;
      }
      if (ranks_[soonest].next.series == kNoSeries) return std::nullopt;
      begin_next(soonest);
    }
    Orders orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  struct Rank {
    double clock = 0;
    double held = 0;
    double limit = 0;
    Half last = Half::Weight;  ///< the last forward or backward; Weight: there was none
    std::uint32_t place = 0;   ///< of the last task in its call
    Candidate next;
    std::vector<SeriesId> order;
  };

  [[nodiscard]] static SeriesId last_of(const Rank& rank) {
    return rank.order.empty() ? kNoSeries : rank.order.back();
  }
  /// The place in a call that a task of the series would have now.
  [[nodiscard]] std::uint32_t place_of(const Rank& rank, SeriesId series) const {
    return calls_.place_behind(last_of(rank), rank.place, series);
  }

  // Whether a weight gradient of the series goes on with a call, or begins one that those which
  // wait, or those which are left, fill.
  [[nodiscard]] bool fills_call(const Rank& rank, SeriesId weight) const {
    if (place_of(rank, weight) > 0) return true;
    const SeriesId backward = series_of(stage_of(weight), Half::Backward);
    const auto most = static_cast<std::uint32_t>(problem_.frame.weights_in_call);
    const std::uint32_t left = problem_.microbatches() - count_[weight];
    return count_[backward] - count_[weight] >= std::min(most, left);
  }

  void begin_next(std::size_t rank) {
    Rank& of = ranks_[rank];
    const SeriesId id = of.next.series;
    const Series& series = problem_.series[id];
    of.place = place_of(of, id);
    of.clock = of.next.begin + calls_.takes(id, of.place);
    of.held = series.held_behind(of.held);
    of.order.push_back(id);
    if (half_of(id) != Half::Weight) of.last = half_of(id);
    end_[id * problem_.microbatches() + count_[id]] = of.clock;
    ++count_[id];
    decide(rank);
    if (series.awaited_by != kNoSeries) {
      decide(problem_.series[series.awaited_by].rank);
    }
  }

  // When the next task of a series can begin; kUnknown if that is not known yet, or never.
  [[nodiscard]] double begin_of(SeriesId id, double clock) const {
    const Series& series = problem_.series[id];
    const std::uint32_t microbatch = count_[id];
    if (microbatch == problem_.microbatches()) return kUnknown;
    for (const SeriesId behind : series.behind) {
      if (count_[behind] <= microbatch) return kUnknown;
    }
    if (series.waits_for == kNoSeries) return clock;
    const double made = end_[series.waits_for * problem_.microbatches() + microbatch];
    return std::max(clock, made + series.lag);
  }

  // Whether a series is of the second of two pipelines.
  [[nodiscard]] bool is_second(SeriesId series) const {
    return problem_.frame.topology == Topology::Bidirectional &&
           stage_of(series) >= problem_.of_rank.size();
  }

  // Microbatches by age, the older the less; those of two pipelines in turn.
  [[nodiscard]] std::uint32_t age_of(SeriesId series) const {
    return 2 * count_[series] + (is_second(series) ? 1 : 0);
  }

  // The age of the microbatch that is not through the rank's forwards for the longest time.
  [[nodiscard]] std::uint32_t oldest(std::size_t rank) const {
    std::uint32_t oldest = 2 * problem_.microbatches();
    for (const SeriesId series : problem_.of_rank[rank]) {
      if (half_of(series) == Half::Forward) oldest = std::min(oldest, age_of(series));
    }
    return oldest;
  }

  // Returns what the microbatch of this age still takes on the rank, which a younger one leaves
  // alone.
  [[nodiscard]] double kept_free(std::size_t rank, std::uint32_t age) const {
    double kept = 0;
    for (const SeriesId series : problem_.of_rank[rank]) {
      if (half_of(series) != Half::Forward || age_of(series) != age) continue;
      kept += problem_.series[series].holds;
    }
    return kept;
  }

  [[nodiscard]] bool has_room(std::size_t rank, SeriesId series) const {
    if (remakes_) return leaves_older_room(rank, series);
    return half_of(series) != Half::Forward || has_room_for_forward(rank, series);
  }

  [[nodiscard]] bool has_room_for_forward(std::size_t rank, SeriesId forward) const {
    const std::uint32_t first = oldest(rank);
    const bool is_oldest = age_of(forward) == first;
    const double with = ranks_[rank].held + problem_.series[forward].holds +
                        (is_oldest ? 0 : kept_free(rank, first));
    if (!problem_.fits(with)) return false;
    // A share does not stop a microbatch on its way, nor the oldest if nothing is on its way.
    return with <= ranks_[rank].limit * (1 + 1e-9) ||
           (is_oldest && (is_on_its_way(rank, first) || nothing_open(rank)));
  }

  /// The memory of one microbatch on a rank: what is held of it, and the most that will be until it
  /// is through, if the rank runs nothing else from now on.
  struct Footprint {
    double held = 0;
    double most = 0;
    bool through = true;
  };

  [[nodiscard]] Footprint footprint(std::size_t rank, std::uint32_t age) const {
    const std::vector<SeriesId>& all = problem_.of_rank[rank];
    const std::uint32_t k = age / 2;
    const auto is_left = [&](SeriesId id, Half half) {
      return half_of(id) == half && is_second(id) == (age % 2 == 1) && k >= count_[id];
    };
    Footprint of;
    double behind = 0;  // held when its weight gradients that may run have run
    for (const SeriesId id : all) {
      if (half_of(id) != Half::Forward || is_second(id) != (age % 2 == 1)) continue;
      double held = 0;
      for (SeriesId each = id; each < id + 3 && k < count_[each]; ++each) {
        held = problem_.series[each].held_behind(held);
      }
      of.held += held;
      if (k >= count_[id + 1]) behind += held;
      of.through = of.through && k < count_[id + 2];
    }
    of.most = behind;
    for (const SeriesId id : all) {
      if (!is_left(id, Half::Forward)) continue;
      behind += problem_.series[id].holds;
      of.most = std::max(of.most, behind);
    }
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      if (!is_left(*id, Half::Backward)) continue;
      of.most = std::max(of.most, problem_.series[*id].most_held(behind));
      behind = problem_.series[*id].held_behind(behind) + problem_.series[*id + 1].holds;
    }
    return of;
  }

  // Whether all older microbatches could finish behind a task, each when those older than it have.
  // A share does not stop the oldest.
  [[nodiscard]] bool leaves_older_room(std::size_t rank, SeriesId id) const {
    const Series& series = problem_.series[id];
    const double behind = series.held_behind(ranks_[rank].held);
    double most = series.most_held(ranks_[rank].held);
    double given_up = 0;
    const std::uint32_t own = age_of(id);
    bool is_oldest = true;
    const std::uint32_t step = problem_.frame.topology == Topology::Bidirectional ? 1 : 2;
    for (std::uint32_t age = first_open(rank); age < own; age += step) {
      const Footprint older = footprint(rank, age);
      if (older.through) continue;
      is_oldest = false;
      given_up += older.held;
      most = std::max(most, behind - given_up + older.most);
    }
    if (!problem_.fits(most)) return false;
    return half_of(id) != Half::Forward || is_oldest || most <= ranks_[rank].limit * (1 + 1e-9);
  }

  // No microbatch of a smaller age has anything left to run on the rank.
  [[nodiscard]] std::uint32_t first_open(std::size_t rank) const {
    std::uint32_t least = problem_.microbatches();
    for (const SeriesId id : problem_.of_rank[rank]) least = std::min(least, count_[id]);
    return 2 * least;
  }

  // Whether a microbatch has passed a chunk of the rank; with two pipelines there is no second one.
  [[nodiscard]] bool is_on_its_way(std::size_t rank, std::uint32_t age) const {
    return problem_.frame.topology != Topology::Bidirectional &&
           std::any_of(problem_.of_rank[rank].begin(), problem_.of_rank[rank].end(),
                       [&](SeriesId series) {
                         return half_of(series) == Half::Forward && age_of(series) > age;
                       });
  }

  // Whether the rank holds nothing.
  [[nodiscard]] bool nothing_open(std::size_t rank) const {
    return std::all_of(
        problem_.of_rank[rank].begin(), problem_.of_rank[rank].end(), [&](SeriesId series) {
          const std::size_t stage = stage_of(series);
          return count_[series_of(stage, Half::Forward)] == count_[series_of(stage, Half::Weight)];
        });
  }

  // Its class; the lower the sooner.
  [[nodiscard]] int precedence_of(Half half, const Rank& rank) const {
    if (half == Half::Weight) return 2;
    const bool forward_first =
        rules_.first == Rules::First::Forward ||
        (rules_.first == Rules::First::InTurn && rank.last == Half::Backward);
    return (half == Half::Forward) == forward_first ? 0 : 1;
  }

  // Within a class the one that begins first is better, and then depth decides; of weight gradients
  // one that goes on with a call.
  [[nodiscard]] bool better(const Candidate& a, const Candidate& b, const Rank& rank) const {
    if (a.series == kNoSeries || b.series == kNoSeries) return b.series == kNoSeries;
    if (a.begin != b.begin) return a.begin < b.begin;
    const Half half = half_of(a.series);
    if (half == Half::Weight) {
      const bool goes_on = place_of(rank, a.series) > 0;
      if (goes_on != (place_of(rank, b.series) > 0)) return goes_on;
      // The one that has waited longest: of equal counts the later stage, whose backward came
      // first.
      const std::uint32_t age_a = count_[a.series];
      const std::uint32_t age_b = count_[b.series];
      return age_a != age_b ? age_a < age_b : a.series > b.series;
    }
    const bool deep = half == Half::Forward ? rules_.deep_forwards : rules_.deep_backwards;
    return deep ? a.series > b.series : a.series < b.series;
  }

  void decide(std::size_t rank) {
    Rank& of = ranks_[rank];
    std::array<Candidate, 3> best;  // by class
    std::array<bool, 3> blocked{};  // by half: one lacks nothing but room
    for (const SeriesId series : problem_.of_rank[rank]) {
      const Half half = half_of(series);
      const double begin = begin_of(series, of.clock);
      if (begin == kUnknown) continue;
      if (half != Half::Weight && !has_room(rank, series)) {
        blocked.at(as_index(half)) |= begin <= of.clock;
        continue;
      }
      const Candidate candidate{.series = series, .begin = begin};
      Candidate& of_class = best[as_index(precedence_of(half, of))];
      if (better(candidate, of_class, of)) of_class = candidate;
    }
    const Candidate& weight = best[2];
    for (const Half half : {Half::Forward, Half::Backward}) {
      Candidate& instead = best[as_index(precedence_of(half, of))];
      if (blocked.at(as_index(half)) && instead.series == kNoSeries) instead = weight;
    }
    of.next = runs_directly(of, weight.series) ? weight : chosen(best, of);
  }

  // Whether a weight gradient runs before all others.
  [[nodiscard]] bool runs_directly(const Rank& rank, SeriesId weight) const {
    if (weight == kNoSeries) return false;
    if (!rules_.full_calls) return rules_.eager_weights;
    return place_of(rank, weight) > 0 || (rules_.eager_weights && fills_call(rank, weight));
  }

  // The first class that has a candidate, unless one of a lower class fits in front of it.
  [[nodiscard]] Candidate chosen(const std::array<Candidate, 3>& best, const Rank& rank) const {
    Candidate choice;
    for (const Candidate& candidate : best) {
      if (candidate.series == kNoSeries) continue;
      const double takes = calls_.takes(candidate.series, place_of(rank, candidate.series));
      const bool fits = candidate.begin < choice.begin &&
                        candidate.begin + takes <= choice.begin + rules_.patience * takes;
      if (choice.series == kNoSeries || fits) choice = candidate;
    }
    return choice;
  }

  const Problem& problem_;
  const Rules& rules_;
  Calls calls_;
  bool remakes_;                      // backwards take memory
  std::vector<std::uint32_t> count_;  // by series
  std::vector<double> end_;           // by task
  std::vector<Rank> ranks_;
};

}  // namespace

std::optional<Orders> construct(const Problem& problem, const Rules& rules) {
  return Construction(problem, rules).run();
}

std::optional<std::string> why_impossible(const Problem& problem) {
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    double most = 0;
    double held = 0;  // of a microbatch in all chunks of a pipeline so far, which it holds at once
    for (const SeriesId series : problem.of_rank[rank]) {
      if (half_of(series) != Half::Forward) continue;
      if (problem.frame.topology == Topology::Bidirectional) held = 0;
      held += problem.series[series].holds;
      most = std::max(most, problem.series[series + 1].most_held(held));
    }
    if (problem.fits(most)) continue;
    return fmt::format("one microbatch by itself holds {} on rank {}, and {} is the limit", most,
                       rank, problem.memory_limit);
  }
  return std::nullopt;
}

std::vector<Rules> rule_settings(const Problem& problem) {
  std::vector<Rules> all;
  const bool chunks = problem.frame.chunks > 1;
  for (const bool eager : {false, true}) {
    for (const auto first : {Rules::First::Backward, Rules::First::InTurn, Rules::First::Forward}) {
      for (const double patience : {0.0, 0.5, 1.0}) {
        for (const bool deep_forwards : {true, false}) {
          for (const bool deep_backwards : {true, false}) {
            if (!chunks && !(deep_forwards && deep_backwards)) continue;
            all.push_back({.first = first,
                           .deep_forwards = deep_forwards,
                           .deep_backwards = deep_backwards,
                           .eager_weights = eager,
                           .patience = patience});
          }
        }
      }
    }
  }
  if (!problem.fuses()) return all;
  std::vector<Rules> both;  // each setting, and beside it the one that fills calls
  for (Rules& each : all) {
    both.push_back(each);
    each.full_calls = true;
    both.push_back(std::move(each));
  }
  return both;
}

}  // namespace capo::optimise

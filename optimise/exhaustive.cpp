#include "optimise/exhaustive.h"

#include "core/base/assert.h"
#include "optimise/bounds.h"
#include "optimise/jackson.h"
#include "optimise/windows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace capo::optimise {

namespace {

/// So many times are kept of what was looked at, at most: 128 MiB.
constexpr std::size_t kTimesKept = std::size_t{1} << 24;
/// Heads that follow from waiting for each other are raised so often.
constexpr int kPasses = 4;
/// Stopping is asked for so often.
constexpr std::uint64_t kNodesOfSlice = 64;

class Exhaustion {
 public:
  Exhaustion(const Problem& problem, Objective objective, double value, std::uint64_t nodes,
             const std::function<bool()>& stopped)
      : problem_(problem),
        objective_(objective),
        m_(problem.microbatches()),
        unit_(unit_of(problem)),
        most_nodes_(nodes),
        stopped_(stopped),
        count_(problem.series.size(), 0),
        ranks_(problem.of_rank.size()),
        end_(problem.tasks(), 0),
        head_(problem.tasks(), 0),
        tail_(problem.tasks(), 0) {
    for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
      by_turn_.push_back(series_of(stage, Half::Forward));
    }
    for (std::size_t stage = problem.stages(); stage-- > 0;) {
      by_turn_.push_back(series_of(stage, Half::Backward));
      by_turn_.push_back(series_of(stage, Half::Weight));
    }
    find_tails();
    aim_below(value);
  }

  Exhausted run() {
    visit();
    found_.complete = !ended_;
    return std::move(found_);
  }

 private:
  struct Rank {
    double clock = 0;
    double first = 0;  ///< its beginning
    double held = 0;
    SeriesId wanted = kNoSeries;  ///< what it waits for the input of
    std::vector<SeriesId> order;
  };
  /// A task that a rank may run next, or wait for.
  struct Choice {
    SeriesId series = kNoSeries;
    double begin = 0;  ///< at least, if it is not there yet
    bool there = false;
  };

  [[nodiscard]] bool of_span() const { return objective_ == Objective::Span; }
  [[nodiscard]] TaskNumber next_of(SeriesId series) const { return series * m_ + count_[series]; }

  void find_tails() {
    std::optional<Windows> all;
    if (!of_span()) all.emplace(problem_, std::nullopt);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::optional<Windows> own;
      if (of_span()) own.emplace(problem_, rank);
      for (const SeriesId series : problem_.of_rank[rank]) {
        for (TaskNumber task = series * m_; task < (series + 1) * m_; ++task) {
          tail_[task] = (own ? *own : *all).tail(task);
        }
      }
    }
  }

  // Sets the most that a better objective is.
  void aim_below(double value) {
    target_ = unit_ > 0 ? value - unit_ * (1 - 1e-6) : value * (1 - 1e-9);
  }

  // Whether what the next task of a series waits for on another rank has been made.
  [[nodiscard]] bool is_there(SeriesId id) const {
    const SeriesId first = problem_.series[id].waits_for;
    return first == kNoSeries || count_[first] > count_[id];
  }

  [[nodiscard]] double begin_of(SeriesId id) const {
    const Series& series = problem_.series[id];
    const double clock = ranks_[series.rank].clock;
    if (series.waits_for == kNoSeries) return clock;
    return std::max(clock, end_[series.waits_for * m_ + count_[id]] + series.lag);
  }

  // Finds when each task that is left begins at the earliest. A rank that waits runs nothing before
  // what it waits for.
  void find_heads() {
    free_.clear();
    for (const Rank& rank : ranks_) free_.push_back(rank.clock);
    bool waits = true;
    for (int pass = 0; pass < kPasses && waits; ++pass) {
      for (const SeriesId id : by_turn_) {
        for (std::uint32_t k = count_[id]; k < m_; ++k) find_head(id, k);
      }
      waits = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const SeriesId wanted = ranks_[rank].wanted;
        if (wanted == kNoSeries) continue;
        const double ends = head_[next_of(wanted)] + problem_.series[wanted].takes;
        waits = waits || ends > free_[rank];
        free_[rank] = std::max(free_[rank], ends);
      }
    }
  }

  void find_head(SeriesId id, std::uint32_t k) {
    const Series& series = problem_.series[id];
    const bool is_wanted = ranks_[series.rank].wanted == id && k == count_[id];
    double head = is_wanted ? ranks_[series.rank].clock : free_[series.rank];
    const auto wait = [&](SeriesId first, std::uint32_t of, double lag) {
      const TaskNumber task = first * m_ + of;
      const bool has_run = of < count_[first];
      head =
          std::max(head, (has_run ? end_[task] : head_[task] + problem_.series[first].takes) + lag);
    };
    if (series.waits_for != kNoSeries) wait(series.waits_for, k, series.lag);
    for (const SeriesId first : series.behind) wait(first, k, 0);
    if (k > 0) wait(id, k - 1, 0);
    head_[id * m_ + k] = head;
  }

  // Whether what is left of some rank takes too long. The span of a rank that has not begun tells
  // nothing yet.
  [[nodiscard]] bool is_too_late() {
    find_heads();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const double begins = of_span() ? ranks_[rank].first : 0;
      if (of_span() && ranks_[rank].order.empty()) continue;
      std::vector<Job> jobs;
      for (const SeriesId id : problem_.of_rank[rank]) {
        for (TaskNumber task = next_of(id); task < (id + 1) * m_; ++task) {
          jobs.push_back({head_[task], problem_.series[id].takes, tail_[task]});
        }
      }
      const double ends = std::max(jackson(std::move(jobs)), ranks_[rank].clock);
      if (ends - begins > target_) return true;
    }
    return false;
  }

  // The times on which all that is left depends: when ranks are free and have begun, and when what
  // nobody has read was made. Which these are follows from the key.
  [[nodiscard]] std::vector<double> times() const {
    std::vector<double> times;
    for (const Rank& rank : ranks_) times.push_back(rank.clock);
    for (SeriesId id = 0; id < problem_.series.size(); ++id) {
      const SeriesId by = problem_.series[id].awaited_by;
      if (by == kNoSeries) continue;
      for (std::uint32_t k = count_[by]; k < count_[id]; ++k) times.push_back(end_[id * m_ + k]);
    }
    if (!of_span()) return times;
    for (const Rank& rank : ranks_) times.push_back(-rank.first);
    return times;
  }

  [[nodiscard]] std::string key() const {
    std::string key;
    for (const std::uint32_t count : count_) key += static_cast<char>(count);
    for (const Rank& rank : ranks_) key += static_cast<char>(rank.wanted + 1);
    return key;
  }

  // Whether the same was looked at when nothing was later. A span is longer if its rank begins
  // sooner, so that times of ranks that have not begun are to be the same.
  [[nodiscard]] bool was_better_before() {
    auto& before = seen_[key()];
    const std::vector<double> now = times();
    const bool equal_only = of_span() && !all_have_begun();
    const auto no_later = [&](const std::vector<double>& a, const std::vector<double>& b) {
      if (equal_only) return a == b;
      return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
    };
    for (const auto& each : before) {
      if (no_later(each, now)) return true;
    }
    const auto gone = std::remove_if(before.begin(), before.end(),
                                     [&](const auto& each) { return no_later(now, each); });
    kept_ -= static_cast<std::size_t>(before.end() - gone) * now.size();
    before.erase(gone, before.end());
    if (kept_ + now.size() <= kTimesKept) {
      kept_ += now.size();
      before.push_back(now);
    }
    return false;
  }

  // The rank that is asked next: one whose input has come, else the one that is free first and does
  // not wait; none if all wait.
  [[nodiscard]] std::optional<std::size_t> next_rank() const {
    std::optional<std::size_t> next;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& of = ranks_[rank];
      if (of.order.size() == problem_.tasks_of_rank()) continue;
      if (of.wanted != kNoSeries) {
        if (is_there(of.wanted)) return rank;
        continue;
      }
      if (!next || of.clock < ranks_[*next].clock) next = rank;
    }
    return next;
  }

  [[nodiscard]] std::vector<Choice> choices_of(std::size_t rank) const {
    std::vector<Choice> choices;
    for (const SeriesId id : problem_.of_rank[rank]) {
      const Series& series = problem_.series[id];
      if (count_[id] == m_) continue;
      const bool waits_here =
          std::any_of(series.behind.begin(), series.behind.end(),
                      [&](SeriesId first) { return count_[first] <= count_[id]; });
      if (waits_here || !problem_.fits(series.most_held(ranks_[rank].held))) continue;
      const bool there = is_there(id);
      choices.push_back(
          {.series = id, .begin = there ? begin_of(id) : head_[next_of(id)], .there = there});
    }
    leave_waiting(choices);
    std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      return tail_[next_of(a.series)] > tail_[next_of(b.series)];
    });
    return choices;
  }

  [[nodiscard]] bool all_have_begun() const {
    return std::none_of(ranks_.begin(), ranks_.end(),
                        [](const Rank& rank) { return rank.order.empty(); });
  }

  // Leaves choices for which the rank waits although another task fits in front of them.
  void leave_waiting(std::vector<Choice>& choices) const {
    if (of_span() && !all_have_begun()) return;
    const bool limited = problem_.memory_limit < std::numeric_limits<double>::infinity();
    double fits_until = std::numeric_limits<double>::infinity();
    for (const Choice& each : choices) {
      const Series& series = problem_.series[each.series];
      const double takes = series.takes;
      const bool takes_memory =
          limited && (half_of(each.series) == Half::Forward || series.during > 0);
      if (each.there && takes > 0 && !takes_memory) {
        fits_until = std::min(fits_until, each.begin + takes);
      }
    }
    std::erase_if(choices, [&](const Choice& each) { return each.begin >= fits_until; });
  }

  // Runs a task that is there, and all that follows; then takes it back.
  void visit_with(std::size_t rank, SeriesId id) {
    Rank& of = ranks_[rank];
    const double clock = of.clock;
    const double first = of.first;
    const double held = of.held;
    const SeriesId wanted = std::exchange(of.wanted, kNoSeries);
    const double begin = begin_of(id);
    if (of.order.empty()) of.first = begin;
    of.clock = end_[next_of(id)] = begin + problem_.series[id].takes;
    of.held = problem_.series[id].held_behind(of.held);
    of.order.push_back(id);
    ++count_[id];
    ++done_;
    visit();
    --done_;
    --count_[id];
    of.order.pop_back();
    of.held = held;
    of.wanted = wanted;
    of.clock = clock;
    of.first = first;
  }

  void visit() {
    if (ended_ || ++found_.nodes > most_nodes_ ||
        (found_.nodes % kNodesOfSlice == 0 && stopped_())) {
      ended_ = true;
      return;
    }
    if (done_ == problem_.tasks()) return take();
    if (is_too_late() || was_better_before()) return;
    const auto rank = next_rank();
    if (!rank) return;  // they wait for each other
    if (ranks_[*rank].wanted != kNoSeries) return visit_with(*rank, ranks_[*rank].wanted);
    for (const Choice& choice : choices_of(*rank)) {
      if (choice.there) {
        visit_with(*rank, choice.series);
      } else {
        ranks_[*rank].wanted = choice.series;
        visit();
        ranks_[*rank].wanted = kNoSeries;
      }
    }
  }

  void take() {
    double value = 0;
    for (const Rank& rank : ranks_) {
      value = std::max(value, rank.clock - (of_span() ? rank.first : 0));
    }
    if (value > target_) return;
    aim_below(value);
    found_.better.emplace();
    for (const Rank& rank : ranks_) found_.better->push_back(rank.order);
  }

  const Problem& problem_;
  Objective objective_;
  std::uint32_t m_;
  double unit_;
  std::uint64_t most_nodes_;
  const std::function<bool()>& stopped_;
  std::vector<SeriesId> by_turn_;  // each behind what it waits for
  double target_ = 0;
  std::vector<std::uint32_t> count_;  // by series: so many have run
  std::vector<Rank> ranks_;
  std::uint32_t done_ = 0;
  std::vector<double> end_;   // by task, of those that have run
  std::vector<double> head_;  // by task, of those that are left
  std::vector<double> tail_;  // by task
  std::vector<double> free_;  // by rank: when it begins with what it does not wait for
  std::unordered_map<std::string, std::vector<std::vector<double>>> seen_;
  std::size_t kept_ = 0;
  bool ended_ = false;
  Exhausted found_;
};

}  // namespace

Exhausted exhaust(const Problem& problem, Objective objective, double value, std::uint64_t nodes,
                  const std::function<bool()>& stopped) {
  CAPO_ASSERT(!problem.fuses(), "each weight gradient is a call of its own");
  CAPO_ASSERT(problem.tasks() <= kMostTasksOfExhaustion, "a key has a byte for each count");
  return Exhaustion(problem, objective, value, nodes, stopped).run();
}

}  // namespace capo::optimise

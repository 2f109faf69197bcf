// Shows a lower bound to whoever trusts no line of capo's: a text that tools/check_bound.py, which
// shares nothing with capo, checks by itself.
//
//   {"schema": 1, "objective": "makespan", "bound": 14, "rank": 1,
//    "problem": {"placement": "loop", "ranks": 2, "chunks": 1, "microbatches": 4,
//                "memory_limit": null,
//                "stages": [{"takes": [1,1,1], "holds": [1,0,-1], "lags": [0,0]}, ...]},
//    "facts": [{"head": "F0.0", "by": "start", "from": []},
//              {"head": "F1.0", "by": "wait", "from": [0]},
//              {"tail": "W1.3", "by": "end", "from": []}],
//    "argument": {"by": "machine", "tasks": [{"series": "F1", "first": 0, "last": 3, "head": 1,
//                                             "tail": 2}, ...]},
//    "makespan": 14, "span": 13, "orders": ["F0 F0 B0 W0 ...", ...]}
//
// A fact is that a task begins no earlier than so long after the step's beginning (its head), or
// that so much time follows its end (its tail). It says by which step of reasoning it follows, and
// from which facts before it, but no number: the numbers are the checker's. The classic argument of
// one machine (Carlier) takes some tasks of a rank: their least head, all their work and their
// least tail are no longer than any order. Of a series that has several tasks, the first has the
// least head and the last the least tail. Which tasks these are is read off the shortest sequence
// that may be interrupted.
//
// Weight gradients that are called several at a time make the problem say "fuse_w", how many a call
// takes, and of each stage what a "further" one of a call takes. In the reasoning each takes its
// share of the best call (with_least_weights()), and orders are run in calls.
//
// A stage that recomputes says with "remakes" what its backward takes when it begins. In the
// reasoning but for narrowing and that of memory over time nothing is made again (relaxed()), which
// the checker works out by itself; orders are run with all that they hold.
//
// "exhaustive" says with how many nodes all orders were searched, and below what objective there is
// none; the bound is what the argument shows, since the search has no proof that is short.
//
// The heads and tails here are found again and apart from bounds.cpp, with their reasons; where
// they show less than the bound, the certificate says how much. A further step of reasoning is a
// word in By and a function of the checker's; so is a further argument. One of them is narrowing
// (narrowing.cpp), which has no facts: the checker is told by when nothing ends, and does it anew.
// Another is any_placement.cpp, for which the problem has what a message takes over each link.
// Tested by tests/schema/bound_test.py.

#include "core/base/index.h"
#include "optimise/bounds.h"
#include "optimise/calls.h"
#include "optimise/placements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace capo::optimise {

namespace {

constexpr double kUnbounded = -std::numeric_limits<double>::infinity();

/// How a head or a tail follows.
enum class By : std::uint8_t {
  Nothing,     ///< it is not known
  Ends,        ///< the step, or the rank whose span is meant, begins there or ends there
  Wait,        ///< a task that it waits for, or one that waits for it
  Work,        ///< all that its rank runs before it, or behind it
  Memory,      ///< the backward that must have given up memory
  MemoryWork,  ///< the work that gives up so much memory
};

enum class Side : std::uint8_t { Head, Tail };

const char* word_of(By by, Side side) {
  switch (by) {
    case By::Nothing:
    case By::Ends:
      break;
    case By::Wait:
      return "wait";
    case By::Work:
      return "work";
    case By::Memory:
      return "memory";
    case By::MemoryWork:
      return "memory-work";
  }
  return side == Side::Head ? "start" : "end";
}

struct Reached {
  double value = kUnbounded;
  By by = By::Nothing;
  std::vector<TaskNumber> from;

  void raise(double to, By reason, std::vector<TaskNumber> premises) {
    if (to > value) *this = {.value = to, .by = reason, .from = std::move(premises)};
  }
};

/// Which tasks of one series come before task k of another.
enum class Precede : std::uint8_t { None, Earlier /* 0 to k - 1 */, UpTo /* 0 to k */ };

/// Heads and tails of all tasks, with their reasons.
class Derivation {
 public:
  /// `rank`: whose span it is; nullopt: the makespan.
  Derivation(const Problem& problem, std::optional<std::size_t> rank)
      : problem_(problem), m_(problem.microbatches()), own_(rank) {
    heads_.resize(problem.tasks());
    tails_.resize(problem.tasks());
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
      const Series& forward = problem.series[series_of(stage, Half::Forward)];
      if (forward.waits_for == kNoSeries && forward.behind.empty()) first = stage;
      pipeline_.push_back(first);
    }
    for (std::uint32_t k = 0; k < m_; ++k) {
      in_turn([&](SeriesId series) { find_head(series, k); });
    }
    std::vector<SeriesId> turns;
    in_turn([&](SeriesId series) { turns.push_back(series); });
    for (std::uint32_t k = m_; k-- > 0;) {
      for (std::size_t turn = turns.size(); turn-- > 0;) find_tail(turns[turn], k);
    }
  }

  [[nodiscard]] const Reached& of(Side side, TaskNumber task) const {
    return side == Side::Head ? heads_[task] : tails_[task];
  }
  /// The first forwards of a rank, one of each pipeline.
  [[nodiscard]] std::vector<TaskNumber> firsts_of(std::size_t rank) const {
    std::vector<TaskNumber> firsts;
    std::set<std::size_t> seen;
    for (const SeriesId series : problem_.of_rank[rank]) {
      if (half_of(series) != Half::Forward) continue;
      if (seen.insert(pipeline_[stage_of(series)]).second) firsts.push_back(series * m_);
    }
    return firsts;
  }

 private:
  // Forwards from the first stage on, and behind each other the halves of backwards from the last.
  template <typename Visit>
  void in_turn(const Visit& visit) const {
    for (std::size_t stage = 0; stage < problem_.stages(); ++stage) {
      visit(series_of(stage, Half::Forward));
    }
    for (std::size_t stage = problem_.stages(); stage-- > 0;) {
      visit(series_of(stage, Half::Backward));
      visit(series_of(stage, Half::Weight));
    }
  }

  [[nodiscard]] Precede precede(SeriesId first, SeriesId second) const {
    const std::size_t a = stage_of(first);
    const std::size_t b = stage_of(second);
    if (pipeline_[a] != pipeline_[b]) return Precede::None;
    if (first == second) return Precede::Earlier;
    const auto if_so = [](bool so) { return so ? Precede::UpTo : Precede::None; };
    const Half half = half_of(second);
    if (half_of(first) == Half::Forward) return if_so(half != Half::Forward || a < b);
    if (half_of(first) == Half::Weight || half == Half::Forward) return Precede::None;
    return if_so(half == Half::Weight ? a >= b : a > b);
  }

  // The time of all tasks of a task's rank that come before it.
  [[nodiscard]] double work_before(SeriesId series, std::uint32_t k) const {
    double work = 0;
    for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
      const Precede way = precede(each, series);
      const double count = way == Precede::UpTo ? k + 1 : way == Precede::Earlier ? k : 0;
      work += count * problem_.series[each].takes;
    }
    return work;
  }

  [[nodiscard]] double work_behind(SeriesId series, std::uint32_t k) const {
    double work = 0;
    for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
      const Precede way = precede(series, each);
      const double count = way == Precede::UpTo ? m_ - k : way == Precede::Earlier ? m_ - k - 1 : 0;
      work += count * problem_.series[each].takes;
    }
    return work;
  }

  // The first forward of a task's own pipeline on its rank.
  [[nodiscard]] TaskNumber first_before(SeriesId series) const {
    for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
      const bool own = pipeline_[stage_of(each)] == pipeline_[stage_of(series)];
      if (own && half_of(each) == Half::Forward) return each * m_;
    }
    return series * m_;
  }

  void find_head(SeriesId id, std::uint32_t k) {
    const Series& series = problem_.series[id];
    Reached& head = heads_[id * m_ + k];
    if (!own_ || *own_ == series.rank) head.raise(0, By::Ends, {});
    const auto wait = [&](SeriesId first, std::uint32_t of, double lag) {
      const TaskNumber task = first * m_ + of;
      head.raise(heads_[task].value + problem_.series[first].takes + lag, By::Wait, {task});
    };
    if (series.waits_for != kNoSeries) wait(series.waits_for, k, series.lag);
    for (const SeriesId first : series.behind) wait(first, k, 0);
    if (k > 0) wait(id, k - 1, 0);
    const TaskNumber first = first_before(id);
    if (first != id * m_ + k) {
      head.raise(heads_[first].value + work_before(id, k), By::Work, {first});
    }
    if (half_of(id) == Half::Forward && k > 0) raise_by_memory(head, id, k);
  }

  // When a forward begins, it and all before it hold memory, but for what backwards gave up.
  void raise_by_memory(Reached& head, SeriesId id, std::uint32_t k) const {
    double held = 0;                                         // by a microbatch, up to this stage
    double least = std::numeric_limits<double>::infinity();  // work that gives up one
    std::vector<std::size_t> stages;
    for (const SeriesId each : problem_.of_rank[problem_.series[id].rank]) {
      if (half_of(each) != Half::Forward || (each != id && precede(each, id) == Precede::None) ||
          each > id) {
        continue;
      }
      const Series& f = problem_.series[each];
      const Series& b = problem_.series[each + 1];
      const Series& w = problem_.series[each + 2];
      if (f.holds <= 0 || b.holds > 0 || w.holds > 0) return;
      stages.push_back(stage_of(each));
      held += f.holds;
      least = std::min(least, (b.takes + w.takes) / f.holds);
      if (b.holds < 0) least = std::min(least, b.takes / -b.holds);
    }
    const double excess = (k + 1) * held - problem_.memory_limit * (1 + 1e-9);
    if (!(excess > 0)) return;
    const auto given_up = static_cast<std::uint32_t>(std::ceil(excess / held - 1e-9));
    if (given_up == 0 || given_up > k) return;
    double ends = std::numeric_limits<double>::infinity();
    std::vector<TaskNumber> from;
    for (const std::size_t stage : stages) {
      const bool at_weight = problem_.series[series_of(stage, Half::Backward)].holds == 0;
      const SeriesId gives = series_of(stage, at_weight ? Half::Weight : Half::Backward);
      from.push_back(gives * m_ + given_up - 1);
      ends = std::min(ends, heads_[from.back()].value + problem_.series[gives].takes);
    }
    head.raise(ends, By::Memory, std::move(from));
    const TaskNumber first = first_before(id);
    head.raise(heads_[first].value + work_before(id, k) + excess * least, By::MemoryWork, {first});
  }

  void find_tail(SeriesId id, std::uint32_t k) {
    const Series& series = problem_.series[id];
    Reached& tail = tails_[id * m_ + k];
    if (!own_ || *own_ == series.rank) {
      tail.raise(0, By::Ends, {});
      tail.raise(work_behind(id, k), By::Work, {});
    }
    const auto awaited = [&](SeriesId next, std::uint32_t of, double lag) {
      const TaskNumber task = next * m_ + of;
      tail.raise(lag + problem_.series[next].takes + tails_[task].value, By::Wait, {task});
    };
    if (series.awaited_by != kNoSeries) {
      awaited(series.awaited_by, k, problem_.series[series.awaited_by].lag);
    }
    for (const SeriesId next : series.before) awaited(next, k, 0);
    if (k + 1 < m_) awaited(id, k + 1, 0);
  }

  const Problem& problem_;
  std::uint32_t m_;
  std::optional<std::size_t> own_;
  std::vector<std::size_t> pipeline_;  // by stage: the first stage of its pipeline
  std::vector<Reached> heads_;         // by task
  std::vector<Reached> tails_;
};

/// Tasks of a rank, those with no less than such a head and tail.
struct Chosen {
  std::size_t rank = 0;
  double head = 0;
  double tail = 0;
  double shown = 0;  ///< by them
};

struct Load {
  double head;
  double takes;
  double tail;
};

// The tasks that make the shortest sequence that may be interrupted as long as it is: those that
// run without a break until the last one whose tail ends last, none of which has a lower tail.
Chosen chosen_of(std::vector<Load> loads) {
  std::sort(loads.begin(), loads.end(),
            [](const Load& a, const Load& b) { return a.head < b.head; });
  using Waiting = std::pair<double, double>;  // its tail and what is left of it
  std::priority_queue<Waiting> waiting;
  struct Block {
    double tail;   // that all of it has at least
    double begin;  // since when nothing with less has run
  };
  std::vector<Block> blocks;  // of what runs now, with rising tails
  Chosen best;
  double now = 0;
  for (std::size_t next = 0; next < loads.size() || !waiting.empty();) {
    if (waiting.empty() && loads[next].head > now) {
      now = loads[next].head;
      blocks.clear();
    }
    for (; next < loads.size() && loads[next].head <= now; ++next) {
      waiting.emplace(loads[next].tail, loads[next].takes);
    }
    const auto [tail, left] = waiting.top();
    waiting.pop();
    double begin = now;
    while (!blocks.empty() && blocks.back().tail >= tail) {
      begin = blocks.back().begin;
      blocks.pop_back();
    }
    blocks.push_back({.tail = tail, .begin = begin});
    const bool interrupted = next < loads.size() && loads[next].head < now + left;
    const double until = interrupted ? loads[next].head : now + left;
    if (interrupted) {
      waiting.emplace(tail, left - (until - now));
    } else if (until + tail > best.shown) {
      best = {.head = begin, .tail = tail, .shown = until + tail};
    }
    now = until;
  }
  return best;
}

Chosen chosen_of(const Problem& problem, const Derivation& derivation, std::size_t rank) {
  std::vector<Load> loads;
  loads.reserve(problem.tasks_of_rank());
  for (const SeriesId series : problem.of_rank[rank]) {
    for (std::uint32_t k = 0; k < problem.microbatches(); ++k) {
      const TaskNumber task = series * problem.microbatches() + k;
      loads.push_back({derivation.of(Side::Head, task).value, problem.series[series].takes,
                       derivation.of(Side::Tail, task).value});
    }
  }
  Chosen chosen = chosen_of(std::move(loads));
  chosen.rank = rank;
  return chosen;
}

std::string name_of_series(SeriesId series) {
  return fmt::format("{}{}", "FBW"[series % 3], stage_of(series));
}

/// Facts as they are written, each behind those that it follows from.
class Facts {
 public:
  Facts(const Problem& problem, const Derivation& derivation)
      : problem_(problem), derivation_(derivation) {}

  /// The number of a fact, which is written if it is not yet.
  std::size_t number(Side side, TaskNumber task) {
    auto& numbers = numbers_[as_index(side)];
    std::vector<TaskNumber> open{task};
    while (!open.empty()) {
      const TaskNumber top = open.back();
      const auto count = open.size();
      const Reached& reached = derivation_.of(side, top);
      for (const TaskNumber first : reached.from) {
        if (!numbers.contains(first)) open.push_back(first);
      }
      if (open.size() > count) continue;
      open.pop_back();
      if (numbers.contains(top)) continue;
      std::vector<std::size_t> from;
      for (const TaskNumber first : reached.from) from.push_back(numbers.at(first));
      numbers.emplace(top, texts_.size());
      texts_.push_back(fmt::format(
          "\n{{\"{}\": \"{}.{}\", \"by\": \"{}\", \"from\": [{}]}}",
          side == Side::Head ? "head" : "tail", name_of_series(top / problem_.microbatches()),
          top % problem_.microbatches(), word_of(reached.by, side), fmt::join(from, ",")));
    }
    return numbers.at(task);
  }

  [[nodiscard]] std::string text() const { return fmt::format("{}", fmt::join(texts_, ",")); }

 private:
  const Problem& problem_;
  const Derivation& derivation_;
  std::unordered_map<TaskNumber, std::size_t> numbers_[2];  // by side
  std::vector<std::string> texts_;
};

// A name, or the stages of each rank.
std::string placement_text(const Frame& frame) {
  if (frame.topology != Topology::Custom) return fmt::format("\"{}\"", name_of(frame.topology));
  return fmt::format("{}", frame.stages);
}

// Says what a message takes from each rank to each other one.
std::string links_text(const RankCosts& costs) {
  std::vector<std::string> rows;
  for (std::size_t from = 0; from < costs.ranks; ++from) {
    const auto row = costs.lag.begin() + static_cast<std::ptrdiff_t>(from * costs.ranks);
    rows.push_back(
        fmt::format("[{}]", fmt::join(row, row + static_cast<std::ptrdiff_t>(costs.ranks), ",")));
  }
  return fmt::format("\"links\": [{}], ", fmt::join(rows, ","));
}

std::string problem_text(const Problem& problem, const RankCosts* any) {
  const Frame& frame = problem.frame;
  std::string text = fmt::format(
      "\"problem\": {{\"placement\": {}, \"ranks\": {}, \"chunks\": {}, \"microbatches\": {}, "
      "\"memory_limit\": {}, \"stages\": [",
      placement_text(frame), frame.ranks, frame.chunks, frame.microbatches,
      std::isfinite(problem.memory_limit) ? fmt::format("{}", problem.memory_limit) : "null");
  if (problem.fuses()) {
    text.insert(text.rfind("\"stages\""), fmt::format("\"fuse_w\": {}, ", frame.weights_in_call));
  }
  if (any != nullptr) text.insert(text.rfind("\"stages\""), links_text(*any));
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    const Series& f = problem.series[series_of(stage, Half::Forward)];
    const Series& b = problem.series[series_of(stage, Half::Backward)];
    const Series& w = problem.series[series_of(stage, Half::Weight)];
    const std::string further =
        problem.fuses() ? fmt::format(", \"further\": {}", w.further) : std::string();
    const std::string remakes =
        b.during > 0 ? fmt::format(", \"remakes\": {}", b.during) : std::string();
    text +=
        fmt::format("{}\n{{\"takes\": [{},{},{}]{}, \"holds\": [{},{},{}]{}, \"lags\": [{},{}]}}",
                    stage == 0 ? "" : ",", f.takes, b.takes, w.takes, further, f.holds, b.holds,
                    w.holds, remakes, f.lag, b.lag);
  }
  return text + "]}";
}

std::string orders_text(const Orders& orders) {
  std::vector<std::string> ranks;
  for (const auto& order : orders) {
    std::string text;
    for (const SeriesId series : order) {
      if (!text.empty()) text += ' ';
      text += name_of_series(series);
    }
    ranks.push_back("\n\"" + text + "\"");
  }
  return fmt::format("\"orders\": [{}]", fmt::join(ranks, ","));
}

// The chosen tasks of a rank: of each series all that lie between a first and a last one.
std::string machine_text(const Problem& problem, const Derivation& derivation, const Chosen& chosen,
                         Facts& facts) {
  const std::uint32_t m = problem.microbatches();
  std::vector<std::string> texts;
  for (const SeriesId series : problem.of_rank[chosen.rank]) {
    std::uint32_t first = 0;
    while (first < m && derivation.of(Side::Head, series * m + first).value < chosen.head) ++first;
    std::uint32_t behind = m;
    while (behind > first &&
           derivation.of(Side::Tail, series * m + behind - 1).value < chosen.tail) {
      --behind;
    }
    if (behind == first) continue;
    const std::size_t head = facts.number(Side::Head, series * m + first);
    const std::size_t tail = facts.number(Side::Tail, series * m + behind - 1);
    texts.push_back(fmt::format(
        "\n{{\"series\": \"{}\", \"first\": {}, \"last\": {}, \"head\": {}, \"tail\": {}}}",
        name_of_series(series), first, behind - 1, head, tail));
  }
  return fmt::format("{{\"by\": \"machine\", \"tasks\": [{}]}}", fmt::join(texts, ","));
}

bool is_formula(const std::string& by) {
  return by == "memory" || by == "L1" || by == "L2" || by == "L3";
}

// L3 is the argument of memory where costs are the same everywhere.
std::string name_of_formula(const std::string& by) {
  return by == "L3" ? "memory" : by;
}

// Facts and argument, and how much they show.
struct Shown {
  std::size_t rank = 0;
  double value = 0;
  std::string text;
};

// A formula is worked out anew by whoever checks it; of a makespan it also counts when the rank
// begins.
Shown by_formula(const Problem& problem, Objective objective, const Bound& bound) {
  const auto rank = as_index(bound.rank);
  std::string facts;
  std::vector<std::size_t> from;
  const std::string by = name_of_formula(bound.by);
  if (by == "memory" && objective == Objective::Makespan) {
    const Derivation derivation(problem, std::nullopt);
    Facts of(problem, derivation);
    for (const TaskNumber first : derivation.firsts_of(rank)) {
      from.push_back(of.number(Side::Head, first));
    }
    facts = of.text();
  }
  return {.rank = rank,
          .value = bound.value,
          .text = fmt::format("\"facts\": [{}],\n\"argument\": {{\"by\": \"{}\", \"from\": [{}]}}",
                              facts, by, fmt::join(from, ","))};
}

Shown by_machine(const Problem& problem, Objective objective) {
  const bool of_span = objective == Objective::Span;
  std::optional<Derivation> derivation;
  if (!of_span) derivation.emplace(problem, std::nullopt);
  Chosen best;
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    if (of_span) derivation.emplace(problem, rank);
    const Chosen chosen = chosen_of(problem, *derivation, rank);
    if (chosen.shown > best.shown) best = chosen;
  }
  if (of_span) derivation.emplace(problem, best.rank);
  Facts facts(problem, *derivation);
  const std::string argument = machine_text(problem, *derivation, best, facts);
  return {.rank = best.rank,
          .value = best.shown * (1 - 1e-12),
          .text = fmt::format("\"facts\": [{}],\n\"argument\": {}", facts.text(), argument)};
}

// The checker narrows by itself, and is told the time that it refutes.
std::optional<Shown> by_narrowing(const Problem& problem, Objective objective, const Bound& bound,
                                  double above) {
  const auto rank = as_index(bound.rank);
  const auto own = objective == Objective::Span ? std::optional(rank) : std::nullopt;
  const auto refuted = refuted_plainly(problem, own, above);
  if (!refuted) return std::nullopt;
  return Shown{.rank = rank,
               .value = refuted->bound() * (1 - 1e-12),
               .text = fmt::format("\"facts\": [],\n\"argument\": {{\"by\": \"narrowing\", "
                                   "\"unit\": {}, \"refuted\": {}}}",
                                   refuted->unit, refuted->units)};
}

// The checker works it out by itself.
Shown by_any_placement(const RankCosts& costs, Objective objective) {
  return {.rank = 0,
          .value = bound_of(bounds_of_any_placement(costs), objective).value,
          .text = "\"facts\": [],\n\"argument\": {\"by\": \"any placement\"}"};
}

// A bound of another kind than these is shown as far as they go.
Shown shown_by(const Problem& remaking, Objective objective, const Bound& bound,
               const Bound& closed_form) {
  const Problem problem = relaxed(remaking);
  if (is_formula(bound.by)) return by_formula(problem, objective, bound);
  Shown shown = by_machine(problem, objective);
  if (is_formula(closed_form.by) && closed_form.value > shown.value) {
    shown = by_formula(problem, objective, closed_form);
  }
  if (bound.by != "narrowing") return shown;
  return by_narrowing(remaking, objective, bound, shown.value).value_or(shown);
}

}  // namespace

Certificate certificate_of(const Problem& problem, Objective objective, const LowerBounds& bounds,
                           const Orders& orders, const Figures& figures, std::uint64_t nodes,
                           const RankCosts* any) {
  const bool of_span = objective == Objective::Span;
  const Bound& bound = bound_of(bounds, objective);
  const Shown shown =
      any != nullptr
          ? by_any_placement(*any, objective)
          : shown_by(problem.fuses() ? with_least_weights(problem) : problem, objective, bound,
                     of_span ? problem.closed_forms.span : problem.closed_forms.makespan);
  const double value = std::min(bound.value, shown.value);
  const std::string all = nodes == 0
                              ? std::string()
                              : fmt::format("\"exhaustive\": {{\"below\": {}, \"nodes\": {}}},\n",
                                            of_span ? figures.span : figures.makespan, nodes);
  return {.shown = value,
          .text = fmt::format(
              "{{\"schema\": 1, \"objective\": \"{}\", \"bound\": {}, \"rank\": {},\n{},\n{},\n{}"
              "\"makespan\": {}, \"span\": {}, {}}}\n",
              of_span ? "span" : "makespan", value, shown.rank, problem_text(problem, any),
              shown.text, all, figures.makespan, figures.span, orders_text(orders))};
}

}  // namespace capo::optimise

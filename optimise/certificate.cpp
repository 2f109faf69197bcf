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
// The heads and tails are derivation.h's, found again and apart from bounds.cpp; where they show
// less than the bound, the certificate says how much. A further step of reasoning is a word in By
// and a function of the checker's; so is a further argument. One of them is narrowing
// (narrowing.cpp), which has no facts: the checker is told by when nothing ends, and does it anew.
// Another is any_placement.cpp, for which the problem has what a message takes over each link.
// Tested by tests/schema/bound_test.py, and what the checker takes for reasoning by
// bound_truth_test.py beside it.

#include "core/base/index.h"
#include "optimise/bounds.h"
#include "optimise/calls.h"
#include "optimise/derivation.h"
#include "optimise/placements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace capo::optimise {

namespace {

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

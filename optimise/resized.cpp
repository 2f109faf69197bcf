// Orders of more or fewer microbatches, made from orders that do the same again and again.
//
//   4 microbatches   F0 F1 [B0 F2] B1 F3 B2 B3        the part in brackets has one of each series
//   6 microbatches   F0 F1 [B0 F2] [B1 F3] [B2 F4] B3 F5 B4 B5
//
// A rank's order has a part with the same number of tasks of each of its series, by which it can be
// made longer or shorter without any rank's order lacking a task: repeated, every task in it stands
// to its own microbatch as before, so that the rank holds no more. Such a part is looked for on
// every rank, where the rank is at the same time; whether ranks then wait for each other, and how
// long it all takes, is for the evaluation to tell. Tested by resized_test.cpp.

#include "optimise/periods.h"

#include "core/base/index.h"
#include "optimise/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace capo::optimise {

namespace {

/// Parts that are repeated have so many microbatches; steps are shortened by multiples of them all.
constexpr std::array kParts{1, 2, 3, 4, 6, 8, 12, 24};
constexpr std::int32_t kMultiple = 24;

// A rank's order, and when each of its tasks ends.
struct Timed {
  const std::vector<SeriesId>& order;
  std::vector<double> ends;
};

Timed timed(const Problem& problem, const std::vector<SeriesId>& order,
            const std::vector<double>& ends) {
  Timed rank{.order = order, .ends = {}};
  std::vector<std::uint32_t> count(problem.series.size(), 0);
  for (const SeriesId series : order) {
    rank.ends.push_back(ends[series * problem.microbatches() + count[series]++]);
  }
  return rank;
}

// The position nearest to a time from which on the rank runs `part` tasks of each of its series;
// nullopt if there is none.
std::optional<std::size_t> part_at(const Problem& problem, const Timed& rank, std::int32_t part,
                                   double time) {
  const std::size_t all = 3 * as_index(problem.frame.chunks);
  const std::size_t length = all * as_index(part);
  std::vector<std::int32_t> count(problem.series.size(), 0);
  std::size_t exact = 0;  // series that have `part` tasks among those that are looked at
  const auto add = [&](SeriesId series, std::int32_t more) {
    if (count[series] == part) --exact;
    count[series] += more;
    if (count[series] == part) ++exact;
  };
  std::optional<std::size_t> nearest;
  const auto distance = [&](std::size_t at) { return std::abs(rank.ends[at] - time); };
  for (std::size_t end = 0; end < rank.order.size(); ++end) {
    add(rank.order[end], 1);
    if (end + 1 < length) continue;
    const std::size_t begin = end + 1 - length;
    if (exact == all && (!nearest || distance(begin) < distance(*nearest))) nearest = begin;
    add(rank.order[begin], -1);
  }
  return nearest;
}

}  // namespace

std::optional<Orders> resized(const Problem& from, const Orders& orders, const Problem& to,
                              std::int32_t part, double share) {
  const std::vector<double> ends = ends_of(from, orders);
  const double time = share * *std::max_element(ends.begin(), ends.end());
  const std::int32_t more = to.frame.microbatches - from.frame.microbatches;
  const std::ptrdiff_t length = 3 * static_cast<std::ptrdiff_t>(from.frame.chunks) * part;
  Orders made;
  for (const auto& order : orders) {
    const auto begin = part_at(from, timed(from, order, ends), part, time);
    if (!begin) return std::nullopt;
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(*begin);
    const auto last = first + length;
    auto& longer = made.emplace_back(order.begin(), more < 0 ? first : last);
    longer.reserve(to.tasks_of_rank());
    for (std::int32_t each = 0; each < more; each += part) longer.insert(longer.end(), first, last);
    longer.insert(longer.end(), last, order.end());
  }
  const auto figures = evaluate(to, made);
  if (!figures || !fits(to, *figures)) return std::nullopt;
  return made;
}

namespace {

double makespan_of(const Problem& from, const Orders& orders, const Problem& to,
                   std::int32_t part) {
  const auto longer = resized(from, orders, to, part, 0.5);
  return longer ? evaluate(to, *longer)->makespan : std::numeric_limits<double>::infinity();
}

// About what it comes to if a part is repeated: if that is often, what little more comes to tells.
double foreseen(const Problem& from, const Orders& orders, const Problem& to, std::int32_t part) {
  const std::int32_t more = to.frame.microbatches - from.frame.microbatches;
  if (more % kMultiple != 0 || more <= 2 * kMultiple) return makespan_of(from, orders, to, part);
  Problem little = from;
  little.frame.microbatches += kMultiple;
  const double first = makespan_of(from, orders, little, part);
  if (first == std::numeric_limits<double>::infinity()) return first;
  little.frame.microbatches += kMultiple;
  const double second = makespan_of(from, orders, little, part);
  return second + (more / kMultiple - 2) * (second - first);
}

}  // namespace

std::optional<Orders> lengthened(const Problem& from, const Orders& orders, const Problem& to) {
  const std::int32_t more = to.frame.microbatches - from.frame.microbatches;
  std::optional<std::int32_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::int32_t part : kParts) {
    if (more % part != 0) continue;
    const double makespan = foreseen(from, orders, to, part);
    if (makespan >= least) continue;
    least = makespan;
    best = part;
  }
  if (!best) return std::nullopt;
  return resized(from, orders, to, *best, 0.5);
}

std::optional<Problem> shortened(const Problem& problem, std::int32_t least) {
  const std::int32_t fewer = (problem.frame.microbatches - least) / kMultiple * kMultiple;
  if (fewer < least / 2) return std::nullopt;
  Problem shorter = problem;
  shorter.frame.microbatches -= fewer;
  return shorter;
}

}  // namespace capo::optimise

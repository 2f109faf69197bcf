#include "optimise/variants.h"

#include "core/base/assert.h"
#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "optimise/periods.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace capo::optimise {

namespace {

constexpr double kNothingYet = std::numeric_limits<double>::infinity();
/// The first epoch looks at so many placements, and each next one at twice as many.
constexpr std::size_t kLooks = 24;
/// A neighbour tries as many rules, those that were best for the one before.
constexpr std::size_t kRulesOfNeighbour = 6;
/// Neighbours are made of so many of the best.
constexpr std::size_t kParents = 4;
/// So many are drawn for each that is looked at, since most may be known.
constexpr std::size_t kDrawsOfLook = 16;
/// A look walks so many shifts. Cold ones take a third of the time of a move.
constexpr std::uint64_t kShiftsOfLook = 16'384;
constexpr std::uint64_t kShiftsOfMove = 3;
constexpr double kColdHeat = 0.1;
constexpr double kWarmHeat = 0.3;
/// So many go on from a look, each with so many shifts in the first epoch.
constexpr std::size_t kHalved = 8;
constexpr std::uint64_t kShiftsOfHalf = 65'536;
/// A full search of the first epoch makes so many moves.
constexpr std::uint64_t kMovesOfSearch = 400'000;
/// Each placement that the caller names is searched with this share of all moves at most.
constexpr std::uint64_t kShareOfNamed = 8;
/// A placement's own bound looks at so many states when it is searched in full.
constexpr std::uint64_t kStatesOfSearch = 5'000'000;
/// Doublings end here, so that numbers of moves do not overflow.
constexpr unsigned kMostDoublings = 20;
// The tasks of each rank by the times at which they began under another placement: each stands
// behind what it waits for there, and so it does here.
Orders moved(const Problem& from, const Orders& orders, const Problem& to) {
  struct Began {
    double at;
    std::size_t turn;  // of those that take no time
    SeriesId series;
  };
  const std::vector<double> ends = ends_of(from, orders);
  std::vector<std::vector<Began>> ranks(to.of_rank.size());
  for (SeriesId id = 0; id < to.series.size(); ++id) {
    const std::size_t stage = stage_of(id);
    const std::size_t back = 3 * to.stages() - 2 * stage;
    const std::size_t turn = half_of(id) == Half::Forward    ? stage
                             : half_of(id) == Half::Backward ? back
                                                             : back + 1;
    for (std::uint32_t k = 0; k < to.microbatches(); ++k) {
      const double at = ends[id * to.microbatches() + k] - from.series[id].takes;
      ranks[to.series[id].rank].push_back({at, turn, id});
    }
  }
  Orders made;
  for (auto& rank : ranks) {
    std::ranges::stable_sort(rank, [](const Began& a, const Began& b) {
      return a.at < b.at || (a.at == b.at && a.turn < b.turn);
    });
    auto& order = made.emplace_back();
    for (const Began& each : rank) order.push_back(each.series);
  }
  return made;
}

/// A placement, and the best that is known of it.
struct Variant {
  Placement placement;
  Problem problem;  // of the step that is looked at
  double bound = 0;
  double value = kNothingYet;
  Orders orders;
  std::string from;
  std::vector<Rules> rules;  // the best first
  std::uint64_t moves = 0;   // of the look
  bool named = false;        // by the caller
  bool closed = false;       // nothing better is to be found
  std::uint64_t nodes = 0;   // of a search of all orders that closed it
};

/// A placement to be looked at.
struct Look {
  Placement placement;
  const Variant* parent = nullptr;
  std::uint64_t seed = 0;
};

class VariantSearch {
 public:
  VariantSearch(const Variants& of, const SearchOptions& how,
                const std::function<void(const Found&)>& tell)
      : of_(of),
        how_(how),
        tell_(tell),
        chance_(how.seed),
        bound_(how.bound),
        looked_at_(of.frame) {
    const Problem full = made(of.frame);
    if (const auto shorter = shortened(full, short_step(full))) {
      looked_at_.microbatches = shorter->frame.microbatches;
    }
    costs_ = rank_costs_of(full, of.options.costs);
    alike_ = alike(costs_);
    few_ = all_placements(costs_, kFewPlacements);
  }

  std::optional<FoundVariant> run() {
    if (how_.stopped()) return std::nullopt;
    look_at_named();
    search_named(1);
    if (how_.better_bound) bound_ = std::max(bound_, how_.better_bound());
    for (unsigned epoch = 0; goes_on(); ++epoch) {
      const std::uint64_t before = moves_;
      const unsigned doublings = std::min(epoch, kMostDoublings);
      if (epoch == 0) search_named(std::min(kMovesOfSearch, how_.moves / kShareOfNamed));
      look(kLooks << doublings);
      halve(doublings);
      if (const auto open = ranking(Of::Open); !open.empty()) {
        search_in_full(variants_[open.front()], kMovesOfSearch << doublings);
      }
      if (moves_ == before) break;  // what is left is too little
    }
    if (!best_) return std::nullopt;
    best_->tried = variants_.size();
    Found& found = best_->found;
    found.moves = moves_;
    found.nodes = nodes_of_all();
    found.ended = proved() || all_closed() ? Ended::Proof
                  : how_.stopped()         ? Ended::Stopped
                                           : Ended::Budget;
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool shorter() const { return looked_at_.microbatches < of_.frame.microbatches; }
  [[nodiscard]] double best_value() const {
    return best_ ? value_of(best_->found.figures, how_.objective) : kNothingYet;
  }
  [[nodiscard]] bool proved() const { return reaches(best_value(), bound_); }
  [[nodiscard]] std::uint64_t moves_left() const {
    return how_.moves - std::min(moves_, how_.moves);
  }
  [[nodiscard]] bool goes_on() const {
    return !how_.stopped() && !proved() && moves_left() > 0 && !all_closed();
  }

  [[nodiscard]] Problem made(const Frame& frame) const {
    auto problem = problem_of(frame, of_.options);
    CAPO_ASSERT(problem.has_value(), "what one placement may be searched with, all may");
    return of_.weights_behind ? optimise::with_weights_behind(*std::move(problem))
                              : *std::move(problem);
  }

  // Whether all placements are known, and nothing better is to be found for any.
  [[nodiscard]] bool all_closed() const {
    return few_ && !shorter() && !missed_ && known_.size() == few_->size() &&
           std::ranges::all_of(variants_, [&](const Variant& each) {
             return each.closed || reaches(best_value(), each.bound);
           });
  }
  // The nodes of the searches of all orders, where they and bounds leave nothing better.
  [[nodiscard]] std::uint64_t nodes_of_all() const {
    std::uint64_t nodes = 0;
    for (const Variant& each : variants_) nodes += each.nodes;
    return all_closed() ? nodes : 0;
  }

  void take(const Problem& problem, const Found& found) {
    if (value_of(found.figures, how_.objective) >= best_value()) return;
    best_ = FoundVariant{.problem = problem, .found = found};
    best_->found.nodes = 0;
    tell_(best_->found);
  }

  // Takes orders of the step that is looked at, if they are better than what the variant has.
  void improve(Variant& variant, Orders orders, const std::string& from) const {
    const auto figures = evaluate(variant.problem, orders);
    if (!figures || !fits(variant.problem, *figures)) return;
    const double value = value_of(*figures, how_.objective);
    if (value >= variant.value) return;
    variant.value = value;
    variant.orders = std::move(orders);
    variant.from = from;
  }

  void take(const Variant& variant) {
    if (shorter() || variant.orders.empty() || variant.value >= best_value()) return;
    take(variant.problem, {.orders = variant.orders,
                           .figures = *evaluate(variant.problem, variant.orders),
                           .from = variant.from});
  }

  void walk(Variant& variant, std::uint64_t shifts, double heat, std::uint64_t seed) const {
    Walk walk(variant.problem, variant.orders, how_.objective, seed, heat);
    walk.run(shifts, how_.stopped);
    if (walk.best() < variant.value) improve(variant, walk.best_orders(), variant.from);
  }

  void try_rules(Variant& variant, const std::vector<Rules>& settings) const {
    std::vector<std::pair<double, Rules>> tried;
    for (const Rules& rules : settings) {
      if (how_.stopped()) break;
      auto orders = construct(variant.problem, rules);
      if (!orders) continue;
      const auto figures = evaluate(variant.problem, *orders);
      tried.emplace_back(value_of(*figures, how_.objective), rules);
      improve(variant, *std::move(orders), "rules");
      variant.moves += variant.problem.tasks() / kTasksOfMove;
    }
    std::ranges::stable_sort(tried, {}, [](const auto& each) { return each.first; });
    for (auto& [value, rules] : tried) {
      if (variant.rules.size() < kRulesOfNeighbour) variant.rules.push_back(std::move(rules));
    }
  }

  // Precondition: nothing that it reads changes meanwhile, since looks are side by side.
  [[nodiscard]] Variant looked_at(const Look& at, double worse) const {
    Variant variant{.placement = at.placement,
                    .problem = made(with_placement(looked_at_, at.placement)),
                    .orders = {},
                    .from = {},
                    .rules = {}};
    variant.bound = bound_of(lower_bounds(variant.problem, 0), how_.objective).value;
    if (of_.weights_behind) variant.bound = 0;  // bounds are of any order
    if (variant.bound >= worse) {
      variant.closed = true;
      return variant;
    }
    if (at.parent != nullptr && !at.parent->orders.empty()) {
      improve(variant, moved(at.parent->problem, at.parent->orders, variant.problem),
              at.parent->from);
    }
    const bool known = at.parent != nullptr && !at.parent->rules.empty();
    try_rules(variant, known ? at.parent->rules : rule_settings(variant.problem));
    if (variant.orders.empty() || how_.stopped()) return variant;
    walk(variant, kShiftsOfLook, kColdHeat, at.seed);
    variant.moves += kShiftsOfLook / kShiftsOfMove;
    return variant;
  }

  void look_at(const std::vector<Look>& looks) {
    double worse = kNothingYet;
    for (const Variant& each : variants_) worse = std::min(worse, each.value);
    std::vector<std::optional<Variant>> seen(looks.size());
    in_parallel(looks.size(), how_.threads, [&](std::size_t i) {
      if (!how_.stopped()) seen[i] = looked_at(looks[i], worse);
    });
    for (auto& each : seen) {
      missed_ = missed_ || !each;
      if (!each) continue;
      moves_ += each->moves;
      variants_.push_back(*std::move(each));
      take(variants_.back());
    }
  }

  // The named ones keep their ranks as they are, since starts are of these, even if there is one
  // that is the same but for ranks that are alike.
  void look_at_named() {
    std::vector<Frame> frames{of_.frame};
    frames.insert(frames.end(), of_.named.begin(), of_.named.end());
    for (const Frame& frame : frames) {
      const Placement placement = placement_of(frame);
      const bool again = std::ranges::any_of(
          variants_, [&](const Variant& each) { return each.placement == placement; });
      if (again) continue;
      known_.insert(standing_for(placement, alike_));
      look_at({{.placement = placement, .seed = chance_.draw()}});
      if (missed_) return;
      Variant& variant = variants_.back();
      variant.named = true;
      for (const Start& start : of_.starts_of(variant.problem)) {
        improve(variant, start.orders, start.name);
      }
      take(variant);
    }
  }

  void search_named(std::uint64_t moves) {
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      if (variants_[i].named && !variants_[i].closed && !how_.stopped() && !proved()) {
        search_in_full(variants_[i], moves);
      }
    }
  }

  enum class Of : std::uint8_t { Open, All };

  // Variants with orders, the best first.
  [[nodiscard]] std::vector<std::size_t> ranking(Of which) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      const bool meant = which == Of::All || !variants_[i].closed;
      if (meant && !variants_[i].orders.empty()) all.push_back(i);
    }
    std::ranges::stable_sort(all, {}, [&](std::size_t i) { return variants_[i].value; });
    return all;
  }

  [[nodiscard]] std::vector<Look> next_looks(std::size_t count) {
    std::vector<Look> looks;
    const auto add = [&](Placement placement, const Variant* parent) {
      placement = standing_for(std::move(placement), alike_);
      if (looks.size() == count || !known_.insert(placement).second) return;
      looks.push_back(
          {.placement = std::move(placement), .parent = parent, .seed = chance_.draw()});
    };
    const auto best = ranking(Of::All);
    const Variant* parent = best.empty() ? nullptr : &variants_[best.front()];
    for (const Placement& shape : few_ ? *few_ : shapes(costs_))
      add(shape, few_ ? parent : nullptr);
    const std::size_t parents = std::min(kParents, best.size());
    for (std::size_t draw = 0; !few_ && parents > 0 && draw < kDrawsOfLook * count; ++draw) {
      const Variant& of = variants_[best[draw % parents]];
      add(neighbour_of(of.placement, costs_.ranks, chance_), &of);
    }
    return looks;
  }

  void look(std::size_t count) {
    const std::uint64_t tasks = variants_.front().problem.tasks();
    const std::uint64_t each =
        kRulesOfNeighbour * tasks / kTasksOfMove + kShiftsOfLook / kShiftsOfMove;
    count = std::min<std::uint64_t>(count, moves_left() / 2 / each);
    if (goes_on()) look_at(next_looks(count));
  }

  void halve(unsigned doublings) {
    for (unsigned round = 0; kHalved >> round > 1 && goes_on(); ++round) {
      auto best = ranking(Of::Open);
      best.resize(std::min(best.size(), kHalved >> round));
      const std::uint64_t shifts = kShiftsOfHalf << (doublings + round);
      if (best.empty() || best.size() * shifts / kShiftsOfMove > moves_left()) return;
      std::vector<std::uint64_t> seeds;
      for (std::size_t i = 0; i < best.size(); ++i) seeds.push_back(chance_.draw());
      in_parallel(best.size(), how_.threads, [&](std::size_t i) {
        walk(variants_[best[i]], shifts, seeds[i] % 2 == 0 ? kColdHeat : kWarmHeat, seeds[i]);
      });
      moves_ += best.size() * shifts / kShiftsOfMove;
      for (const std::size_t i : best) take(variants_[i]);
    }
  }

  void search_in_full(Variant& variant, std::uint64_t moves) {
    const Problem full =
        shorter() ? made(with_placement(of_.frame, variant.placement)) : variant.problem;
    const auto starts = [&] {
      std::vector<Start> all;
      if (variant.named && shorter()) all = of_.starts_of(full);
      std::optional<Orders> orders = variant.orders;
      if (shorter()) orders = lengthened(variant.problem, variant.orders, full);
      if (orders) all.push_back({.name = variant.from, .orders = *std::move(orders)});
      return all;
    };
    SearchOptions how = how_;
    how.bound = bound_;
    how.better_bound = nullptr;
    if (!of_.weights_behind && moves > 1) {
      how.better_bound = [&] {
        return bound_of(lower_bounds(full, kStatesOfSearch, how_.stopped), how_.objective).value;
      };
    }
    how.moves = std::min(moves, moves_left());
    how.seed = chance_.draw();
    const std::function<void(const Found&)> tell = [&](const Found& found) { take(full, found); };
    const auto found = search(full, starts, how, tell);
    if (!found) return;
    moves_ += found->moves;
    if (!shorter()) improve(variant, found->orders, found->from);
    variant.nodes = found->proves(how_.objective) ? found->nodes : 0;
    variant.closed = found->ended == Ended::Proof;
  }

  const Variants& of_;
  const SearchOptions& how_;
  const std::function<void(const Found&)>& tell_;
  Chance chance_;
  double bound_;
  Frame looked_at_;  // its counts
  RankCosts costs_;
  std::vector<std::uint32_t> alike_;
  std::optional<std::vector<Placement>> few_;  // all placements, if they are few
  std::set<Placement> known_;
  std::vector<Variant> variants_;
  std::optional<FoundVariant> best_;
  std::uint64_t moves_ = 0;
  bool missed_ = false;  // the search was stopped before a placement was looked at
};

// The least of the bounds of all placements, each looked at by itself.
LowerBounds least_bounds(const std::vector<Placement>& all, const Frame& frame,
                         const SimulationOptions& of, std::uint64_t states, unsigned threads,
                         const std::function<bool()>& stopped) {
  std::vector<LowerBounds> bounds(all.size());
  in_parallel(all.size(), threads, [&](std::size_t i) {
    const auto problem = problem_of(with_placement(frame, all[i]), of);
    CAPO_ASSERT(problem.has_value(), "what one placement may be searched with, all may");
    bounds[i] = lower_bounds(*problem, states / all.size(), stopped);
  });
  LowerBounds least = bounds.front();
  for (const LowerBounds& each : bounds) {
    least.makespan.value = std::min(least.makespan.value, each.makespan.value);
    least.span.value = std::min(least.span.value, each.span.value);
  }
  least.makespan.by = least.span.by = "each placement";
  return least;
}

}  // namespace

LowerBounds bounds_of_variants(const Problem& problem, const SimulationOptions& of,
                               std::uint64_t states, unsigned threads,
                               const std::function<bool()>& stopped) {
  LowerBounds bounds = bounds_of_any_placement(least_costs_of(problem, of.costs));
  const auto all = all_placements(rank_costs_of(problem, of.costs), kFewPlacements);
  if (states == 0 || !all || stopped()) return bounds;
  const LowerBounds each = least_bounds(*all, problem.frame, of, states, threads, stopped);
  if (each.makespan.value > bounds.makespan.value) bounds.makespan = each.makespan;
  if (each.span.value > bounds.span.value) bounds.span = each.span;
  return bounds;
}

std::optional<FoundVariant> search_variants(const Variants& variants, const SearchOptions& how,
                                            const std::function<void(const Found&)>& tell) {
  return VariantSearch(variants, how, tell).run();
}

}  // namespace capo::optimise

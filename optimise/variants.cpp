#include "optimise/variants.h"

#include "core/base/assert.h"
#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "optimise/choices.h"
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

/// A variant, and the best that is known of it.
struct Variant {
  Choice choice;
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

/// A variant to be looked at.
struct Look {
  Choice choice;
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
        choices_(of),
        few_(choices_.all()),
        microbatches_(of.frame.microbatches) {
    const Problem full = *problem_of(of.frame, of.options);
    if (const auto shorter = shortened(full, short_step(full))) {
      microbatches_ = shorter->frame.microbatches;
    }
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
  [[nodiscard]] bool shorter() const { return microbatches_ < of_.frame.microbatches; }
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

  [[nodiscard]] Problem made(const Choice& choice, std::int32_t microbatches) const {
    Problem problem = choices_.problem_with(choice, microbatches);
    return of_.weights_behind ? optimise::with_weights_behind(std::move(problem)) : problem;
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

  void take(const Problem& problem, const Choice& choice, const Found& found) {
    if (value_of(found.figures, how_.objective) >= best_value()) return;
    best_ =
        FoundVariant{.problem = problem, .options = choices_.options_of(choice), .found = found};
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
    take(variant.problem, variant.choice,
         {.orders = variant.orders,
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
    Variant variant{.choice = at.choice,
                    .problem = made(at.choice, microbatches_),
                    .orders = {},
                    .from = {},
                    .rules = {}};
    // Bounds are of any order, and what hands its gradient on early waits for less than nothing.
    if (!of_.weights_behind) {
      variant.bound = bound_of(lower_bounds(variant.problem, 0), how_.objective).value;
    }
    if (variant.bound >= worse || why_impossible(variant.problem)) {
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
  // that is the same but for ranks that are alike. Each is looked at, however few moves there are.
  void look_at_named() {
    std::vector<Frame> frames{of_.frame};
    frames.insert(frames.end(), of_.named.begin(), of_.named.end());
    for (const Frame& frame : frames) {
      for (const bool all : {false, true}) {
        if (!missed_) look_at_named(placement_of(frame), all);
      }
    }
  }

  // None or all of the chunks recompute; if that is not searched there is only one of both.
  void look_at_named(const Placement& placement, bool all) {
    const Choice choice{.placement = placement,
                        .recomputed = std::vector<bool>(choices_.chunks(), all)};
    const bool again =
        std::ranges::any_of(variants_, [&](const Variant& each) { return each.choice == choice; });
    if (again) return;
    known_.insert(choices_.standing_for_all(choice));
    look_at({{.choice = choice, .seed = chance_.draw()}});
    if (missed_) return;
    Variant& variant = variants_.back();
    variant.named = true;
    for (const Start& start : of_.starts_of(variant.problem, choices_.options_of(variant.choice))) {
      improve(variant, start.orders, start.name);
    }
    take(variant);
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

  // Placements of known shapes, and the ranks whose stages are the earliest, which hold most.
  [[nodiscard]] std::vector<Choice> known_shapes(const Choice& best) const {
    std::vector<Choice> all;
    if (of_.places) {
      for (Placement& shape : shapes(choices_.costs())) {
        all.push_back({.placement = std::move(shape), .recomputed = best.recomputed});
      }
    }
    if (choices_.chunks() == 0) return all;
    Choice earliest{.placement = best.placement,
                    .recomputed = std::vector<bool>(choices_.chunks(), false)};
    const std::size_t of_rank = as_index(of_.frame.chunks);
    for (const std::uint32_t rank : best.placement) {
      for (std::size_t chunk = 0; chunk < of_rank; ++chunk) {
        earliest.recomputed[rank * of_rank + chunk] = true;
      }
      all.push_back(earliest);
    }
    for (std::size_t at = 0; at < choices_.chunks(); ++at) {
      all.push_back(best);
      all.back().recomputed[at].flip();
    }
    return all;
  }

  [[nodiscard]] Choice neighbour(Choice choice) {
    const std::size_t chunks = choices_.chunks();
    if (of_.places && (chunks == 0 || chance_.below(2) == 0)) {
      choice.placement =
          neighbour_of(std::move(choice.placement), as_index(of_.frame.ranks), chance_);
      return choice;
    }
    do {
      if (chunks > 0) choice.recomputed[chance_.below(chunks)].flip();
    } while (chance_.below(2) == 0);
    return choice;
  }

  [[nodiscard]] std::vector<Look> next_looks(std::size_t count) {
    std::vector<Look> looks;
    const auto add = [&](const Choice& choice, const Variant* parent) {
      const Choice standing = choices_.standing_for_all(choice);
      if (looks.size() == count || !known_.insert(standing).second) return;
      looks.push_back({.choice = standing, .parent = parent, .seed = chance_.draw()});
    };
    const auto best = ranking(Of::All);
    if (best.empty()) return looks;
    const Variant* parent = &variants_[best.front()];
    for (const Choice& shape : few_ ? *few_ : known_shapes(parent->choice)) {
      const bool near = few_ || shape.placement == parent->choice.placement;
      add(shape, near ? parent : nullptr);
    }
    const std::size_t parents = std::min(kParents, best.size());
    for (std::size_t draw = 0; !few_ && draw < kDrawsOfLook * count; ++draw) {
      const Variant& of = variants_[best[draw % parents]];
      add(neighbour(of.choice), &of);
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
    const Problem full = shorter() ? made(variant.choice, of_.frame.microbatches) : variant.problem;
    const auto starts = [&] {
      std::vector<Start> all;
      if (variant.named && shorter()) {
        all = of_.starts_of(full, choices_.options_of(variant.choice));
      }
      if (variant.orders.empty()) return all;
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
    const std::function<void(const Found&)> tell = [&](const Found& found) {
      take(full, variant.choice, found);
    };
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
  Choices choices_;
  std::optional<std::vector<Choice>> few_;  // all choices, if they are few
  std::int32_t microbatches_;               // of the step that is looked at
  std::set<Choice> known_;
  std::vector<Variant> variants_;
  std::optional<FoundVariant> best_;
  std::uint64_t moves_ = 0;
  bool missed_ = false;  // the search was stopped before a placement was looked at
};

}  // namespace

std::optional<FoundVariant> search_variants(const Variants& variants, const SearchOptions& how,
                                            const std::function<void(const Found&)>& tell) {
  return VariantSearch(variants, how, tell).run();
}

}  // namespace capo::optimise

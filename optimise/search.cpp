#include "optimise/search.h"

#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "optimise/exhaustive.h"
#include "optimise/periods.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

namespace capo::optimise {

namespace {

constexpr std::size_t kSearchers = 4;
constexpr std::uint64_t kShiftsOfRound = 32'768;
/// Constructions of a round count as so many shifts together, but there is one at least.
constexpr std::uint64_t kMovesOfRules = 32'768;
/// How a searcher walks: a warm walk leaves more of what it is in, and a cold one tries three times
/// as many shifts in the same time, since of more of them it is told that they are too bad. Which
/// is better differs from problem to problem.
struct Temper {
  double heat;
  std::uint64_t shifts_of_move;
};
constexpr Temper kWarm{.heat = 0.3, .shifts_of_move = 1};
constexpr Temper kCold{.heat = 0.1, .shifts_of_move = 3};
constexpr std::array<Temper, kSearchers> kTempers{kWarm, kCold, kWarm, kCold};
/// The first so many searchers begin with courses that repeat, and go on with them in each round.
constexpr std::size_t kSearchersOfCourses = 2;
/// Courses of a round place so many tasks, and those before the first round so many for each task
/// of the step, but no more than would take half a second.
constexpr std::uint64_t kPlacedInRound = 262'144;
constexpr std::uint64_t kPlacedForTask = 2'000;
constexpr std::uint64_t kPlacedAtFirst = 8'000'000;
/// Settings of rules are compared on a step of at most so many microbatches for each rank.
constexpr std::int32_t kShortStep = 4;
/// A short step has as many tasks at least.
constexpr std::int32_t kTasksOfShortStep = 4096;
/// Orders of a shorter step are made longer if they are better by this share than the last ones.
constexpr double kWorthLengthening = 1e-3;
/// So many starts of a long step are made shorter.
constexpr std::size_t kStartsOfShorter = 4;
/// All orders are searched with so many nodes at first, and then with so many times as many.
constexpr std::uint64_t kNodesAtFirst = 20'000;
constexpr std::uint64_t kMoreNodes = 4;
/// A node takes about as long as so many moves.
constexpr std::uint64_t kMovesOfNode = 8;
/// A searcher that is behind for so many rounds goes on from the best.
constexpr int kPatience = 6;

/// Orders that a searcher has, and what they come to.
struct Known {
  double value = std::numeric_limits<double>::infinity();
  Orders orders;
  std::string from;
};

// Rules that differ in one thing from the given ones, now and then in several.
Rules varied(Rules rules, const Problem& problem, Chance& chance) {
  const std::size_t ranks = problem.of_rank.size();
  do {
    switch (chance.below(problem.fuses() ? 7 : 6)) {
      case 0:
        rules.first = static_cast<Rules::First>(chance.below(3));
        break;
      case 1:
        (chance.below(2) == 0 ? rules.deep_forwards : rules.deep_backwards) ^= true;
        break;
      case 2:
        rules.eager_weights ^= true;
        break;
      case 3:
        rules.patience = 1.5 * chance.share();
        break;
      case 4: {  // shares that fall or rise along the ranks
        const double first = 0.2 + 0.8 * chance.share();
        const double last = 0.2 + 0.8 * chance.share();
        rules.shares.resize(ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const double along = static_cast<double>(rank) / static_cast<double>(ranks);
          rules.shares[rank] = first + (last - first) * along;
        }
        break;
      }
      case 5:
        rules.shares.resize(ranks, 1);
        rules.shares[chance.below(ranks)] = 0.2 + 0.8 * chance.share();
        break;
      default:
        rules.full_calls ^= true;
    }
  } while (chance.below(3) == 0);
  return rules;
}

class Searcher {
 public:
  Searcher(const Problem& problem, const SearchOptions& options, std::uint64_t seed, Rules rules,
           const Temper& temper)
      : problem_(problem),
        options_(options),
        temper_(temper),
        chance_(seed),
        rules_(std::move(rules)),
        periods_(problem, chance_.draw()) {}

  [[nodiscard]] const Known& best() const { return best_; }

  void go_on_from(const Known& known) {
    best_ = known;
    walk_ = std::make_unique<Walk>(problem_, best_.orders, options_.objective, chance_.draw(),
                                   temper_.heat);
  }

  /// Tries courses for so many placed tasks, and goes on from what is better than what it has.
  void repeat_courses(std::uint64_t placed) {
    if (problem_.frame.topology == Topology::Bidirectional) return;
    periods_.run(placed / problem_.series.size(), options_.stopped, [&](const Orders& orders) {
      const double value = value_of(*evaluate(problem_, orders), options_.objective);
      if (value >= best_.value) return;
      best_ = {.value = value, .orders = orders, .from = "courses"};
      walk_.reset();
    });
    if (!walk_ && !best_.orders.empty()) go_on_from(best_);
  }

  void run_round() {
    vary_rules();
    walk_->run(temper_.shifts_of_move * kShiftsOfRound, options_.stopped);
    if (walk_->best() < best_.value) {
      best_.value = walk_->best();
      best_.orders = walk_->best_orders();
    }
  }

  /// The constructions of a round.
  [[nodiscard]] static std::uint64_t constructions(const Problem& problem) {
    return std::clamp<std::uint64_t>(kMovesOfRules * kTasksOfMove / problem.tasks(), 1, 256);
  }

  /// A round counts so many moves.
  [[nodiscard]] static std::uint64_t moves(const Problem& problem) {
    return kShiftsOfRound + constructions(problem) * problem.tasks() / kTasksOfMove;
  }

 private:
  void vary_rules() {
    for (std::uint64_t i = 0; i < constructions(problem_) && !options_.stopped(); ++i) {
      Rules rules = varied(rules_, problem_, chance_);
      auto orders = construct(problem_, rules);
      if (!orders) continue;
      const double value = value_of(*evaluate(problem_, *orders), options_.objective);
      if (value > of_rules_) continue;
      of_rules_ = value;
      rules_ = std::move(rules);
      if (value < best_.value) {
        go_on_from({.value = value, .orders = *std::move(orders), .from = "rules"});
      }
    }
  }

  const Problem& problem_;
  const SearchOptions& options_;
  Temper temper_;
  Chance chance_;
  Rules rules_;
  Periods periods_;
  double of_rules_ = std::numeric_limits<double>::infinity();
  Known best_;
  std::unique_ptr<Walk> walk_;
};

/// A start and what it comes to.
struct Valued {
  double value = 0;
  Start start;
};

class Search {
 public:
  Search(const Problem& problem, const SearchOptions& options,
         const std::function<void(const Found&)>& tell)
      : problem_(problem), options_(options), tell_(tell), bound_(options.bound) {}

  std::optional<Found> run(const std::function<std::vector<Start>()>& starts) {
    if (options_.stopped()) return std::nullopt;
    const std::vector<Rules> settings = rule_settings(problem_);
    const auto shorter = shortened(problem_, short_step(problem_));
    if (shorter) {
      lengthen_rules(*shorter, settings.front());
    } else {
      try_rules(settings.front());
    }
    try_starts(starts());
    if (best_.orders.empty()) try_rules(settings.front());
    if (options_.better_bound) bound_ = std::max(bound_, options_.better_bound());
    if (shorter) {
      run_shorter(*shorter);
    } else {
      run_rounds(compared(settings));
    }
    if (best_.orders.empty()) return std::nullopt;
    found_.moves = moves_;
    found_.ended = proved() || all_searched() ? Ended::Proof
                   : stopped_                 ? Ended::Stopped
                                              : Ended::Budget;
    return found_;
  }

 private:
  [[nodiscard]] bool proved() const { return reaches(best_.value, bound_); }
  [[nodiscard]] bool all_searched() const { return found_.nodes > 0; }

  // The settings with the values of what they construct, the best first; of a longer step, what
  // they construct of a short one.
  std::vector<std::pair<double, Rules>> compared(const std::vector<Rules>& settings) {
    Problem shorter = problem_;
    shorter.frame.microbatches = std::min(problem_.frame.microbatches, short_step(problem_));
    const bool all = shorter.frame.microbatches == problem_.frame.microbatches;
    std::vector<std::pair<double, Rules>> tried;
    for (const Rules& setting : settings) {
      if (proved() || options_.stopped()) break;
      const auto orders = construct(shorter, setting);
      if (!orders) continue;
      const auto figures = evaluate(shorter, *orders);
      tried.emplace_back(value_of(*figures, options_.objective), setting);
      if (all) take(*orders, *figures, "rules");
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; !all && i < std::min(kSearchers, tried.size()); ++i) {
      if (!proved() && !options_.stopped()) try_rules(tried[i].second);
    }
    return tried;
  }

  // Makes orders of a shorter step longer, so that rules take no time for what repeats itself.
  void lengthen_rules(const Problem& shorter, const Rules& setting) {
    const auto orders = construct(shorter, setting);
    if (!orders) return;
    const auto longer = lengthened(shorter, *orders, problem_);
    if (longer) take(*longer, *evaluate(problem_, *longer), "rules");
  }

  void try_rules(const Rules& setting) {
    if (const auto orders = construct(problem_, setting)) {
      take(*orders, *evaluate(problem_, *orders), "rules");
    }
  }

  void try_starts(std::vector<Start> starts) {
    for (Start& start : starts) {
      const auto figures = start.figures ? start.figures : evaluate(problem_, start.orders);
      if (!figures || !fits(problem_, *figures)) continue;
      take(start.orders, *figures, start.name);
      starts_.push_back(
          {.value = value_of(*figures, options_.objective), .start = std::move(start)});
    }
  }

  // The best starts, of as many microbatches as the shorter step has.
  std::vector<Start> shortened_starts(const Problem& shorter) {
    const double share = 0.5 * shorter.frame.microbatches / problem_.frame.microbatches;
    const std::int32_t left_out = problem_.frame.microbatches - shorter.frame.microbatches;
    std::stable_sort(starts_.begin(), starts_.end(),
                     [](const Valued& a, const Valued& b) { return a.value < b.value; });
    std::vector<Start> shorts;
    for (std::size_t i = 0; i < std::min(kStartsOfShorter, starts_.size()); ++i) {
      const Start& start = starts_[i].start;
      auto orders = resized(problem_, start.orders, shorter, left_out, share);
      if (orders) shorts.push_back({.name = start.name, .orders = *std::move(orders)});
    }
    return shorts;
  }

  // Searches orders of fewer microbatches, and makes those that are better longer.
  void run_shorter(const Problem& shorter) {
    stopped_ = options_.stopped();
    if (proved() || stopped_) return;
    SearchOptions options = options_;
    options.bound = 0;  // that of the shorter step is none of this one
    options.better_bound = nullptr;
    double last = std::numeric_limits<double>::infinity();
    const auto lengthen = [&](const Found& found) {
      const double value = value_of(found.figures, options_.objective);
      if (value > last * (1 - kWorthLengthening)) return;
      last = value;
      const auto longer = lengthened(shorter, found.orders, problem_);
      if (longer) take(*longer, *evaluate(problem_, *longer), found.from);
    };
    const std::function<void(const Found&)> tell = lengthen;
    const auto starts = [&] { return shortened_starts(shorter); };
    const auto found = Search(shorter, options, tell).run(starts);
    stopped_ = options_.stopped();
    if (!found) return;
    last = std::numeric_limits<double>::infinity();
    lengthen(*found);
    moves_ += found->moves;
    stopped_ = found->ended == Ended::Stopped;
  }

  void take(const Orders& orders, const Figures& figures, const std::string& from) {
    const double value = value_of(figures, options_.objective);
    if (value >= best_.value) return;
    best_ = {.value = value, .orders = orders, .from = from};
    found_.orders = orders;
    found_.figures = figures;
    found_.from = from;
    tell_(found_);
  }

  // The first searchers begin with the best of their courses, even if there is something better,
  // and all others with the best of all.
  void begin(std::vector<Searcher>& searchers) {
    const std::uint64_t placed = std::min(kPlacedForTask * problem_.tasks(), kPlacedAtFirst);
    in_parallel(kSearchersOfCourses, options_.threads,
                [&](std::size_t i) { searchers[i].repeat_courses(placed); });
    for (Searcher& searcher : searchers) {
      if (searcher.best().orders.empty()) searcher.go_on_from(best_);
    }
  }

  // Searches all orders of a small problem, if it is time to.
  void exhaust_all() {
    const bool small =
        problem_.tasks() <= std::min(options_.exhaustive_tasks, kMostTasksOfExhaustion);
    if (!small || all_searched() || problem_.fuses() || proved() || moves_ < due_) return;
    const std::uint64_t left = options_.moves - std::min(moves_, options_.moves);
    const std::uint64_t most = std::min(nodes_, left / kMovesOfNode);
    const Exhausted all =
        exhaust(problem_, options_.objective, best_.value, most, options_.stopped);
    moves_ += kMovesOfNode * std::min(all.nodes, most);
    if (all.better) take(*all.better, *evaluate(problem_, *all.better), "all orders");
    if (all.complete) {
      found_.nodes = all.nodes;
      if (found_.proves(options_.objective)) bound_ = best_.value;
    }
    nodes_ *= kMoreNodes;
    due_ = moves_ + kMovesOfNode * nodes_;
  }

  void run_rounds(const std::vector<std::pair<double, Rules>>& rules) {
    stopped_ = options_.stopped();
    if (best_.orders.empty() || stopped_) return;
    exhaust_all();
    std::vector<Searcher> searchers;
    Chance seeds(options_.seed);
    for (std::size_t i = 0; i < kSearchers; ++i) {
      const Rules first = rules.empty() ? Rules{} : rules[i % rules.size()].second;
      searchers.emplace_back(problem_, options_, seeds.draw(), first, kTempers.at(i));
    }
    const std::uint64_t of_round = kSearchers * Searcher::moves(problem_) +
                                   kSearchersOfCourses * kPlacedInRound / kTasksOfMove;
    std::array<int, kSearchers> behind{};
    for (bool first = true; !proved() && !all_searched() && moves_ + of_round <= options_.moves;
         first = false) {
      if (first) begin(searchers);
      in_parallel(kSearchers, options_.threads, [&](std::size_t i) {
        if (i < kSearchersOfCourses) searchers[i].repeat_courses(kPlacedInRound);
        searchers[i].run_round();
      });
      for (const Searcher& searcher : searchers) {
        const Known& known = searcher.best();
        if (known.value < best_.value) {
          take(known.orders, *evaluate(problem_, known.orders), known.from);
        }
      }
      if (options_.stopped()) {
        stopped_ = true;
        return;
      }
      moves_ += of_round;
      for (std::size_t i = 0; i < kSearchers; ++i) {
        if (searchers[i].best().value <= best_.value) {
          behind[i] = 0;
        } else if (++behind[i] == kPatience) {
          searchers[i].go_on_from(best_);
          behind[i] = 0;
        }
      }
      exhaust_all();
    }
  }

  const Problem& problem_;
  const SearchOptions& options_;
  const std::function<void(const Found&)>& tell_;
  double bound_;
  std::vector<Valued> starts_;  // that run and fit
  Known best_;
  Found found_;
  std::uint64_t moves_ = 0;
  std::uint64_t nodes_ = kNodesAtFirst;  // of the next search of all orders
  std::uint64_t due_ = 0;                // so many moves come before it
  bool stopped_ = false;
};

}  // namespace

std::string_view name_of(Ended ended) {
  constexpr std::array<std::string_view, 3> kNames{"proof", "moves", "stopped"};
  return kNames[as_index(ended)];
}

std::int32_t short_step(const Problem& problem) {
  const auto tasks = static_cast<std::int32_t>(problem.series.size());
  return std::max({kShortStep * problem.frame.ranks, kTasksOfShortStep / tasks, 16});
}

bool reaches(double value, double bound) {
  return value <= bound * (1 + 1e-9);
}

std::optional<Found> search(const Problem& problem,
                            const std::function<std::vector<Start>()>& starts,
                            const SearchOptions& options,
                            const std::function<void(const Found&)>& tell) {
  return Search(problem, options, tell).run(starts);
}

}  // namespace capo::optimise

// `capo optimise --ranks P --microbatches M`: the best order for given costs and memory, with a
// proof of how far it is from the best possible.
//
//   capo optimise --ranks 8 --microbatches 32 --cost f=10,b=12,w=8,comm=2 --memory 6 -o best.order
//
// Published schedules of these counts are made and simulated under the same constraints; those that
// have the same placement and fit are starts of the search. What is found is judged by the verifier
// and simulated before it is shown. Standard output holds the result only; what is better so far is
// told on standard error, at most once a second. Ctrl-C ends the search, and the best is printed.

#include "cli/commands/commands.h"
#include "cli/commands/optimise_request.h"
#include "cli/commands/optimised.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "optimise/bounds.h"
#include "optimise/search.h"
#include "optimise/variants.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

using optimise::LowerBounds;
using optimise::Problem;
using optimise::Start;

std::atomic<bool> was_interrupted = false;

extern "C" void end_search(int /*signal*/) {
  was_interrupted = true;
}

/// While an object of it lives, an interrupt ends the search and not the process.
class Interruptible {
 public:
  Interruptible() : before_(std::signal(SIGINT, end_search)) {}
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

// Bounds take a tenth of the time to search or so, and a few seconds at most.
std::uint64_t states_for(double seconds) {
  constexpr double kStatesOfSecond = 5e6;
  return static_cast<std::uint64_t>(std::clamp(kStatesOfSecond * seconds, 1e5, 2e8));
}

// The placements that have published schedules, and that of --from, are searched in full.
optimise::Variants variants_of(const OptimiseRequest& request, const AskedOrders& asked) {
  const optimise::Frame& frame = asked.problem.frame;
  optimise::Variants variants{.frame = frame,
                              .options = asked.options,
                              .places = request.free(),
                              .recomputes = request.chooses(),
                              .named = {},
                              .starts_of = {}};
  if (!request.free()) return variants;
  if (frame.chunks % 2 == 0) {
    variants.named.push_back(frame);
    variants.named.back().topology = Topology::V;
  }
  if (asked.given) variants.named.push_back(asked.given->frame);
  return variants;
}

/// One search for what is asked for: its starts, its bounds and what it comes to.
class OrderSearch {
 public:
  /// Both outlive it.
  OrderSearch(const OptimiseRequest& request, const AskedOrders& asked,
              Telling::Clock::time_point began, double most_seconds)
      : request_(request),
        asked_(asked),
        began_(began),
        most_seconds_(most_seconds),
        variants_(variants_of(request, asked)),
        bounds_(bounds_at_once()) {}

  [[nodiscard]] Made made();
  /// Writes what was found. Returns the exit code.
  [[nodiscard]] int write(const ForRecipient& made);

 private:
  /// Whether the placement or the chunks that recompute are searched too.
  [[nodiscard]] bool varies() const { return request_.free() || request_.chooses(); }
  [[nodiscard]] bool is_over() const {
    return was_interrupted || seconds_since(began_) > most_seconds_;
  }
  [[nodiscard]] LowerBounds bounds_at_once() const;
  [[nodiscard]] double better_bound();
  [[nodiscard]] std::vector<Start> starts_of(const Problem& of, const SimulationOptions& with);
  [[nodiscard]] Optimised optimised(const ForRecipient& made, const Problem& of,
                                    const SimulationOptions& with);

  const OptimiseRequest& request_;
  const AskedOrders& asked_;
  Telling::Clock::time_point began_;
  double most_seconds_;
  optimise::Variants variants_;
  LowerBounds bounds_;
  std::optional<std::vector<PublishedSchedule>> published_;  ///< once there were starts
};

// Those that are there before any order is.
LowerBounds OrderSearch::bounds_at_once() const {
  if (varies()) return bounds_of_variants(variants_);
  const Bounds& closed_forms = asked_.problem.closed_forms;
  return {.makespan = closed_forms.makespan, .span = closed_forms.span};
}

double OrderSearch::better_bound() {
  const std::uint64_t states = states_for(most_seconds_);
  const auto over = [this] { return is_over(); };
  bounds_ = varies() ? bounds_of_variants(variants_, states, request_.threads, over)
                     : lower_bounds(asked_.problem, states, over);
  return optimise::bound_of(bounds_, request_.objective).value;
}

// Published schedules are made when the search has orders already.
std::vector<Start> OrderSearch::starts_of(const Problem& of, const SimulationOptions& with) {
  const std::optional<FromFile>& given = asked_.given;
  auto made = published_schedules(of, with, request_.limits, request_.threads);
  std::vector<Start> starts;
  const bool whole = of.frame.microbatches == asked_.problem.frame.microbatches;
  const bool own = given && whole && placement_of(given->frame) == placement_of(of.frame);
  if (own) starts.push_back(given->start);
  add_starts(made, request_.recipient, starts);
  if (whole) published_ = std::move(made);
  return starts;
}

Made OrderSearch::made() {
  const optimise::SearchOptions how{.objective = request_.objective,
                                    .bound = optimise::bound_of(bounds_, request_.objective).value,
                                    .better_bound = [this] { return better_bound(); },
                                    .seed = request_.seed,
                                    .moves = request_.moves,
                                    .threads = request_.threads,
                                    .exhaustive_tasks = request_.exhaustive,
                                    .stopped = [this] { return is_over(); }};
  if (request_.recipient == Recipient::Mcore) {
    return made_by_megatron(asked_.problem, asked_.options, how, request_.limits);
  }
  const Telling telling(request_.objective, bounds_, began_);
  if (varies()) {
    variants_.starts_of = [this](const Problem& of, const SimulationOptions& with) {
      return starts_of(of, with);
    };
    return searched_for(request_.recipient, variants_, how, telling);
  }
  const auto starts = [this] { return starts_of(asked_.problem, asked_.options); };
  return searched_for(request_.recipient, asked_.problem, starts, how, telling, asked_.options);
}

int OrderSearch::write(const ForRecipient& made) {
  const Problem& of = made.variant ? made.variant->problem : asked_.problem;
  const SimulationOptions& with = made.variant ? made.variant->options : asked_.options;
  // Published schedules come to other times with each choice of chunks that recompute.
  if (!published_ || request_.chooses()) (void)starts_of(of, with);
  const LowerBounds shown = bounds_;  // without the search of all orders
  const Optimised found = optimised(made, of, with);
  if (!request_.bound_out.empty()) {
    if (const auto failed =
            write_bound(of, asked_.options.costs, found, shown, request_.bound_out)) {
      return fail(*failed);
    }
  }
  return print(found, format_of(request_), request_.output);
}

// A search of all orders raises the bound to what it found.
Optimised OrderSearch::optimised(const ForRecipient& made, const Problem& of,
                                 const SimulationOptions& with) {
  const double value = value_of(made.found.figures, request_.objective);
  if (made.found.proves(request_.objective)) raise_to(bounds_, request_.objective, value);
  const Bound& bound = optimise::bound_of(bounds_, request_.objective);
  return {.schedule = made.schedule,
          .frame = of.frame,
          .found = made.found,
          .bounds = bounds_,
          .published = *std::move(published_),
          .objective = request_.objective,
          .memory_limit = request_.memory_limit,
          .recomputed = with.costs.recomputed,
          .keep = asked_.options.memory.value_or(MemoryChange{}).keep,
          .fuse_w = request_.fuse_w,
          .variants = varies() ? made.variant->tried : 0,
          .places = request_.free(),
          .recomputes = request_.chooses(),
          .in_microseconds = asked_.options.costs.in_microseconds,
          .seed = request_.seed,
          .seconds = seconds_since(began_),
          .gap = optimise::gap_of(value, bound.value),
          .proved = optimise::reaches(value, bound.value)};
}

int optimise_request(const OptimiseRequest& request) {
  const auto began = Telling::Clock::now();
  const double most_seconds = seconds_of(request.time);
  const auto asked = asked_orders(request);
  if (const int* code = std::get_if<int>(&asked)) return *code;
  const Interruptible interruptible;
  OrderSearch search(request, std::get<AskedOrders>(asked), began, most_seconds);
  const Made made = search.made();
  if (!made) return no_such_order(made.error());
  if (!*made) {
    if (was_interrupted) return kInterrupted;
    print_stderr("error: no order was found in time\n  help: give it more with --time\n");
    return kNoVerdict;
  }
  const int code = search.write(**made);
  return code == kAccepted && was_interrupted ? kInterrupted : code;
}

}  // namespace

Run add_optimise(CLI::App& command) {
  command.footer(
      "Example: capo optimise --ranks 8 --microbatches 32 --cost f=10,b=12,w=8,comm=2 --memory 6 "
      "-o "
      "best.order");
  auto request = std::make_shared<OptimiseRequest>();
  add_optimise_options(command, *request);
  return [request] { return optimise_request(*request); };
}

}  // namespace capo::cli

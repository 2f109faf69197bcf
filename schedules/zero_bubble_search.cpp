// The zero bubble search of linear pipelines: an order of F, B and W for given times of the tasks
// and a given memory limit, found by rules of thumb rather than by proof.
//
//   3 ranks, 4 microbatches, F = B = W, limit 3 F:
//   rank 0:  F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3
//   rank 1:  F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3
//   rank 2:  F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
//
// After the warm-up every round gives each rank one B and at most one F, and a W goes where the
// rank would wait otherwise or where memory demands one. Eight combinations of three choices are
// tried and the first of the shortest is kept; what is short is the span, the longest time between
// a rank's first start and its last end. Every decision is the one of the authors' program, down to
// the order of the additions, so that equal times decide alike; and milliseconds decide as
// microseconds do.
//
// Ranks may differ in their times; the last, with its loss, often does. The authors' program then
// sometimes runs a forward before the rank ahead has sent its input. Here no rank takes more
// forwards into its warm-up than the one ahead, so that every order can run.
//
// The search proves no order to be the best: with little memory or slow transfers it is not. With
// the memory of 1F1B, a forward for each rank, it was as short as ZB-H1 wherever it was tried with
// two transfers no longer than a W and twice as many microbatches as ranks, or more.
//
// Qi et al., arXiv 2401.10241, section 3; zb.py of sail-sg/zero-bubble-pipeline-parallelism at
// 39f2c186. Tested by zero_bubble_search_test.cpp.

#include "core/base/assert.h"
#include "schedules/generators.h"
#include "schedules/zero_bubble_pipeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace capo::schedules {

namespace zero_bubble {
namespace {

/// Says when a rank stops to run forwards ahead of its first backward, memory permitting.
enum class WarmUp {
  EndsInTime,  ///< stops before a forward that would end after the first gradient arrives
  FillsWait,   ///< stops once it would not wait for that gradient any more
};
/// Says whether a rank that is two forwards ahead of the next may leave out the forward of a round.
enum class RoundForward { MayBeLeftOut, Always };
/// Says whether a W fills a wait that is too short for it and does not lengthen the span by itself.
enum class ShortWait { Filled, Kept };

struct LinearChoices {
  WarmUp warm_up;
  RoundForward round_forward;
  ShortWait short_wait;
};

class LinearSearch {
 public:
  LinearSearch(const Setting& setting, const LinearChoices& choices)
      : choices_(choices), pipeline_(setting, Pipeline::Shape::Linear) {}

  void search() {
    warm_up();
    for (std::int32_t round = 1; round < pipeline_.microbatches(); ++round) {
      run_forwards(ranks_with_forward());
      run_backwards();
    }
    pipeline_.run_weights_left();
  }

  [[nodiscard]] double span() const {
    double longest = 0;
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      const Rank& rank = pipeline_[r];
      const double first_end = rank.ends[index_of(kForwardOut)].front();
      longest = std::max(longest, rank.clock - first_end + rank.costs.forward);
    }
    return longest;
  }

  [[nodiscard]] PublishedOrders orders() && { return std::move(pipeline_).orders(); }

 private:
  void warm_up() {
    for (std::size_t r = 0; r < pipeline_.size(); ++r) run(r, kForwardOut);
    const std::vector<std::int32_t> ahead = forwards_ahead();
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      for (std::int32_t i = 0; i < ahead[r]; ++i) run(r, kForwardOut);
    }
    for (std::size_t r = pipeline_.size(); r-- > 0;) run(r, kBackwardBack);
  }

  void run(std::size_t r, Step step, double input) {
    CAPO_ASSERT(input >= 0 || !pipeline_.rank_before(r, step.leg),
                "a rank runs what the rank before it has run");
    pipeline_.run(r, step, input);
  }
  void run(std::size_t r, Step step) { run(r, step, pipeline_.arrival(r, step)); }

  // The forwards between F0 and B0 of each rank: as many as memory and the way of the first
  // gradient allow, but fewer than on the rank before as long as there are microbatches left.
  [[nodiscard]] std::vector<std::int32_t> forwards_ahead() const {
    const std::int32_t microbatches = pipeline_.microbatches();
    std::vector<std::int32_t> ahead(pipeline_.size(), 0);
    const Rank& last = pipeline_[pipeline_.size() - 1];
    double gradient_leaves = last.clock + last.costs.backward;
    for (std::size_t r = pipeline_.size() - 1; r-- > 0;) {
      const Rank& rank = pipeline_[r];
      const double arrival = gradient_leaves + pipeline_.transfer();
      double clock = rank.clock;
      while (ahead[r] + 1 < microbatches &&
             pipeline_.memory().fits_forwards(rank.run, ahead[r] + 1) &&
             !warm(rank, clock, arrival)) {
        clock += rank.costs.forward;
        ++ahead[r];
      }
      gradient_leaves = std::max(clock, arrival) + rank.costs.backward;
    }
    for (std::size_t r = 1; r < pipeline_.size(); ++r) {
      ahead[r] = std::min(ahead[r], ahead[r - 1]);
      if (ahead[r] + 1 < microbatches) ahead[r] = std::clamp(ahead[r - 1] - 1, 0, ahead[r]);
    }
    return ahead;
  }

  [[nodiscard]] bool warm(const Rank& rank, double clock, double arrival) const {
    if (choices_.warm_up == WarmUp::EndsInTime) return clock + rank.costs.forward > arrival;
    return clock >= arrival;
  }

  // A rank that leaves its forward out makes all ranks before it leave theirs out: they would only
  // run further ahead of it.
  [[nodiscard]] std::vector<bool> ranks_with_forward() const {
    std::vector<bool> runs(pipeline_.size());
    bool next_runs = true;
    for (std::size_t r = pipeline_.size(); r-- > 0;) {
      next_runs = next_runs && wants_forward(r);
      runs[r] = next_runs;
    }
    return runs;
  }

  [[nodiscard]] bool wants_forward(std::size_t r) const {
    const Rank& rank = pipeline_[r];
    if (rank.run.forwards == pipeline_.microbatches()) return false;
    if (choices_.round_forward == RoundForward::Always || r + 1 == pipeline_.size()) return true;
    const Rank& next = pipeline_[r + 1];
    if (rank.run.forwards < next.run.forwards + 2) return true;
    const double gradient_arrives =
        next.clock + next.costs.forward + next.costs.backward + pipeline_.transfer();
    if (rank.clock >= gradient_arrives) return false;
    if (rank.clock + rank.costs.forward + time_to_make_room(rank) <= gradient_arrives) return true;
    return gradient_arrives - rank.clock > harmless_wait(rank);
  }

  [[nodiscard]] double time_to_make_room(const Rank& rank) const {
    double time = 0;
    MemoryLimit::Tasks run = rank.run;
    for (; !pipeline_.memory().fits_forwards(run) && run.weights < run.backwards; ++run.weights) {
      time += rank.costs.weight;
    }
    return time;
  }

  void run_forwards(const std::vector<bool>& runs) {
    for (std::size_t r = 0; r < pipeline_.size(); ++r) {
      if (runs[r]) run_in_room(r, kForwardOut);
    }
  }

  void run_backwards() {
    for (std::size_t r = pipeline_.size(); r-- > 0;) run_in_room(r, kBackwardBack);
  }

  void run_in_room(std::size_t r, Step step) {
    const bool fits = pipeline_.make_room(r, step.pass);
    CAPO_ASSERT(fits, "a limit that holds a microbatch never needs more Ws than wait");
    const double input = pipeline_.arrival(r, step);
    fill_wait(r, input);
    // The first rank hands no gradient on, so a W after its last forward delays no other rank.
    const Rank& rank = pipeline_[r];
    if (step.pass == Pass::Backward && r == 0 && rank.run.forwards == pipeline_.microbatches()) {
      while (rank.owes_weight()) pipeline_.run_weight(r);
    }
    run(r, step, input);
  }

  void fill_wait(std::size_t r, double arrival) {
    pipeline_.run_weights_until(r, arrival);
    const Rank& rank = pipeline_[r];
    if (!rank.owes_weight() || rank.clock >= arrival) return;
    const bool harmless = arrival - rank.clock <= harmless_wait(rank);
    if (!harmless || choices_.short_wait == ShortWait::Filled) pipeline_.run_weight(r);
  }

  // The rank that waits most decides on the span; the others may wait as long as it has.
  [[nodiscard]] double harmless_wait(const Rank& rank) const {
    return pipeline_.most_idle() - rank.idle;
  }

  LinearChoices choices_;
  Pipeline pipeline_;
};

constexpr std::array<LinearChoices, 8> all_choices() {
  std::array<LinearChoices, 8> all{};
  std::size_t next = 0;
  for (const WarmUp warm_up : {WarmUp::EndsInTime, WarmUp::FillsWait}) {
    for (const RoundForward forward : {RoundForward::MayBeLeftOut, RoundForward::Always}) {
      for (const ShortWait wait : {ShortWait::Filled, ShortWait::Kept}) {
        all[next++] = {.warm_up = warm_up, .round_forward = forward, .short_wait = wait};
      }
    }
  }
  return all;
}

}  // namespace
}  // namespace zero_bubble

Generated zero_bubble_search(const Setting& setting) {
  using namespace zero_bubble;
  if (auto refusal = refuse_search("zb", setting, 1)) {
    return std::move(*refusal);
  }
  const Setting whole = in_whole_times(setting);
  std::optional<LinearSearch> shortest;
  for (const LinearChoices& choices : all_choices()) {
    LinearSearch attempt(whole, choices);
    attempt.search();
    if (!shortest || attempt.span() < shortest->span()) shortest = std::move(attempt);
  }
  return std::move(*shortest).orders();
}

}  // namespace capo::schedules

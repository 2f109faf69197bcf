// Bounds for all placements at once. What they rest on is the same under each: the work of every
// rank, and that one microbatch passes all stages there and back.
//
// In any placement, let a rank have `earlier` other ranks with a first stage in front of its own
// first stage, and `behind` other ranks with a last stage behind its own last one. Both number the
// ranks from 0, each in an order of its own. In front of the rank's first forward a microbatch runs
// forward on at least one stage of each earlier rank, and behind its last stage there and back on
// at least one of each rank behind; a way that passes k ranks more has k messages at least, which
// take no less than the k least links that join all ranks without a circle (of sets of k links
// without a circle, Kruskal's has the least sum). So for each rank, with sums over the least of the
// others:
//
//   first forward     the least forwards of `earlier` ranks, and as many messages
//   first backward    all forwards of all ranks, messages to all ranks, and the least input halves
//                     of the ranks behind, with as many messages
//   behind forwards   the least forwards of the ranks behind, all input halves, a weight gradient
//   behind backwards  the least input halves of the earlier ranks, and a weight gradient
//   memory            until a first backward gives something up, no more forwards than fit
//
// Jackson's rule makes a bound for the rank of these, which grows with `earlier` and with `behind`.
// Which rank has which number is for the placement to choose; the least of all choices is taken:
//
//   of `earlier` alone    the last number goes to the rank that has least with it, and so on down
//                         (Lawler): if another had it, the two could change places, and the one
//                         that comes forward has no more than before
//   of `behind` alone     the same
//   of both               a rank that had both numbers at once least of all ranks is taken for
//                         each; then the largest `earlier` with the least `behind`, and so on, is
//                         best: the k-th largest must go with one no less than the k-th least, or a
//                         larger one does
//
// For a span a rank's own beginning counts, so that in front of its first backward are its own
// forwards and those of the ranks whose first stages all lie behind its own: all of their stages
// do.
//
// Memory of all ranks: what a stage holds, times how long a microbatch is there and back from it,
// is summed over stages. From the last stage to the first that time grows by what each takes, so
// that the sum is least where stages stand by time for memory (Smith's rule), and messages are
// counted by how many ranks so many stages need at least, the longest ways for what holds least.
// All this is no more than the memory of all ranks times their time, which begins when the first
// forward does.

#include "optimise/jackson.h"
#include "optimise/placements.h"

#include "core/base/index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace capo::optimise {

namespace {

constexpr std::size_t kF = as_index(Half::Forward);
constexpr std::size_t kB = as_index(Half::Backward);
constexpr std::size_t kW = as_index(Half::Weight);
/// Both numbers of a rank are looked at together of so many ranks: that takes the cube of them.
constexpr std::size_t kMostTogether = 64;

// Least sums over some of the other ranks, by how many they are.
std::vector<double> least_of_others(std::vector<double> of_rank, std::size_t rank) {
  of_rank.erase(of_rank.begin() + static_cast<std::ptrdiff_t>(rank));
  std::ranges::sort(of_rank);
  std::vector<double> sums{0};
  for (const double each : of_rank) sums.push_back(sums.back() + each);
  return sums;
}

// A time for each unit of memory that a chunk takes; without end if it takes none.
double for_memory(double time, const ChunkCosts& of) {
  const double holds = of.holds[kF];
  return holds > 0 ? time / holds : std::numeric_limits<double>::infinity();
}

class AnyPlacement {
 public:
  explicit AnyPlacement(const RankCosts& costs) : costs_(costs), m_(costs.microbatches) {
    least_weight_ = std::numeric_limits<double>::infinity();
    for (std::size_t rank = 0; rank < costs.ranks; ++rank) {
      for (const std::size_t half : {kF, kB, kW}) {
        sums_[half].push_back(0);
        least_[half].push_back(std::numeric_limits<double>::infinity());
        for (std::size_t chunk = 0; chunk < costs.chunks; ++chunk) {
          const double takes = costs.chunk(rank, chunk).takes[half];
          sums_[half].back() += takes;
          least_[half].back() = std::min(least_[half].back(), takes);
        }
        all_[half] += sums_[half].back();
      }
      least_weight_ = std::min(least_weight_, least_[kW].back());
    }
    find_messages();
  }

  [[nodiscard]] LowerBounds bounds() const {
    const double path = all_[kF] + all_[kB] + 2 * messages_.back() + least_weight_;
    LowerBounds bounds{.makespan = {.value = path, .by = "any path"},
                       .span = {.value = 0, .by = "any work"}};
    const auto raise = [](Bound& bound, double value, const char* by) {
      if (value > bound.value) bound = {.value = value, .by = by};
    };
    raise(bounds.makespan, best_choice(&AnyPlacement::of_makespan), "any work");
    raise(bounds.span, best_choice(&AnyPlacement::of_span), "any work");
    const auto ranks = static_cast<double>(costs_.ranks);
    const double held = held_over_time() / costs_.memory_limit;
    raise(bounds.makespan, (held + beginnings()) / ranks, "any memory");
    raise(bounds.span, held / ranks, "any memory");
    bounds.makespan.value *= 1 - 1e-12;
    bounds.span.value *= 1 - 1e-12;
    return bounds;
  }

 private:
  /// How many ranks are earlier and behind.
  struct Numbers {
    std::size_t earlier = 0;
    std::size_t behind = 0;
  };
  /// Others than one rank do so much at least, by how many they are.
  struct Others {
    std::vector<double> forward;
    std::vector<double> backward;
    std::vector<double> forwards;   // all of their forwards
    std::vector<double> backwards;  // and input halves
  };
  using OfRank = double (AnyPlacement::*)(std::size_t, const Others&, Numbers) const;

  // Kruskal's tree, link by link.
  void find_messages() {
    struct Link {
      double takes;
      std::size_t a;
      std::size_t b;
    };
    std::vector<Link> links;
    for (std::size_t a = 0; a < costs_.ranks; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        links.push_back({std::min(costs_.link(a, b), costs_.link(b, a)), a, b});
      }
    }
    std::ranges::stable_sort(links, {}, &Link::takes);
    std::vector<std::size_t> part(costs_.ranks);
    std::iota(part.begin(), part.end(), std::size_t{0});
    for (const Link& link : links) {
      const std::size_t from = part[link.a];
      const std::size_t to = part[link.b];
      if (from == to) continue;
      std::ranges::replace(part, from, to);
      messages_.push_back(messages_.back() + link.takes);
    }
  }

  // The work of forwards that fit on a rank before anything is given up.
  [[nodiscard]] double forwards_that_fit(std::size_t rank) const {
    double left = costs_.memory_limit * (1 + 1e-9);
    const ChunkCosts& first = costs_.chunk(rank, 0);
    std::vector<ChunkCosts> chunks;
    for (std::size_t chunk = 0; chunk < costs_.chunks; ++chunk) {
      chunks.push_back(costs_.chunk(rank, chunk));
    }
    const bool same = std::ranges::all_of(
        chunks, [&](const ChunkCosts& of) { return of.holds[kF] == first.holds[kF]; });
    if (same && first.holds[kF] > 0) {
      left = std::floor(left / first.holds[kF] + 1e-9) * first.holds[kF];
    }
    std::ranges::stable_sort(chunks, std::greater<>(),
                             [](const ChunkCosts& of) { return for_memory(of.takes[kF], of); });
    double work = 0;
    for (const ChunkCosts& of : chunks) {
      const double fit = of.holds[kF] > 0 ? std::min(m_, left / of.holds[kF]) : m_;
      work += fit * of.takes[kF];
      left -= fit * of.holds[kF];
    }
    return work;
  }

  [[nodiscard]] Others others_of(std::size_t rank) const {
    return {.forward = least_of_others(least_[kF], rank),
            .backward = least_of_others(least_[kB], rank),
            .forwards = least_of_others(sums_[kF], rank),
            .backwards = least_of_others(sums_[kB], rank)};
  }

  // The rank's work, of which forwards, backwards and weight gradients have a head and a tail each.
  [[nodiscard]] double work_of(std::size_t rank, double first_forward, double first_backward,
                               double behind_forwards, double behind_backwards) const {
    const double given =
        first_backward + least_[kB][rank] + (gives_behind(rank) ? 0 : least_[kW][rank]);
    const double forwards = m_ * sums_[kF][rank];
    const double early = std::min(forwards, forwards_that_fit(rank));
    std::vector<Job> jobs{{first_forward, early, behind_forwards},
                          {first_backward, m_ * sums_[kB][rank], behind_backwards},
                          {first_backward + least_[kB][rank], m_ * sums_[kW][rank], 0}};
    if (early < forwards) {
      jobs.push_back({std::max(first_forward, given), forwards - early, behind_forwards});
    }
    return jackson(std::move(jobs));
  }

  // Whether an input half of the rank gives memory up.
  [[nodiscard]] bool gives_behind(std::size_t rank) const {
    for (std::size_t chunk = 0; chunk < costs_.chunks; ++chunk) {
      if (costs_.chunk(rank, chunk).holds[kB] < 0) return true;
    }
    return false;
  }

  [[nodiscard]] double of_makespan(std::size_t rank, const Others& others, Numbers n) const {
    const double all_there = messages_.back();
    return work_of(
        rank, others.forward[n.earlier] + messages_[n.earlier],
        all_[kF] + all_there + others.backward[n.behind] + messages_[n.behind],
        others.forward[n.behind] + messages_[n.behind] + all_[kB] + all_there + least_weight_,
        others.backward[n.earlier] + messages_[n.earlier] + least_weight_);
  }

  // Here `earlier` numbers the ranks whose first stages lie behind, the other way round.
  [[nodiscard]] double of_span(std::size_t rank, const Others& others, Numbers n) const {
    const double there = messages_[n.earlier];
    const double back = messages_[n.behind];
    return work_of(
        rank, 0,
        sums_[kF][rank] + others.forwards[n.earlier] + there + others.backward[n.behind] + back,
        others.forward[n.behind] + back + sums_[kB][rank] + others.backwards[n.earlier] + there +
            least_[kW][rank],
        least_[kW][rank]);
  }

  // The least that any choice of numbers comes to.
  [[nodiscard]] double best_choice(OfRank of_rank) const {
    const std::size_t ranks = costs_.ranks;
    std::vector<Others> others;
    for (std::size_t rank = 0; rank < ranks; ++rank) others.push_back(others_of(rank));
    const auto of = [&](std::size_t rank, Numbers numbers) {
      return (this->*of_rank)(rank, others[rank], numbers);
    };
    double best =
        std::max(lawler([&](std::size_t rank, std::size_t n) { return of(rank, {.earlier = n}); }),
                 lawler([&](std::size_t rank, std::size_t n) { return of(rank, {.behind = n}); }));
    if (ranks > kMostTogether) return best;
    for (std::size_t n = 0; n < ranks; ++n) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        least = std::min(least, of(rank, {.earlier = n, .behind = ranks - 1 - n}));
      }
      best = std::max(best, least);
    }
    return best;
  }

  [[nodiscard]] double lawler(const std::function<double(std::size_t, std::size_t)>& of) const {
    std::vector<std::size_t> left(costs_.ranks);
    std::iota(left.begin(), left.end(), std::size_t{0});
    double most = 0;
    for (std::size_t n = costs_.ranks; n-- > 0;) {
      std::vector<double> values;
      for (const std::size_t rank : left) values.push_back(of(rank, n));
      const auto least = std::ranges::min_element(values);
      most = std::max(most, *least);
      left.erase(left.begin() + (least - values.begin()));
    }
    return most;
  }

  // When ranks begin, summed over all.
  [[nodiscard]] double beginnings() const {
    std::vector<double> least = least_[kF];
    std::ranges::sort(least);
    double sum = 0;
    double forwards = 0;
    for (std::size_t n = 0; n < costs_.ranks; ++n) {
      sum += forwards + messages_[n];
      forwards += least[n];
    }
    return sum;
  }

  // Adds up what all microbatches hold, times how long; 0 if some gives up more than it took.
  [[nodiscard]] double held_over_time() const {
    std::vector<ChunkCosts> stages = costs_.of;
    double sum = 0;
    for (const ChunkCosts& of : stages) {
      const double left = of.holds[kF] + of.holds[kB] + of.holds[kW];
      if (of.holds[kW] > 0 || left < -1e-9 * of.holds[kF]) return 0;
      sum -= of.holds[kW] * of.takes[kW];
    }
    const auto time = [](const ChunkCosts& of) { return of.takes[kF] + of.takes[kB]; };
    std::ranges::stable_sort(stages, {},
                             [&](const ChunkCosts& of) { return for_memory(time(of), of); });
    double residence = 0;
    for (const ChunkCosts& of : stages) {
      residence += time(of);
      sum += of.holds[kF] * residence;
    }
    std::ranges::stable_sort(stages, std::greater<>(),
                             [](const ChunkCosts& of) { return of.holds[kF]; });
    for (std::size_t k = 0; k < stages.size(); ++k) {
      sum += stages[k].holds[kF] * 2 * messages_[k / costs_.chunks];
    }
    return m_ * sum;
  }

  const RankCosts& costs_;
  double m_;
  std::array<std::vector<double>, 3> sums_;   // by half and rank: of one microbatch
  std::array<std::vector<double>, 3> least_;  // of a chunk
  std::array<double, 3> all_{};
  double least_weight_;
  std::vector<double> messages_{0};  // of a way that passes so many ranks more, at least
};

}  // namespace

LowerBounds bounds_of_any_placement(const RankCosts& costs) {
  return AnyPlacement(costs).bounds();
}

}  // namespace capo::optimise

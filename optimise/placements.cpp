#include "optimise/placements.h"

#include "core/base/index.h"
#include "optimise/calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace capo::optimise {

namespace {

/// Passes of a shape are told apart up to so many; further ones repeat them.
constexpr std::size_t kMostPasses = 4;
/// Ways to the nearest rank begin on about so many ranks.
constexpr std::uint32_t kMostFirst = 8;

// Whether an exchange of two ranks changes nothing.
bool are_alike(const RankCosts& costs, std::size_t a, std::size_t b) {
  for (std::size_t chunk = 0; chunk < costs.chunks; ++chunk) {
    if (!(costs.chunk(a, chunk) == costs.chunk(b, chunk))) return false;
  }
  const auto other = [&](std::size_t rank) { return rank == a ? b : rank == b ? a : rank; };
  for (std::size_t rank = 0; rank < costs.ranks; ++rank) {
    for (const std::size_t end : {a, b}) {
      if (rank == end) continue;
      if (costs.link(end, rank) != costs.link(other(end), other(rank))) return false;
      if (costs.link(rank, end) != costs.link(other(rank), other(end))) return false;
    }
  }
  return true;
}

// The orders of ranks that shapes go through: as they are numbered, by their work from either end,
// and from each to the nearest that is left.
std::vector<std::vector<std::uint32_t>> ways(const RankCosts& costs) {
  std::vector<std::uint32_t> numbered(costs.ranks);
  std::iota(numbered.begin(), numbered.end(), 0U);
  const auto work = [&](std::uint32_t rank) {
    double sum = 0;
    for (std::size_t chunk = 0; chunk < costs.chunks; ++chunk) {
      for (const double takes : costs.chunk(rank, chunk).takes) sum += takes;
    }
    return sum;
  };
  std::vector<std::vector<std::uint32_t>> all{numbered};
  std::vector<std::uint32_t> by_work = numbered;
  std::ranges::stable_sort(by_work, {}, work);
  all.push_back(by_work);
  // The ranks with most work in the middle, and those with most work at both ends.
  std::vector<std::uint32_t> middle;
  for (std::size_t i = 0; i < by_work.size(); i += 2) middle.push_back(by_work[i]);
  for (std::size_t i = by_work.size(); i-- > 0;) {
    if (i % 2 == 1) middle.push_back(by_work[i]);
  }
  all.push_back(middle);
  std::vector<std::uint32_t> ends(middle.begin() + static_cast<std::ptrdiff_t>(middle.size() / 2),
                                  middle.end());
  ends.insert(ends.end(), middle.begin(),
              middle.begin() + static_cast<std::ptrdiff_t>(middle.size() / 2));
  all.push_back(ends);
  const auto step = std::max(1U, static_cast<std::uint32_t>(costs.ranks) / kMostFirst);
  for (std::uint32_t first = 0; first < costs.ranks; first += step) {
    std::vector<std::uint32_t> near{first};
    std::vector<std::uint32_t> left = numbered;
    std::erase(left, first);
    while (!left.empty()) {
      const auto next = std::ranges::min_element(
          left, {}, [&](std::uint32_t rank) { return costs.link(near.back(), rank); });
      near.push_back(*next);
      left.erase(next);
    }
    all.push_back(std::move(near));
  }
  const std::size_t one_way = all.size();
  for (std::size_t i = 0; i < one_way; ++i) all.emplace_back(all[i].rbegin(), all[i].rend());
  return all;
}

// Adds placements to those that are there, unless they are.
class Distinct {
 public:
  explicit Distinct(const RankCosts& costs) : alike_(alike(costs)) {}

  void add(Placement placement) {
    placement = standing_for(std::move(placement), alike_);
    if (known_.insert(placement).second) all_.push_back(std::move(placement));
  }
  std::vector<Placement> take() { return std::move(all_); }

 private:
  std::vector<std::uint32_t> alike_;
  std::set<Placement> known_;
  std::vector<Placement> all_;
};

// All placements, stage by stage: of ranks that are alike, the next one has its first stage behind
// that of the one before.
class Enumeration {
 public:
  Enumeration(const RankCosts& costs, std::size_t most, std::vector<std::uint32_t> alike)
      : costs_(costs), most_(most), alike_(std::move(alike)), held_(costs.ranks, 0) {}

  /// Returns false if there are too many.
  bool run() {
    if (all_.size() > most_) return false;
    if (stages_.size() == costs_.ranks * costs_.chunks) {
      all_.push_back(stages_);
      return all_.size() <= most_;
    }
    for (std::uint32_t rank = 0; rank < costs_.ranks; ++rank) {
      if (held_[rank] == costs_.chunks || waits(rank)) continue;
      ++held_[rank];
      stages_.push_back(rank);
      const bool goes_on = run();
      stages_.pop_back();
      --held_[rank];
      if (!goes_on) return false;
    }
    return true;
  }
  std::vector<Placement> take() { return std::move(all_); }

 private:
  // Whether a rank before it that is alike has no stage yet.
  [[nodiscard]] bool waits(std::uint32_t rank) const {
    for (std::uint32_t before = alike_[rank]; before < rank; ++before) {
      if (alike_[before] == alike_[rank] && held_[before] == 0) return true;
    }
    return false;
  }

  const RankCosts& costs_;
  std::size_t most_;
  std::vector<std::uint32_t> alike_;
  std::vector<std::size_t> held_;
  Placement stages_;
  std::vector<Placement> all_;
};

}  // namespace

RankCosts rank_costs_of(const Problem& problem, const Costs& costs) {
  RankCosts all{.ranks = problem.of_rank.size(),
                .chunks = as_index(problem.frame.chunks),
                .of = {},
                .lag = {},
                .microbatches = problem.microbatches(),
                .memory_limit = problem.memory_limit};
  for (const auto& series : problem.of_rank) {
    for (std::size_t chunk = 0; chunk < all.chunks; ++chunk) {
      ChunkCosts& of = all.of.emplace_back();
      for (std::size_t half = 0; half < of.takes.size(); ++half) {
        const Series& each = problem.series[series[3 * chunk + half]];
        of.takes[half] = each.takes;
        of.holds[half] = each.holds;
      }
      of.further = problem.series[series[3 * chunk + as_index(Half::Weight)]].further;
    }
  }
  const auto ranks = static_cast<std::int32_t>(all.ranks);
  for (std::int32_t from = 0; from < ranks; ++from) {
    for (std::int32_t to = 0; to < ranks; ++to) {
      all.lag.push_back(from == to ? 0 : costs.between(from, to).total());
    }
  }
  return all;
}

RankCosts least_costs_of(const Problem& problem, const Costs& costs) {
  return rank_costs_of(relaxed(problem.fuses() ? with_least_weights(problem) : problem), costs);
}

std::vector<std::uint32_t> alike(const RankCosts& costs) {
  std::vector<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < costs.ranks; ++rank) {
    std::uint32_t same = 0;
    while (same < rank && !(first[same] == same && are_alike(costs, same, rank))) ++same;
    first.push_back(same);
  }
  return first;
}

Placement standing_for(Placement placement, const std::vector<std::uint32_t>& alike) {
  const std::size_t ranks = alike.size();
  std::vector<std::uint32_t> called(ranks, static_cast<std::uint32_t>(ranks));
  std::vector<std::uint32_t> next(ranks);  // by the first of ranks that are alike: the next of them
  std::iota(next.begin(), next.end(), 0U);
  for (std::uint32_t& rank : placement) {
    if (called[rank] == ranks) {
      std::uint32_t& name = next[alike[rank]];
      called[rank] = name++;
      while (name < ranks && alike[name] != alike[rank]) ++name;
    }
    rank = called[rank];
  }
  return placement;
}

Placement placement_of(const Frame& frame) {
  const Schedule schedule = placed(frame);
  Placement placement(as_index(frame.ranks) * as_index(frame.chunks));
  for (std::uint32_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const std::int32_t stage : schedule.ranks[rank].stages) placement[as_index(stage)] = rank;
  }
  return placement;
}

Frame with_placement(Frame frame, const Placement& placement) {
  frame.stages.clear();
  for (const Topology named : {Topology::Loop, Topology::V}) {
    if (named == Topology::V && frame.chunks % 2 != 0) continue;
    frame.topology = named;
    if (placement_of(frame) == placement) return frame;
  }
  frame.topology = Topology::Custom;
  frame.stages.resize(as_index(frame.ranks));
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    frame.stages[placement[stage]].push_back(static_cast<std::int32_t>(stage));
  }
  return frame;
}

std::vector<Placement> shapes(const RankCosts& costs) {
  Distinct all(costs);
  const std::size_t told_apart = std::min(costs.chunks, kMostPasses);
  for (const auto& way : ways(costs)) {
    for (std::size_t turns = 0; turns < std::size_t{1} << told_apart; ++turns) {
      Placement placement;
      for (std::size_t pass = 0; pass < costs.chunks; ++pass) {
        const bool back = (turns >> (pass % told_apart)) % 2 == 1;
        if (back) placement.insert(placement.end(), way.rbegin(), way.rend());
        if (!back) placement.insert(placement.end(), way.begin(), way.end());
      }
      all.add(std::move(placement));
    }
    Placement chain;
    for (const std::uint32_t rank : way) chain.insert(chain.end(), costs.chunks, rank);
    all.add(std::move(chain));
  }
  return all.take();
}

std::optional<std::vector<Placement>> all_placements(const RankCosts& costs, std::size_t most,
                                                     std::vector<std::uint32_t> alike) {
  Enumeration enumeration(costs, most, std::move(alike));
  if (!enumeration.run()) return std::nullopt;
  return enumeration.take();
}

Placement neighbour_of(Placement placement, std::size_t ranks, Chance& chance) {
  do {
    const std::size_t a = chance.below(placement.size());
    const std::size_t b = chance.below(placement.size());
    switch (chance.below(4)) {
      case 0:
      case 1:
        std::swap(placement[a], placement[b]);
        break;
      case 2: {
        const auto first = placement.begin() + static_cast<std::ptrdiff_t>(std::min(a, b));
        std::reverse(first, placement.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)) + 1);
        break;
      }
      default: {
        const std::uint32_t one = chance.below(ranks);
        const std::uint32_t other = chance.below(ranks);
        for (std::uint32_t& rank : placement) {
          rank = rank == one ? other : rank == other ? one : rank;
        }
      }
    }
  } while (chance.below(3) == 0);
  return placement;
}

std::string words_for(const Frame& frame) {
  if (frame.topology != Topology::Custom) return std::string(name_of(frame.topology));
  std::vector<std::string> ranks;
  for (const auto& stages : frame.stages) {
    ranks.push_back(fmt::format("rank {} stages {}", ranks.size(), fmt::join(stages, ",")));
  }
  return fmt::format("{}", fmt::join(ranks, "; "));
}

}  // namespace capo::optimise

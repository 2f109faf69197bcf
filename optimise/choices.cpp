#include "optimise/choices.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <utility>

namespace capo::optimise {

namespace {

/// More chunks than this have too many subsets to look at all.
constexpr std::size_t kMostChunks = 8;

// All chunks of a rank are told as that rank, and all of all as no scope at all.
Recomputed recomputed_by(const std::vector<bool>& chosen, std::int32_t chunks) {
  const auto all = [&](std::size_t first, std::size_t last) {
    const auto begin = chosen.begin();
    return std::all_of(begin + static_cast<std::ptrdiff_t>(first),
                       begin + static_cast<std::ptrdiff_t>(last), [](bool each) { return each; });
  };
  Recomputed recomputed;
  if (all(0, chosen.size())) return {.scopes = {CostScope{}}};
  const std::size_t of_rank = as_index(chunks);
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    const auto rank = static_cast<std::int32_t>(at / of_rank);
    if (at % of_rank == 0 && all(at, at + of_rank)) {
      recomputed.scopes.push_back({.rank = rank});
      at += of_rank - 1;
    } else if (chosen[at]) {
      recomputed.scopes.push_back(
          {.rank = rank, .chunk = static_cast<std::int32_t>(at % of_rank) + 1});
    }
  }
  return recomputed;
}

// Returns for each rank the first one that is alike in both.
std::vector<std::uint32_t> alike_in_both(const std::vector<std::uint32_t>& one,
                                         const std::vector<std::uint32_t>& other) {
  std::vector<std::uint32_t> both;
  for (std::uint32_t rank = 0; rank < one.size(); ++rank) {
    std::uint32_t first = 0;
    while (one[first] != one[rank] || other[first] != other[rank]) ++first;
    both.push_back(first);
  }
  return both;
}

}  // namespace

Choices::Choices(const Variants& of)
    : of_(of), chunks_(of.recomputes ? as_index(of.frame.ranks) * as_index(of.frame.chunks) : 0) {
  if (!of.places) return;
  const auto costs_with = [&](const SimulationOptions& options) {
    return rank_costs_of(*problem_of(of.frame, options), options.costs);
  };
  costs_ = costs_with(of.recomputes ? with_none_recomputed(of.options) : of.options);
  alike_ = alike(costs_);
  if (of.recomputes) {
    alike_ = alike_in_both(alike_, alike(costs_with(with_all_recomputed(of.options))));
  }
}

SimulationOptions Choices::options_of(const Choice& choice) const {
  SimulationOptions options = of_.options;
  if (of_.recomputes) {
    options.costs.recomputed = recomputed_by(choice.recomputed, of_.frame.chunks);
  }
  return options;
}

Problem Choices::problem_with(const Choice& choice, std::int32_t microbatches) const {
  Frame frame = of_.places ? with_placement(of_.frame, choice.placement) : of_.frame;
  frame.microbatches = microbatches;
  auto problem = problem_of(frame, options_of(choice));
  CAPO_ASSERT(problem.has_value(), "what one variant may be searched with, all may");
  return *std::move(problem);
}

Choice Choices::standing_for_all(Choice choice) const {
  if (!of_.places) return choice;
  const Placement standing = standing_for(choice.placement, alike_);
  if (chunks_ > 0) {
    const std::vector<bool> before = choice.recomputed;
    const std::size_t of_rank = as_index(of_.frame.chunks);
    for (std::size_t stage = 0; stage < standing.size(); ++stage) {
      for (std::size_t chunk = 0; chunk < of_rank; ++chunk) {
        choice.recomputed[standing[stage] * of_rank + chunk] =
            before[choice.placement[stage] * of_rank + chunk];
      }
    }
  }
  choice.placement = standing;
  return choice;
}

std::optional<std::vector<Choice>> Choices::all() const {
  std::vector<Placement> placements{placement_of(of_.frame)};
  if (of_.places) {
    auto found = all_placements(costs_, kFewVariants, alike_);
    if (!found) return std::nullopt;
    placements = *std::move(found);
  }
  if (chunks_ > kMostChunks || placements.size() << chunks_ > kFewVariants) return std::nullopt;
  std::vector<Choice> choices;
  for (const Placement& placement : placements) {
    for (std::size_t subset = 0; subset < std::size_t{1} << chunks_; ++subset) {
      Choice& choice = choices.emplace_back(Choice{.placement = placement, .recomputed = {}});
      for (std::size_t at = 0; at < chunks_; ++at) {
        choice.recomputed.push_back((subset >> at) % 2 == 1);
      }
    }
  }
  return choices;
}

}  // namespace capo::optimise

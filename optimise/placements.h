// Placements of one pipeline: on which rank each of its stages is.
//
//   0 1 2 2 1 0    six stages on three ranks with two chunks each: a V
//   0 1 2 1 2 0    the same ranks, and the way down once more before it ends on rank 0
//
// A rank numbers its chunks in the order of their stages, so that such a line says all. What tasks
// take and hold is stated of a rank and a chunk, and what messages take of a link: a stage takes
// that of the chunk that it is put on.
//
// Two placements are the same one if ranks that cost, hold and are linked alike change places. The
// one that stands for all of them has such ranks in the order of their first stages.
//
// bounds_of_any_placement() has bounds for all placements at once, which claim nothing of one.
// Tested by placements_test.cpp.

#pragma once

#include "optimise/bounds.h"
#include "optimise/chance.h"
#include "optimise/problem.h"
#include "sim/simulation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::optimise {

/// The rank of each stage.
using Placement = std::vector<std::uint32_t>;

/// A chunk of a rank takes and holds so much, whatever stage it is; by Half.
struct ChunkCosts {
  std::array<double, 3> takes{};
  std::array<double, 3> holds{};
  double further = 0;

  friend bool operator==(const ChunkCosts&, const ChunkCosts&) = default;
};

/// All that a placement does not change.
struct RankCosts {
  std::size_t ranks = 1;
  std::size_t chunks = 1;          ///< of each rank
  std::vector<ChunkCosts> of;      ///< by rank and chunk
  std::vector<double> lag;         ///< of a message, by the rank that sends and the one that waits
  std::uint32_t microbatches = 1;  ///< that each chunk runs
  double memory_limit = 0;         ///< of each rank

  [[nodiscard]] const ChunkCosts& chunk(std::size_t rank, std::size_t chunk) const {
    return of[rank * chunks + chunk];
  }
  [[nodiscard]] double link(std::size_t from, std::size_t to) const {
    return lag[from * ranks + to];
  }
};

/// Precondition: the problem has one pipeline, and `costs` are those that it was made of.
[[nodiscard]] RankCosts rank_costs_of(const Problem& problem, const Costs& costs);

/// Each weight gradient takes its share of the best call here (with_least_weights()).
[[nodiscard]] RankCosts least_costs_of(const Problem& problem, const Costs& costs);

/// Returns for each rank the first one that costs, holds and is linked as it does.
[[nodiscard]] std::vector<std::uint32_t> alike(const RankCosts& costs);

/// The placement that stands for all that differ from it by an exchange of ranks that are alike.
[[nodiscard]] Placement standing_for(Placement placement, const std::vector<std::uint32_t>& alike);

/// The placement of a frame with one pipeline.
[[nodiscard]] Placement placement_of(const Frame& frame);

/// The frame with another placement: loop and v by these names.
[[nodiscard]] Frame with_placement(Frame frame, const Placement& placement);

/// Placements that are worth a look: each pass over all ranks up or down, chains, and these with
/// the ranks in other orders where ranks or links differ. Each stands for those that are the same.
[[nodiscard]] std::vector<Placement> shapes(const RankCosts& costs);

/// All placements, one for each that is the same where these ranks are alike, as alike() says it;
/// nullopt if there are more than `most`.
[[nodiscard]] std::optional<std::vector<Placement>> all_placements(
    const RankCosts& costs, std::size_t most, std::vector<std::uint32_t> alike);

/// A placement that differs in one thing, or now and then in several: two stages or two ranks have
/// changed places, or some stages stand the other way round.
[[nodiscard]] Placement neighbour_of(Placement placement, std::size_t ranks, Chance& chance);

/// Bounds below which no order of any placement gets, of costs as least_costs_of() has them.
[[nodiscard]] LowerBounds bounds_of_any_placement(const RankCosts& costs);

/// "loop", "v", or "rank 0 stages 0,3; rank 1 stages 1,2".
[[nodiscard]] std::string words_for(const Frame& frame);

}  // namespace capo::optimise

// Placements: how many ranks there are, how many chunks each has, and which stage each chunk is;
// orders are not drawn here.
//
//   placement loop    rank 0: chunks 2, stages 0 2
//                     rank 1: chunks 2, stages 1 3
//
// Distribution: each topology equally likely, 1 to 4 ranks and 1 to 3 chunks a rank, each number
// equally likely; under loop, v and bidirectional every rank has as many chunks as the others,
// under bidirectional 2 or 4. Custom stages are a permutation, each equally likely. Chunks are
// declared, nothing else is.
//
// Shrinking: away goes a rank, or a chunk of one, where all have to have as many of each (under
// bidirectional one of each pipeline); the topology becomes chain. Tested by topology_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/dice.h"

#include <array>
#include <cstddef>
#include <functional>

namespace capo::testing {

/// The topologies of one pipeline, and that of chunks that are not wired.
inline constexpr std::array kOnePipeline{Topology::Independent, Topology::Chain, Topology::Loop,
                                         Topology::V, Topology::Custom};
inline constexpr std::array kEveryTopology{Topology::Independent, Topology::Chain,
                                           Topology::Loop,        Topology::V,
                                           Topology::Custom,      Topology::Bidirectional};

/// Draws what else there is of a rank, as soon as its chunks are.
using DrawRest = std::function<void(RankOrder& rank)>;

/// Gives a schedule that has a topology and no ranks its ranks, their chunks and stages.
void draw_placement(Dice& dice, Schedule& schedule, const DrawRest& draw_rest);

[[nodiscard]] Schedule draw_topology(Dice& dice);
[[nodiscard]] rc::Gen<Schedule> drawn_topology();

[[nodiscard]] std::int32_t all_chunks(const Schedule& schedule);

/// Takes a rank out; the stages of the others move up, and so does the number of stages where it is
/// declared.
void forget_rank(Schedule& schedule, std::size_t rank);

}  // namespace capo::testing

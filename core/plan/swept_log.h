// The sweep of a step, kept rank by rank: which transfers a rank issues in which order, and how
// many of them stand in front of each of its computations.
//
//   rank 1: F0 is received, runs and is sent on     transfers: in F0, out F0     issued: 1
//
// This is all that one rank has to know of the order in which a sweep puts transfers; it takes
// eight bytes a transfer and four a computation, and is the same however ranks communicate. Tested
// through swept_course_test.cpp.

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/ids.h"
#include "core/order/schedule.h"
#include "core/plan/neighbours.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

/// The forwards and backwards of a rank, numbered by chunk and microbatch.
class Cells {
 public:
  explicit Cells(std::int32_t microbatches)
      : microbatches_(static_cast<std::uint32_t>(microbatches)) {}

  [[nodiscard]] std::uint32_t of(ChunkId chunk, MicrobatchId microbatch, bool forward) const {
    const auto at = static_cast<std::uint32_t>(chunk.index()) * microbatches_ +
                    static_cast<std::uint32_t>(microbatch.index());
    return at * 2 + (forward ? 1 : 0);
  }
  /// How many a rank of so many chunks has.
  [[nodiscard]] std::size_t count(std::int32_t chunks) const {
    return static_cast<std::size_t>(chunks) * microbatches_ * 2;
  }

 private:
  std::uint32_t microbatches_;
};

/// A transfer as one of its two ranks has it.
class SweptTransfer {
 public:
  /// `neighbour`: the position of the other rank among this one's neighbours, 0 or 1.
  SweptTransfer(std::uint32_t cell, bool sends, std::size_t neighbour, std::uint32_t there)
      : packed_(cell << 2U | (sends ? 2U : 0U) | (neighbour == 0 ? 0U : 1U)), there_(there) {}

  /// The rank's forward or backward that makes what it sends, or that reads what it receives.
  [[nodiscard]] std::uint32_t cell() const { return packed_ >> 2U; }
  [[nodiscard]] bool sends() const { return (packed_ & 2U) != 0; }
  [[nodiscard]] std::size_t neighbour() const { return packed_ & 1U; }
  /// Its place among the transfers of the other rank, from 1.
  [[nodiscard]] std::uint32_t there() const { return there_; }

 private:
  std::uint32_t packed_;
  std::uint32_t there_;
};

struct SweptRank {
  std::vector<SweptTransfer> transfers;
  /// So many transfers stand in front of each computation, of which a composite is one.
  std::vector<std::uint32_t> issued;
};

/// Both by rank.
struct SweptLog {
  std::vector<Neighbours> neighbours;
  std::vector<SweptRank> ranks;
};

/// Precondition: every action finds its place in a sweep, and ranks lie in rows and rings.
[[nodiscard]] SweptLog swept_log(const Schedule& schedule, const StageMap& map,
                                 std::int32_t microbatches);

/// Calls visit(first, end) for each computation of an order, which is the entries [first, end): one
/// action or a composite.
template <typename Visit>
void for_each_computation(const std::vector<Entry>& order, Visit visit) {
  std::uint32_t end = 0;
  for (std::uint32_t first = 0; first < order.size(); first = end) {
    end = first + 1;
    if (order[first].kind == Kind::Idle) continue;
    while (end < order.size() && order[end].group == Group::Continues) ++end;
    visit(first, end);
  }
}

}  // namespace capo

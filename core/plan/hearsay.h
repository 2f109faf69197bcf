// How far each rank knows its neighbours to be, at each of its own places, in a step whose
// transfers are put in by a sweep.
//
// A rank's places are its transfers where ranks have one communicator, and else its computations.
//
//   one communicator a rank    two transfers that meet tell each other what is over on their
//                              communicators; if sends are buffered, only the receive is told
//   one for each pair or edge  a computation is told by each tensor that it reads what the
//                              computation knew that made it, or a later one in front of the send
//
// Word of a neighbour comes from that neighbour, and in a ring the other way round as well: place
// by place, the latest place of the rank before that is known of, and so on around the ring. Going
// to and fro on the way brings no later word. Of the two, only what is later than the other is kept
// while ranks are asked about. So all of it takes time and memory of places, however
// many ranks there are. Precondition: ranks lie in rows and rings (neighbours.h). Tested through
// swept_course_test.cpp.

#pragma once

#include "core/model/environment.h"
#include "core/plan/neighbours.h"
#include "core/plan/swept_log.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

/// Orders of computations alone, whose transfers are all put in, and travel over communicators that
/// are made before the step and, if buffered, hold any number of messages.
struct SweptTransfers {
  const Schedule* schedule = nullptr;
  std::int32_t microbatches = 0;
  Communicators layout = Communicators::PerRank;  ///< or PerPair or PerEdge
  TransferMode mode = TransferMode::Rendezvous;
};

/// A number for each place of a rank, from 0, which is before the first.
using KnownPlaces = std::vector<std::uint32_t>;

/// A rank hears this of one of its neighbours.
struct Hearing {
  KnownPlaces over;  ///< by place of the rank: so many of the neighbour's places are over
  KnownPlaces
      arrives;  ///< by tensor that is sent there: the place over there by which it has arrived
};

class Hearsay {
 public:
  /// All outlive it.
  Hearsay(const SweptTransfers& transfers, const SweptLog& log);

  /// They stand by the positions of the neighbours.
  [[nodiscard]] std::array<Hearing, 2> of(RankId rank) const;

 private:
  [[nodiscard]] bool by_transfers() const { return transfers_.layout == Communicators::PerRank; }
  // Word that comes the other way round, from the first place to the last at which it is later than
  // what the neighbour tells itself.
  struct Around {
    std::size_t first = 0;
    KnownPlaces over;  // by place from there on; empty if the word is never later, as in a row
  };
  using Told = std::vector<std::array<KnownPlaces, 2>>;  // by rank and neighbour

  void place_computations();
  void go_around(const std::vector<RankId>& ring, const Told& told);
  [[nodiscard]] static Around later_than(const KnownPlaces& straight, const KnownPlaces& between,
                                         const KnownPlaces& from_there);
  // A rank hears this of its neighbours from themselves.
  [[nodiscard]] std::array<KnownPlaces, 2> straight(RankId rank) const;
  [[nodiscard]] std::array<KnownPlaces, 2> by_own_transfers(RankId rank) const;
  [[nodiscard]] std::array<KnownPlaces, 2> by_own_computations(RankId rank) const;
  [[nodiscard]] std::array<KnownPlaces, 2> arrivals(RankId rank) const;

  const SweptTransfers& transfers_;
  const std::vector<Neighbours>& neighbours_;  // by rank
  const std::vector<SweptRank>& log_;
  Cells cells_;
  std::vector<KnownPlaces> computed_at_;       // by rank and cell; empty if places are transfers
  std::vector<std::array<Around, 2>> around_;  // by rank and neighbour
};

}  // namespace capo

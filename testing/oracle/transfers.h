// The second opinion on transfers: a slow executor that is meant to be obviously right.
//
// Every rank has a list of operations, issued in that order. Computations wait in one line, and the
// transfers of each communicator in a line of their own. Round after round everybody is asked
// whether the operation at the head of a line can begin or end, until in a whole round nobody
// moves:
//
//   rank 0:  F of stage 0, send it          rank 1:  receive it, F of stage 1
//
//   a computation begins when its inputs are there, and is over at once
//   a transfer begins when all computations that were issued before it are over
//   a send leaves a token on the channel when it begins; it is over when the receive that its token
//   belongs to has begun; where channels hold messages, when the receive so many tokens before it
//   has begun, and at once if there is none
//   a receive is over when its token is there; whoever reads it may then begin
//   operations that are joined begin together and are over together
//
// A channel leads from one rank to another and knows no names: its k-th token goes to its k-th
// receive. An operation whose operand no operation before it makes has nothing to work with and
// never begins. Computations can be made to wait for a transfer that they do not read. A wait
// stands in the line of the computations, and its operand is the send that it is for.
//
// It shares no code with the product and includes only the standard library, so that one mistake
// cannot hide in both. No graph, no order of events worked out beforehand, no cleverness: quadratic
// and meant for a few dozen operations. Tested by tests/testing/oracle/transfers_test.cpp; that the
// product agrees is a property, in tests/properties/transfers_test.cpp.

#pragma once

#include <optional>
#include <vector>

namespace capo::oracle {

struct Operation {
  enum Kind {
    Forward,
    Backward,  ///< whole, or its input half
    Weight,
    SendForward,
    ReceiveForward,
    SendBackward,
    ReceiveBackward,
    WaitSendForward,
    WaitSendBackward
  };

  /// Which computations wait for a transfer, besides one that reads what it receives.
  enum Holds {
    Nobody,
    Later,      ///< those issued after it
    MuchLater,  ///< those issued after the next transfer of its kind
  };

  Kind kind = Forward;
  int stage = 0;  ///< stage of the model; for a transfer, the one whose rank issues it
  int microbatch = 0;
  bool joined =
      false;  ///< joined to the operation before it; both are computations, or both transfers
  Holds holds = Nobody;
  int communicator = 0;  ///< transfers of another one neither queue behind each other nor meet
};

/// Which transfers of a rank stand in one line.
enum class Lines {
  All,
  OfThePair,
  OfThePairAndDirection,
  OfThePass,  ///< activations in one, gradients in another, which are also channels of their own
  /// Lines are those of OfThePair, but joined sends and receives stand in one line, with channels
  /// of their own; joined transfers of one direction are taken apart.
  OfThePairOrJoined,
};

struct Pipeline {
  std::vector<std::vector<Operation>> ranks;
  std::vector<int> home;  ///< the rank of each stage; stage s + 1 reads what stage s makes
  Lines lines = Lines::All;
  /// Messages that a channel holds: a send that finds room is over at once. 0: none.
  int held = 0;
};

inline constexpr int kHoldsAll = 1 << 30;

/// Whether every operation is over in the end. Each transfer leads to the neighbouring stage, on
/// another rank.
bool finishes(const Pipeline& pipeline);

/// An operation, by its rank and its place among those of the rank.
struct Place {
  int rank = 0;
  int position = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The first computation, rank by rank, that can never run even if each output were everywhere at
/// once; nullopt if all can run. Precondition: no computation is joined.
std::optional<Place> first_never_computed(const Pipeline& pipeline);

/// The transfers and waits for them that wait, around some corner, for themselves, rank by rank.
/// None does where all operations are over in the end, or would be if each wait had its send.
std::vector<Place> in_circles(const Pipeline& pipeline);

/// The first receive, rank by rank, whose send is on another communicator; nullopt if there is
/// none.
std::optional<Place> first_apart(const Pipeline& pipeline);

/// The first transfer, rank by rank, whose communicator never comes about where all its members
/// make it together, each at its first transfer there, and issue nothing before; nullopt if all do.
std::optional<Place> first_never_made(const Pipeline& pipeline);

/// Whether some receive takes another token than it is for, if it ever runs.
bool mixes_up(const Pipeline& pipeline);

}  // namespace capo::oracle

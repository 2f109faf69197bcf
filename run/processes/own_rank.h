// The part of a program that one process runs, which has a rank or several of them.
//
//   whole    rank 0: F  send   Deliver        rank 1: receive  Delivered  F     one walk of all ops
//   rank 0's         F  send   Deliver                                          waits on rank 1
//   gone rank 1's                                           receive  Delivered  F
//
// Ops keep their order and their streams, and the waits for ops of the own rank. What an op of
// another rank did for this one a message does now: the transport finishes an end when the other
// rank has come as far as the end needs. The sender's end frees its buffer, since it is the only
// one that this process sees. A reduction or crossing whose ranks are in several processes is an op
// of each, at the same place among the others. The order of ops is one in which all ranks get to
// their end however each waits, as it is part of one order of all. Tested by processes_test.cpp.

#pragma once

#include "run/execute/program.h"
#include "run/execute/rank_range.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// Puts both ends of each transfer between processes at their own rank, so that a send's end
/// delivers, and each reduction and crossing over processes into all of them.
[[nodiscard]] Program with_ends_apart(Program program, const Division& division);

struct OwnProgram {
  Program program;
  std::vector<std::uint32_t> op_of;  ///< by op: its number in the whole program
};

/// Precondition: with_ends_apart() made `whole`.
[[nodiscard]] OwnProgram program_of_ranks(const Program& whole, const RankRange& ranks);

}  // namespace capo::run

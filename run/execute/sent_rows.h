// The rows that exchanges of several ranks send each other: tokens to the ranks of their experts
// and back.
//
//   rank 0: e0  0 1 | 2 3 | 4 5 6      seven rows each, in three blocks; block b of member i goes
//   rank 1: e1  0 1 | 2 3 | 4 5 6      to member b - i modulo 3: rank 0 keeps 0 1 of e0, and gets
//   rank 2: e2  0 1 | 2 3 | 4 5 6      2 3 of e1 and 4 5 6 of e2, as many rows as it sends
//
// Each block lies where it lay among the rows of its own rank, if ranks have as many rows: those
// that are not in use stay behind all others.
//
// A dispatch cuts the permuted rows of each member into as many blocks as there are members, of
// nearly equal numbers of rows, and each lands in a place of the member that it goes to. The
// combine brings each back from there, to a place of its own, where it is permuted back. So what
// comes out is what went in, if every block has been there and back, or what experts made of it:
// then blocks come back from where these left their results. Blocks for the rank itself are
// copies, all others are messages, also where both ranks are in one process. Tested by
// tests/run/steps/crossings_test.cpp, tests/run/processes/reductions_apart_test.cpp and
// tests/cli/mpi_reductions_test.cpp.

#pragma once

#include "run/execute/program.h"
#include "run/execute/step_inputs.h"
#include "run/execute/transport.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

/// Rows on their way from one place to another.
struct SentBlock {
  Message message;                  ///< from a rank to itself if it is none
  const std::byte* from = nullptr;  ///< null if it is what experts made
  std::int64_t offset = 0;          ///< in what experts made, from which it comes
  std::uint32_t there = 0;          ///< the exchange of the rank where it is away
  std::byte* to = nullptr;
  std::uint32_t exchange = 0;  ///< whose rows they are
  bool back = false;

  [[nodiscard]] bool stays() const { return message.channel.sender == message.channel.receiver; }
};
/// A list for each crossing of a program, in an order that all processes have.
using SentRows = std::vector<std::vector<SentBlock>>;

[[nodiscard]] SentRows rows_between(const Program& program, const Cells& cells,
                                    const StepInputs& inputs);

}  // namespace capo::run

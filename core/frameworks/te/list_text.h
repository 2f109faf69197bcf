// read_te_lists() reads text as TE lists, and print_te_list() writes one.
//
//   [1, 1, -1, -1.5]        commas or blanks; brackets optional
//   1 1 -1(dgrad) -1.5(delayed wgrad)   # annotations and comments are skipped
//
// A number is what Python takes for one: `2`, `+2`, `1.0`, `-1.5`, `1e3`, and `nan`, `inf`,
// `infinity` in any case, which are no literals in Python but are how it prints its floats; a
// minus may be U+2212. Lists are also taken as programs print them:
//
//   (1, -1)   [np.int64(1), np.float64(-1.5)]   tensor([1, -1], device='cuda:0')   [ 1. -1. -1.5]
//   10:02 [INFO] rank 1: _order=[1, -1], ...    the list behind `order=`, and no more of the line
//   Rank 8: ORDER [1, -1]                       as Megatron-LM logs it
//   [[1, -1], [1, -1]], or a list a line        the ranks of one schedule
//
// NumPy and PyTorch print whole floats where an array holds a half. Such a float names the chunk in
// printed forms alone; a note says so, since TE raises TypeError if the list really holds it.
// Logged lines that name their ranks are put into the ranks' order. Anything else is refused with
// its place. Ten million entries are an ordinary input: the common forms, a small whole number or
// half, are read without a library call.
//
// from_te_list.h decides what the numbers mean. Tested by list_text_test.cpp and
// printed_lists_test.cpp; tests/properties/round_trip_test.cpp holds that printing, then reading,
// is the identity.

#pragma once

#include "core/order/te_list.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

struct TeLists {
  TeList list;                        ///< the entries of all ranks, one rank behind the other
  std::vector<std::uint32_t> begins;  ///< where the entries of each rank begin; one at least
  std::vector<std::string> notes;     ///< how the text was read, where that could surprise
};

[[nodiscard]] Read<TeLists> read_te_lists(std::string_view text, const Limits& limits);

/// Reads a text that holds one list and no more.
[[nodiscard]] Read<TeList> read_te_list(std::string_view text, const Limits& limits);

/// "[1, 1, -1, -1.5]\n": every number in the shortest form that reads back the same.
[[nodiscard]] std::string print_te_list(const TeList& list);

}  // namespace capo

// read_te_list() reads text as a TE list, and print_te_list() writes one.
//
//   [1, 1, -1, -1.5]        commas or blanks; brackets optional
//   1 1 -1(dgrad) -1.5(delayed wgrad)   # annotations and comments are skipped
//
// A number is what Python takes for one: `2`, `+2`, `1.0`, `-1.5`, `1e3`, and `nan`, `inf`,
// `infinity` in any case, which are no literals in Python but are how it prints its floats.
// Anything else is refused with its place. Ten million entries are an ordinary input: the common
// forms, a small whole number or half, are read without a library call.
//
// from_te_list.h decides what the numbers mean. Tested by
// list_text_test.cpp; tests/properties/round_trip_test.cpp holds that printing, then reading, is
// the identity.

#pragma once

#include "core/order/te_list.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <string>
#include <string_view>

namespace capo {

[[nodiscard]] Read<TeList> read_te_list(std::string_view text, const Limits& limits);

/// "[1, 1, -1, -1.5]\n": every number in the shortest form that reads back the same.
[[nodiscard]] std::string print_te_list(const TeList& list);

}  // namespace capo

// read_te_list() reads text as a TE list.
//
//   [1, 1, -1, -1.5]        commas or blanks; brackets optional
//   1 1 -1(dgrad) -1.5(delayed wgrad)   # annotations and comments are skipped
//
// A number is what Python takes for one: `2`, `+2`, `1.0`, `-1.5`, `1e3`, and `nan`, `inf`,
// `infinity` in any case, which are no literals in Python but are how it prints its floats.
// Anything else is refused with its place. Ten million entries are an ordinary input: the common
// forms, a small whole number or half, are read without a library call.
//
// The meaning of the numbers is decided by read_entry.h. Tested by list_reader_test.cpp.

#pragma once

#include "core/order/te_list.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <string_view>

namespace capo {

[[nodiscard]] Read<TeList> read_te_list(std::string_view text, const Limits& limits);

}  // namespace capo

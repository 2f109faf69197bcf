// A schedule as a picture: checked, wired as the rules wire it, and the witness of the first
// finding in red.
//
// Drawn is the graph that the verdict is about: with transfers where ranks communicate, else
// without. Where something else is replayed than was captured, that is drawn, since it is what
// runs; the order of capture where the finding stands there. The title says which. Orders with
// errors of their own (a backward too many) are not drawn, since there is no telling which task an
// entry is. Tested by draw_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/draw/dot.h"
#include "core/order/input.h"
#include "core/rules/check.h"

#include <string>

namespace capo {

/// DOT, or an Error of kind Limit (too large) or Unreadable (nothing that could be drawn).
[[nodiscard]] Result<std::string> draw(const Input& input, const CheckOptions& options,
                                       const DotOptions& dot);

}  // namespace capo

// SVG as PDF, by librsvg's own program, since a second renderer would draw something else.
//
// Tested by tests/cli/draw_test.cpp.

#pragma once

#include "core/base/result.h"

#include <string>
#include <string_view>

namespace capo::cli {

/// One page of the picture's size. An Error of kind Environment if `rsvg-convert` is missing, which
/// names the package, or fails.
[[nodiscard]] Result<std::string> pdf_of(std::string_view svg);

}  // namespace capo::cli

// An input of `capo draw` as the picture that it makes, whatever its verdict.
//
// An order that cannot run is drawn as far as it goes, each entry at its index with the findings at
// their places. If one slip explains all findings, it alone is drawn. Tested by
// tests/cli/draw_test.cpp.

#pragma once

#include "cli/options/command_error.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/judged_input.h"
#include "core/base/result.h"
#include "core/timeline/picture.h"
#include "sim/simulation.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace capo::cli {

struct DrawnRequest : InputRequest {
  CostOptions costs;
  bool all = false;     ///< draw each finding, also those that follow from one slip
  bool causes = false;  ///< the timeline says what each task waited for
  std::string task;     ///< whose waits have arrows: "rank 2 B1.3"; empty: none
  /// Traces of torch's ranks that are one picture, in place of the input; empty: the input is
  /// drawn.
  std::vector<std::string> traces;
  /// An order that the input is held against, which has all ranks of a trace; nullptr: none.
  const Input* order = nullptr;
};

/// An input with all that its picture refers to, which stays where it is.
struct Drawn {
  JudgedInput judged;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;  ///< nullptr: the input has no times
  Picture picture;
  ExitCode code = kAccepted;
};

/// Throws CLI::ValidationError if flags contradict the input, as a task that it does not have.
[[nodiscard]] Result<std::unique_ptr<Drawn>, CommandError> drawn_of(const DrawnRequest& request);

/// An SVG as PDF, one page of the picture's size, by librsvg's own program, since a second renderer
/// would draw something else. An Error of kind Environment if `rsvg-convert` is missing, which
/// names the package, or fails.
[[nodiscard]] Result<std::string> pdf_of(std::string_view svg);

}  // namespace capo::cli

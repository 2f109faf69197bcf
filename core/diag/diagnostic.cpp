#include "core/diag/diagnostic.h"

#include "core/base/assert.h"

#include <algorithm>

namespace capo {

std::string_view name_of(WitnessKind kind) {
  switch (kind) {
    case WitnessKind::Entries:
      return "entries";
    case WitnessKind::Path:
      return "path";
    case WitnessKind::WaitCycle:
      return "wait-cycle";
    case WitnessKind::Mismatch:
      return "mismatch";
    case WitnessKind::Replay:
      return "replay";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::Input:
      return "input";
    case Family::Shape:
      return "shape";
    case Family::Dependencies:
      return "dependencies";
    case Family::Placement:
      return "placement";
    case Family::Routing:
      return "routing";
    case Family::Transfers:
      return "transfers";
    case Family::Buffers:
      return "buffers";
    case Family::Streams:
      return "streams";
    case Family::Replay:
      return "replay";
    case Family::Gradients:
      return "gradients";
    case Family::Capture:
      return "capture";
  }
  CAPO_UNREACHABLE();
}

std::string edited(std::string text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.span.offset > b.span.offset; });
  for (const Edit& edit : edits) {
    text.replace(edit.span.offset, edit.span.length, edit.replacement);
  }
  return text;
}

}  // namespace capo

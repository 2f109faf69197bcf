// A picture as SVG: one file that needs no other, follows the reader's light or dark, and is read
// without colours as well, since every bar has its letter.
//
//   rank 0  compute  [F0][F1][F2]////[B0][W0]      //// is idle, its tooltip says why
//           p2p        [s0]
//           memory   __--^^--__
//
// Programs read it too: an action is one <g class="task F|B|W"> with data-rank, data-chunk,
// data-microbatch, data-start and data-end, a transfer or collective one <g class="transfer ...">
// or <g class="collective ...">, and the verdict is the <text class="verdict">. Same picture, same
// bytes. Tested by svg_test.cpp and tests/cli/draw_test.cpp.

#pragma once

#include "core/timeline/picture.h"

#include <cstdint>
#include <string>

namespace capo {

enum class Page : std::uint8_t {
  Screen,  ///< as wide as its tasks need
  Column,  ///< a column of a paper: 85 mm wide, greys and hatches, small print
};

struct SvgOptions {
  Page page = Page::Screen;
  bool path = true;  ///< the critical path has arrows, where the timeline knows it
};

[[nodiscard]] std::string svg(const Picture& picture, const SvgOptions& options = {});

}  // namespace capo

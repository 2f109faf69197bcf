// A timeline with all that a picture of it says: whose order it is, the verdict and what the
// verdict is relative to, and each finding with the places where it stands.
//
//   error[T09] ...   rank 0 |F1.0|send-F1.0|          an arrow joins two spots and has words,
//                    rank 1 |recv-F1.0|F1.0|          a spot is a stretch of a lane
//
// Pictures know only these values, so that a predicted step, a measured one and an order that
// cannot run look alike. Tested by svg_test.cpp,
// page_test.cpp, trace_reader_test.cpp and tests/cli/draw_test.cpp.

#pragma once

#include "core/text/limits.h"
#include "core/text/refusal.h"
#include "core/timeline/timeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// A stretch of a lane: the place of a task, or of an entry that is none.
struct Spot {
  std::uint32_t lane = 0;
  double begin = 0;
  double end = 0;
};

struct AlarmArrow {
  Spot from;
  Spot to;
  std::string words;
};

/// A finding as it is drawn.
struct Alarm {
  std::string rule;   ///< "T09"
  std::string words;  ///< "error[T09]: deadlock: ranks 0 and 1 wait for each other for ever"
  std::vector<Spot> places;
  std::vector<AlarmArrow> arrows;
};

/// The text of an order, and for each rank and entry where in it the entry stands.
struct OrderText {
  struct Stretch {
    std::uint32_t offset = 0;  ///< in bytes
    std::uint32_t length = 0;
  };
  std::string text;
  std::vector<std::vector<Stretch>> entries;
};

struct Picture {
  Timeline timeline;
  std::string title;                 ///< the name of the input
  std::string verdict;               ///< "rejected: 1 error"
  bool accepted = false;             ///< the verdict says so
  std::vector<std::string> setting;  ///< lines that tell what the verdict and the times rest on
  std::vector<Alarm> alarms;
  OrderText order;  ///< empty if the picture is not that of a text
  /// A position in the timeline's tasks whose waits have arrows, and the words of the key to them.
  std::optional<std::uint32_t> chosen;
  std::string chosen_words;
};

/// "predicted", "measured", "listed".
[[nodiscard]] std::string_view name_of(Timeline::Origin origin);

/// The value of "schema" in a picture's Chrome trace, by which it is told from an order.
inline constexpr std::string_view kTimelineSchema = "capo.timeline/1";

/// The picture as a Chrome trace: its timeline, findings as instants at their places, and verdict
/// and setting under "otherData".
[[nodiscard]] std::string chrome_trace(const Picture& picture);

/// Whether a text is a picture's Chrome trace.
[[nodiscard]] bool is_timeline(std::string_view text);

/// The picture that a Chrome trace was made of, without what no trace says: causes of idle time,
/// the order's text, arrows of findings.
[[nodiscard]] Read<Picture> read_timeline(std::string_view text, const Limits& limits);

/// Perfetto's own form of a trace (.pftrace), with flows between the ranks: bytes that are
/// no text, a quarter as many.
[[nodiscard]] std::string perfetto_trace(const Picture& picture);

enum class Page : std::uint8_t {
  Screen,  ///< as wide as its tasks need
  Column,  ///< a column of a paper: 85 mm wide, greys and hatches, small print
};

struct SvgOptions {
  Page page = Page::Screen;
  bool path = true;   ///< the critical path has arrows, where the timeline knows it
  bool fold = false;  ///< a long step has several lines of time, as wide as a screen or a column
};

/// The picture as SVG: one file that needs no other, follows the reader's light or dark, and is
/// read without colours as well, since every bar has its letter.
///
///   rank 0  compute  [F0][F1][F2]////[B0][W0]      //// is idle, its tooltip says why
///           p2p        [s0]
///           memory   __--^^--__
///
/// Programs read it too: an action is one <g class="task F|B|W"> with data-rank, data-chunk,
/// data-microbatch, data-start and data-end, a transfer or collective one <g class="transfer ...">
/// or <g class="collective ...">, and the verdict is the <text class="verdict">. Same picture, same
/// bytes.
[[nodiscard]] std::string svg(const Picture& picture, const SvgOptions& options = {});

/// The pictures one below the other on one axis of time.
[[nodiscard]] std::string svg(const std::vector<Picture>& pictures, const SvgOptions& options = {});

/// The pictures as one page of HTML that needs no other file, one below the other on one axis of
/// time. What a reader can do there is written in core/timeline/page/.
[[nodiscard]] std::string html(const std::vector<Picture>& pictures);

}  // namespace capo

// A timeline with all that a picture of it says: whose order it is, the verdict and what the
// verdict is relative to, and each finding with the places where it stands.
//
//   error[T09] ...   rank 0 |F1.0|send-F1.0|          an arrow joins two spots and has words,
//                    rank 1 |recv-F1.0|F1.0|          a spot is a stretch of a lane
//
// Pictures know only these values, so that a predicted step, a measured one and an order that
// cannot run look alike. Tested by svg_test.cpp.

#pragma once

#include "core/timeline/timeline.h"

#include <cstdint>
#include <string>
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

struct Picture {
  Timeline timeline;
  std::string title;                 ///< the name of the input
  std::string verdict;               ///< "rejected: 1 error"
  bool accepted = false;             ///< the verdict says so
  std::vector<std::string> setting;  ///< lines that tell what the verdict and the times rest on
  std::vector<Alarm> alarms;
};

/// The picture as a Chrome trace: its timeline, findings as instants at their places, and verdict
/// and setting under "otherData".
[[nodiscard]] std::string chrome_trace(const Picture& picture);

}  // namespace capo

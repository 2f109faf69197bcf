// Places of nodes, from drawings that are written down here.

#include "core/draw/lanes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

// Two ranks with two nodes each, 0 1 and 2 3, and a message from 0 to 3.
Drawing small_drawing() {
  Drawing drawing{.title = "capo: accepted"};
  for (const std::int32_t rank : {0, 0, 1, 1}) {
    drawing.nodes.push_back(
        {.name = "n" + std::to_string(drawing.nodes.size()), .label = "F1.0", .rank = rank});
  }
  drawing.lines = {{.from = 0, .to = 1, .words = ""},
                   {.from = 2, .to = 3, .words = ""},
                   {.from = 1, .to = 3, .of = EdgeClass::Message, .words = ""}};
  return drawing;
}

TEST(Lanes, ANodeStandsBehindAllThatItWaitsFor) {
  const Drawing drawing = small_drawing();
  const Lanes lanes(drawing, 0);
  EXPECT_EQ(lanes.box(0).x, lanes.box(2).x);
  EXPECT_LT(lanes.box(0).x, lanes.box(1).x);
  EXPECT_LT(lanes.box(1).x, lanes.box(3).x) << "two columns behind the node before it";
}

TEST(Lanes, RanksLieInTheirOrderAndStreamsBelowEachOther) {
  Drawing drawing = small_drawing();
  drawing.nodes[1].stream = 7;
  const Lanes lanes(drawing, 0);
  EXPECT_GT(lanes.box(0).y, lanes.box(1).y);
  EXPECT_GT(lanes.box(1).y, lanes.box(2).y);
  EXPECT_EQ(lanes.box(2).y, lanes.box(3).y);
  ASSERT_EQ(lanes.bands().size(), 2U);
  EXPECT_GT(lanes.bands()[0].box.height, lanes.bands()[1].box.height);
}

TEST(Lanes, ACircleHasColumnsToo) {
  Drawing drawing = small_drawing();
  drawing.lines.push_back({.from = 3, .to = 0, .of = EdgeClass::Witness, .words = ""});
  const Lanes lanes(drawing, 0);
  EXPECT_LT(lanes.box(0).x, lanes.box(1).x);
}

TEST(Lanes, RowsThatAreTooLongGoOnInTheNextLine) {
  Drawing drawing;
  for (std::uint32_t at = 0; at < 10; ++at) {
    drawing.nodes.push_back({.name = "n", .label = "F1.0"});
    if (at > 0) drawing.lines.push_back({.from = at - 1, .to = at, .words = ""});
  }
  const Lanes lanes(drawing, 4);
  EXPECT_EQ(lanes.line_of(3), 0U);
  EXPECT_EQ(lanes.line_of(4), 1U);
  EXPECT_EQ(lanes.line_of(9), 2U);
  EXPECT_EQ(lanes.box(0).x, lanes.box(4).x);
  EXPECT_GT(lanes.box(0).y, lanes.box(4).y);
  EXPECT_EQ(lanes.bands().size(), 3U);
  for (std::size_t node = 0; node < 10; ++node) {
    EXPECT_GT(lanes.box(node).y, 0);
    EXPECT_LT(lanes.box(node).x + lanes.box(node).width / 2, lanes.width());
  }
  // A path begins with the end of its arrow, which is the node's left edge.
  const Box& end = lanes.box(4);
  EXPECT_TRUE(lanes.path(drawing.lines[3])
                  .starts_with("e," + std::to_string(static_cast<int>(end.x - end.width / 2))));
}

TEST(Lanes, NothingHasAPageForItsTitle) {
  const Drawing drawing{.title = "capo: no verdict"};
  const Lanes lanes(drawing, 0);
  EXPECT_GT(lanes.width(), 0);
  EXPECT_GT(lanes.height(), 0);
  EXPECT_TRUE(lanes.bands().empty());
}

}  // namespace
}  // namespace capo

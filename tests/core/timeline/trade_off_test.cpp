// The picture of what less of one figure costs of another.

#include "core/timeline/table.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;

TradeOff two_lines() {
  return {.title = "a < b",
          .across = "memory",
          .upwards = "makespan",
          .lines = {{.name = "loop",
                     .found = {{3, 80, "third"}, {1, 100, "first"}, {2, 110, "worse"}},
                     .bounds = {{1, 95, ""}, {3, 80, ""}}},
                    {.name = "v", .found = {{1, 90, "v"}}}},
          .others = {{1, 105, "1f1b"},
                     {1, 105, "zb-h1"},
                     {2, 104, "1f1b"},
                     {2, 500, "slow"},
                     {2, 500, "slower"},
                     {50, 90, "large"}}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(TradeOff, DrawsStairsOfWhatIsBest) {
  const std::string text = trade_off_svg({two_lines()});
  EXPECT_TRUE(text.starts_with("<svg xmlns="));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_TRUE(holds(text, ">a &lt; b</text>")) << text;
  // Right to the next point that is better, then down; the third is left out.
  const std::size_t line = text.find("<g class=\"ink0\">\n<path class=\"line\"");
  ASSERT_NE(line, std::string::npos);
  const std::string stairs = text.substr(line, text.find("/>", line) - line);
  EXPECT_EQ(std::count(stairs.begin(), stairs.end(), 'V'), 2) << stairs;
  EXPECT_EQ(count_of(text, "class=\"found\""), 4U) << "but its point is there";
  EXPECT_EQ(count_of(text, ">none of that placement is below<"), 1U);
}

TEST(TradeOff, NamesEachOnceAndWhatIsFarBelowThePicture) {
  const std::string text = trade_off_svg({two_lines()});
  EXPECT_TRUE(holds(text, ">1f1b, zb-h1</text>")) << text;
  EXPECT_EQ(count_of(text, "class=\"name\""), 1U) << "1f1b has its name already";
  EXPECT_EQ(count_of(text, "class=\"way\" d="), 1U) << "and a line to its second point";
  EXPECT_TRUE(holds(text, ">farther off: slow, slower 500 with 2, large 90 with 50</text>"))
      << text;
  TradeOff many = two_lines();
  for (int i = 0; i < 4; ++i) many.others.push_back({60.0 + i, 90, "larger"});
  EXPECT_TRUE(holds(trade_off_svg({many}), "larger 90 with 61, and 2 more</text>"));
}

TEST(TradeOff, NamesDoNotLieOnEachOther) {
  TradeOff crowd{.title = "crowd"};
  for (int i = 0; i < 12; ++i) {
    crowd.others.push_back({1 + 0.001 * i, 100 + 0.01 * i, "number " + std::to_string(i)});
  }
  const std::string text = trade_off_svg({crowd});
  std::vector<std::string> places;
  const std::string begin = "<text class=\"name\" ";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    places.push_back(text.substr(at, text.find('>', at) - at));
  }
  EXPECT_EQ(places.size(), 12U);
  std::sort(places.begin(), places.end());
  EXPECT_EQ(std::unique(places.begin(), places.end()), places.end());
}

TEST(TradeOff, SaysThatThereIsNothing) {
  EXPECT_TRUE(holds(trade_off_svg({{.title = "none"}}), ">There is nothing to draw.<"));
  EXPECT_TRUE(trade_off_svg({}).ends_with("</svg>\n"));
  // One point alone has a scale around it.
  const std::string one = trade_off_svg({{.title = "one", .others = {{0, 0, "point"}}}});
  EXPECT_FALSE(holds(one, "nan")) << one;
  EXPECT_FALSE(holds(one, "inf")) << one;
}

}  // namespace
}  // namespace capo

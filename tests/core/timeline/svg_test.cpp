// Pictures as programs read them: parsed as XML by Boost, elements counted.

#include "core/timeline/picture.h"

#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using Tree = boost::property_tree::ptree;

struct Element {
  std::string name;
  std::string text;
  Tree attributes;

  [[nodiscard]] std::string operator[](const char* attribute) const {
    return attributes.get<std::string>(attribute, "");
  }
};

void collect(const Tree& tree, std::vector<Element>& out) {
  for (const auto& [name, below] : tree) {
    if (name.starts_with("<xml")) continue;
    out.push_back({name, below.data(), below.get_child("<xmlattr>", {})});
    collect(below, out);
  }
}

// All elements of a text, which has to be XML.
std::vector<Element> elements_of(const std::string& text) {
  std::istringstream in(text);
  Tree tree;
  boost::property_tree::read_xml(in, tree);
  std::vector<Element> elements;
  collect(tree, elements);
  return elements;
}

std::vector<Element> of_class(const std::vector<Element>& all, const std::string& beginning) {
  std::vector<Element> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const Element& each) { return each["class"].starts_with(beginning); });
  return found;
}

// Two ranks: F1.0 and W1.0 with B1.0 on one, a transfer and the other rank idle.
Picture small_picture() {
  Picture picture{.title = "a.order", .verdict = "accepted", .accepted = true};
  Timeline& timeline = picture.timeline;
  timeline.ranks = 2;
  timeline.makespan = 4;
  timeline.one_chunk = true;
  timeline.lanes = {{.rank = 0, .name = "compute"}, {.rank = 0, .name = "p2p"}};
  const auto add = [&](Kind kind, std::uint32_t lane, double begin, std::uint32_t entry) {
    timeline.tasks.push_back({.begin = begin,
                              .end = begin + 1,
                              .lane = lane,
                              .id = entry,
                              .microbatch = 0,
                              .kind = kind,
                              .chunk = 1,
                              .entry = entry});
  };
  add(Kind::Forward, 0, 0, 0);
  add(Kind::SendForward, 1, 1, 0);
  add(Kind::Backward, 0, 2, 1);
  add(Kind::BackwardWeight, 0, 3, 2);
  timeline.bubbles = {{.rank = 0, .begin = 1, .end = 2, .why = "B1.0 waits for B1.0 of rank 1"}};
  timeline.memory = {{{.time = 0, .held = 1}, {.time = 4, .held = 0}}, {}};
  timeline.path = {0, 1, 2};
  timeline.label = [](std::uint32_t id) { return "task " + std::to_string(id); };
  return picture;
}

TEST(Svg, EachActionIsOneGroupWithItsNumbers) {
  const auto all = elements_of(svg(small_picture()));
  const auto tasks = of_class(all, "task ");
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0]["class"], "task F");
  EXPECT_EQ(tasks[1]["class"], "task B");
  EXPECT_EQ(tasks[2]["class"], "task W");
  EXPECT_EQ(tasks[1]["data-rank"], "0");
  EXPECT_EQ(tasks[1]["data-chunk"], "1");
  EXPECT_EQ(tasks[1]["data-microbatch"], "0");
  EXPECT_EQ(tasks[1]["data-start"], "2");
  EXPECT_EQ(tasks[1]["data-end"], "3");
  EXPECT_EQ(of_class(all, "transfer ").size(), 1U);
  const auto verdicts = of_class(all, "verdict");
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].text, "accepted");
}

TEST(Svg, EveryKindOfActionHasItsLetter) {
  Picture picture = small_picture();
  picture.timeline.tasks.clear();
  picture.timeline.path.clear();
  const std::string letters = "FBIWsrsrdcdcttuxgt";
  for (std::uint32_t k = 0; k < letters.size(); ++k) {
    picture.timeline.tasks.push_back({.begin = 4.0 * k,
                                      .end = 4.0 * k + 4,
                                      .lane = 0,
                                      .id = k,
                                      .microbatch = 0,
                                      .kind = static_cast<Kind>(k),
                                      .chunk = 1,
                                      .entry = k});
  }
  picture.timeline.makespan = 4.0 * static_cast<double>(letters.size());
  std::string found;
  for (const Element& element : elements_of(svg(picture))) {
    if (element.name == "text" && element.text.size() == 2 && element.text[1] == '0') {
      found += element.text[0];
    }
  }
  EXPECT_NE(found.find(letters), std::string::npos) << found;
}

TEST(Svg, TheHalvesOfABackwardAreTwoGroupsAndThePartsOfALayerOne) {
  Picture picture = small_picture();
  picture.timeline.tasks[0].kind = Kind::BackwardInput;
  TimedTask part = picture.timeline.tasks[2];
  part.begin = 5;
  part.end = 7;
  picture.timeline.tasks.push_back(part);
  const auto tasks = of_class(elements_of(svg(picture)), "task ");
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0]["class"], "task B");
  EXPECT_EQ(tasks[1]["data-end"], "7") << "from the first part's begin to the last one's end";
}

TEST(Svg, MembersOfACompositeLieOneAboveTheOther) {
  Picture picture = small_picture();
  for (const std::uint8_t member : {std::uint8_t{0}, std::uint8_t{1}}) {
    TimedTask& task = picture.timeline.tasks[member == 0 ? 0 : 2];
    task.begin = 0;
    task.end = 2;
    task.member = member;
    task.members = 2;
  }
  const auto all = elements_of(svg(picture));
  EXPECT_EQ(of_class(all, "task ").size(), 3U);
  const auto halves = std::count_if(all.begin(), all.end(), [](const Element& each) {
    return each.name == "rect" && each["height"] == "11" && each["class"].empty() &&
           each["fill"].empty();
  });
  EXPECT_EQ(halves, 2);
  const auto edges = of_class(all, "together");
  ASSERT_EQ(edges.size(), 2U) << "the edge around both, and its key";
  EXPECT_EQ(edges[0]["height"], "22");
  EXPECT_NE(svg(picture).find(">run together</text>"), std::string::npos);
  EXPECT_EQ(svg(small_picture()).find(">run together</text>"), std::string::npos);
}

TEST(Svg, QuantizationIsAStripInTheBarOfItsTask) {
  Picture picture = small_picture();
  TimedTask& task = picture.timeline.tasks[0];
  task.quantizing = 0.25;
  const std::string text = svg(picture);
  const auto strips = of_class(elements_of(text), "quantize");
  ASSERT_EQ(strips.size(), 2U) << "the strip, and its key";
  const auto all = elements_of(text);
  const auto bar = std::find_if(all.begin(), all.end(), [](const Element& each) {
    return each.name == "rect" && each["height"] == "22" && each["class"].empty();
  });
  ASSERT_NE(bar, all.end());
  EXPECT_EQ(strips[0]["x"], (*bar)["x"]);
  EXPECT_NEAR(std::stod(strips[0]["width"]), std::stod((*bar)["width"]) / 4, 0.02);
  EXPECT_NEAR(std::stod(strips[0]["y"]) + std::stod(strips[0]["height"]),
              std::stod((*bar)["y"]) + 22, 0.02);
  EXPECT_NE(text.find(", 0.25 of it quantizing</title>"), std::string::npos);
  EXPECT_NE(text.find(">quantizing</text>"), std::string::npos);
  EXPECT_EQ(svg(small_picture()).find("quantiz"), std::string::npos);
  EXPECT_NE(svg(picture, {.page = Page::Column}).find("rect class=\"quantize\""),
            std::string::npos);
}

TEST(Svg, IdleTimeTellsItsCause) {
  const std::string text = svg(small_picture());
  EXPECT_EQ(of_class(elements_of(text), "bubble").size(), 1U);
  EXPECT_NE(text.find("idle from 1 to 2: B1.0 waits for B1.0 of rank 1"), std::string::npos);
}

TEST(Svg, ThePathHasAnArrowBetweenLanesAndCanBeLeftOut) {
  EXPECT_EQ(of_class(elements_of(svg(small_picture())), "path").size(), 3U)
      << "two arrows, and the one of the legend";
  EXPECT_TRUE(of_class(elements_of(svg(small_picture(), {.path = false})), "path").empty());
}

TEST(Svg, AFindingHasItsWordsItsPlacesAndItsArrows) {
  Picture picture = small_picture();
  const Spot forward{.lane = 0, .begin = 0, .end = 1};
  const Spot backward{.lane = 0, .begin = 2, .end = 3};
  picture.alarms = {{.rule = "T09",
                     .words = "error[T09]: they wait for each other",
                     .places = {forward, backward},
                     .arrows = {{.from = forward, .to = backward, .words = "waits for ever"}}},
                    {.rule = "S01", .words = "error[S01]: nowhere"}};
  const auto all = elements_of(svg(picture));
  const auto words = of_class(all, "finding");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].text, "error[T09]: they wait for each other");
  EXPECT_EQ(words[1].text, "error[S01]: nowhere");
  const auto beside = of_class(all, "alarm-words");
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_EQ(beside[0].text, "T09 waits for ever");
  EXPECT_EQ(of_class(all, "task ").size(), 3U) << "marks are no tasks";
}

TEST(Svg, NamesWithMarkupAreText) {
  Picture picture = small_picture();
  const std::string name = "</svg><script x=\"1\">&'\x01\xff";
  picture.title = name;
  picture.verdict = name;
  picture.setting = {name};
  picture.timeline.lanes[0].name = name;
  picture.timeline.label = [&](std::uint32_t) { return name; };
  picture.timeline.bubbles[0].why = name;
  picture.alarms = {{.rule = "S01", .words = name, .places = {{.lane = 0, .begin = 0, .end = 1}}}};
  const std::string text = svg(picture);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  const auto all = elements_of(text);
  EXPECT_EQ(of_class(all, "verdict")[0].text, "</svg><script x=\"1\">&'\\x01\\xff");
}

TEST(Svg, NothingIsFetched) {
  std::string text = svg(small_picture());
  const std::string allowed = "xmlns=\"http://www.w3.org/2000/svg\"";
  ASSERT_NE(text.find(allowed), std::string::npos);
  text.erase(text.find(allowed), allowed.size());
  EXPECT_EQ(text.find("http"), std::string::npos);
  EXPECT_EQ(text.find("@import"), std::string::npos);
  EXPECT_NE(text.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Svg, AColumnIsNarrowAndGrey) {
  const std::string text = svg(small_picture(), {.page = Page::Column});
  const auto all = elements_of(text);
  EXPECT_EQ(all.front()["width"], "85mm");
  EXPECT_EQ(of_class(all, "task ").size(), 3U);
  EXPECT_EQ(text.find("prefers-color-scheme"), std::string::npos);
  // Each colour of the column has equal parts of red, green and blue.
  for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1)) {
    if (text[at - 1] == '(') continue;  // url(#idle)
    const std::string colour = text.substr(at + 1, 6);
    EXPECT_TRUE(colour.substr(0, 2) == colour.substr(2, 2) &&
                colour.substr(2, 2) == colour.substr(4))
        << colour;
  }
}

struct Rectangle {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] bool holds(double x, double y) const {
    return x > left && x < right && y > top && y < bottom;
  }
  [[nodiscard]] bool meets(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Words around a point take at least so much: letters of the narrowest fonts, without their tails.
Rectangle around_words(const Element& text) {
  const double size = std::stod(text["font-size"]);
  const double half = 0.25 * size * static_cast<double>(text.text.size());
  const double x = std::stod(text["x"]);
  const double y = std::stod(text["y"]);
  return {x - half, y - 0.7 * size, x + half, y};
}

// The points of an arrow: "M1 2Q3 4 5 6" is a curve, "M1 2L3 4" is straight.
std::vector<std::pair<double, double>> points_of(const std::string& path) {
  std::string numbers = path;
  for (char& c : numbers) c = c == 'M' || c == 'Q' || c == 'L' ? ' ' : c;
  std::istringstream in(numbers);
  std::vector<double> at;
  for (double number = 0; in >> number;) at.push_back(number);
  if (at.size() == 4) at = {at[0], at[1], (at[0] + at[2]) / 2, (at[1] + at[3]) / 2, at[2], at[3]};
  std::vector<std::pair<double, double>> points;
  for (double t = 0; t <= 1; t += 1.0 / 256) {
    const double a = (1 - t) * (1 - t);
    const double b = 2 * t * (1 - t);
    points.emplace_back(a * at[0] + b * at[2] + t * t * at[4],
                        a * at[1] + b * at[3] + t * t * at[5]);
  }
  return points;
}

// Words of findings lie on no bar, arrow or other words. Returns how many there are.
std::size_t expect_clear_words(const std::vector<Element>& all) {
  const auto words = of_class(all, "alarm-words");
  for (const Element& each : words) {
    const Rectangle box = around_words(each);
    for (const Element& other : all) {
      if (other.name == "rect" && other["class"].empty() && !other["x"].empty()) {
        const double x = std::stod(other["x"]);
        const double y = std::stod(other["y"]);
        const Rectangle bar{x, y, x + std::stod(other["width"]), y + std::stod(other["height"])};
        EXPECT_FALSE(box.meets(bar)) << each.text << " lies on a bar";
      }
      if (other.name == "text" && other["x"] + other["y"] != each["x"] + each["y"]) {
        const Rectangle beside = around_words(other);
        const bool centred = other["text-anchor"] == "middle";
        EXPECT_FALSE(centred && box.meets(beside)) << each.text << " lies on " << other.text;
      }
      if (other.name != "path" || other["marker-end"].empty()) continue;
      for (const auto& [x, y] : points_of(other["d"])) {
        EXPECT_FALSE(box.holds(x, y)) << each.text << " lies on the arrow " << other["d"];
        if (box.holds(x, y)) break;
      }
    }
  }
  return words.size();
}

// Ranks of ten forwards each, one after another.
Picture full_picture(std::size_t ranks) {
  Picture picture = small_picture();
  Timeline& timeline = picture.timeline;
  const TimedTask forward = timeline.tasks[0];
  timeline = {.ranks = ranks, .makespan = 10, .label = timeline.label};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    timeline.lanes.push_back({.rank = static_cast<std::int32_t>(rank), .name = "compute"});
    for (std::uint32_t at = 0; at < 10; ++at) {
      timeline.tasks.push_back(forward);
      timeline.tasks.back().begin = at;
      timeline.tasks.back().end = at + 1;
      timeline.tasks.back().lane = rank;
      timeline.tasks.back().id = timeline.tasks.back().entry = at;
    }
  }
  return picture;
}

Spot spot_at(std::uint32_t lane, double begin) {
  return {.lane = lane, .begin = begin, .end = begin + 1};
}

// Two ranks wait for each other, as in the gallery: four arrows between two tasks of each.
Picture deadlocked_picture() {
  Picture picture = full_picture(2);
  const Spot s1 = spot_at(0, 3);
  const Spot r0 = spot_at(0, 4);
  const Spot s0 = spot_at(1, 3);
  const Spot r1 = spot_at(1, 4);
  picture.alarms = {{.rule = "T09",
                     .words = "error[T09]: deadlock",
                     .places = {s1, r1, s0, r0},
                     .arrows = {{s1, r1, "ends only with `1RECV_F1` of rank 1"},
                                {r1, s0, "is queued behind `1SEND_B0`"},
                                {s0, r0, "ends only with `0RECV_B0` of rank 0"},
                                {r0, s1, "is queued behind `0SEND_F1`"}}}};
  return picture;
}

TEST(Svg, WordsOfADeadlockStandBesideTheirArrows) {
  for (const Page page : {Page::Screen, Page::Column}) {
    const auto all = elements_of(svg(deadlocked_picture(), {.page = page}));
    EXPECT_EQ(expect_clear_words(all), 4U);
  }
}

TEST(Svg, WordsOfFindingsLieOnNothingWhereverTheyAre) {
  std::mt19937 random(31);
  const auto below = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  std::size_t beside = 0;
  std::size_t given = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t ranks = 1 + below(4);
    Picture picture = full_picture(ranks);
    for (std::uint32_t at = 0; at < 40; at += 3) picture.timeline.path.push_back(at % (10 * ranks));
    const std::uint32_t arrows = 1 + below(6);
    Alarm alarm{.rule = "B01", .words = "error[B01]: no place"};
    for (std::uint32_t at = 0; at < arrows; ++at) {
      alarm.arrows.push_back({spot_at(below(ranks), below(10)), spot_at(below(ranks), below(10)),
                              "its memory goes to number " + std::to_string(at)});
    }
    picture.alarms = {alarm,
                      {.rule = "S01",
                       .words = "error[S01]: twice",
                       .places = {spot_at(0, 1), spot_at(0, below(4))}}};
    const auto all = elements_of(svg(picture, {.fold = round % 2 == 0}));
    beside += expect_clear_words(all);
    given += arrows;
    for (std::uint32_t at = 0; at < arrows; ++at) {
      const std::string words = "B01 its memory goes to number " + std::to_string(at);
      EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                              [&](const Element& each) { return each.text == words; }))
          << words << " is lost";
    }
  }
  EXPECT_GT(beside, given) << "most words and marks have a place in the picture";
}

TEST(Svg, WordsThatManyArrowsShareStandOnce) {
  Picture picture = full_picture(1);
  for (std::uint32_t at = 0; at < 300; ++at) {
    picture.alarms.push_back({.rule = "B01",
                              .words = "error[B01]: number " + std::to_string(at),
                              .arrows = {{spot_at(0, at % 10), spot_at(0, at % 7), "it is read"}}});
  }
  const auto all = elements_of(svg(picture));
  EXPECT_EQ(of_class(all, "finding").size(), 300U);
  const auto below = of_class(all, "soft");
  EXPECT_LE(std::count_if(below.begin(), below.end(),
                          [](const Element& each) { return each.text == "B01 it is read"; }),
            1);
}

TEST(Svg, WordsWithoutAnyRoomStandBelow) {
  Picture picture = full_picture(1);
  Alarm alarm{.rule = "B01", .words = "error[B01]: no place"};
  for (std::uint32_t at = 0; at < 300; ++at) {
    alarm.arrows.push_back(
        {spot_at(0, at % 10), spot_at(0, (at + 1) % 10), "goes to number " + std::to_string(at)});
  }
  picture.alarms = {alarm};
  EXPECT_EQ(svg(deadlocked_picture()).find("class=\"many\""), std::string::npos);
  EXPECT_NE(svg(picture).find("class=\"many\""), std::string::npos) << "with thin arrows";
  const auto all = elements_of(svg(picture));
  expect_clear_words(all);
  for (const char* words : {"B01 goes to number 0", "B01 goes to number 299"}) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Element& each) {
      return each.text == words;
    })) << words;
  }
}

// The numbers of all places and sizes in a picture.
void expect_finite(const std::string& text) {
  for (const Element& each : elements_of(text)) {
    for (const char* attribute : {"x", "y", "width", "height", "x1", "x2", "y1", "y2"}) {
      const std::string value = each[attribute];
      if (value.empty() || value == "100%" || value.ends_with("mm")) continue;
      EXPECT_TRUE(std::isfinite(std::stod(value))) << each.name << " " << attribute << value;
      EXPECT_LT(std::abs(std::stod(value)), 1e7) << each.name << " " << attribute << value;
    }
  }
}

// A long step: hundred forwards of length 1 on one rank, which wait for each other.
Picture long_picture() {
  Picture picture = small_picture();
  Timeline& timeline = picture.timeline;
  const TimedTask forward = timeline.tasks[0];
  timeline.tasks.clear();
  timeline.path.clear();
  timeline.ranks = 1;
  timeline.makespan = 100;
  timeline.bubbles = {{.rank = 0, .begin = 98.5, .end = 100, .why = "nothing runs any more"}};
  timeline.memory = {{{.time = 0, .held = 1}, {.time = 60, .held = 2}, {.time = 100, .held = 0}}};
  for (std::uint32_t at = 0; at < 100; ++at) {
    timeline.tasks.push_back(forward);
    timeline.tasks.back().begin = at * 0.985;
    timeline.tasks.back().end = (at + 1) * 0.985;
    timeline.tasks.back().id = timeline.tasks.back().entry = at;
  }
  return picture;
}

TEST(Svg, ALongStepIsFoldedIntoLinesOfWhichNoneIsWiderThanAScreen) {
  const Picture picture = long_picture();
  const auto wide = elements_of(svg(picture));
  const auto folded = elements_of(svg(picture, {.fold = true}));
  EXPECT_GT(std::stod(wide.front()["width"]), 2500);
  EXPECT_LT(std::stod(folded.front()["width"]), 1400);
  const auto tasks = of_class(folded, "task ");
  ASSERT_EQ(tasks.size(), 100U) << "a task that goes on in the next line stays one";
  EXPECT_EQ(of_class(wide, "bubble").size(), of_class(folded, "bubble").size());
  double right = 0;
  std::size_t bars = 0;
  for (const Element& each : folded) {
    if (each.name != "rect" || each["x"].empty() || each["class"] != "") continue;
    right = std::max(right, std::stod(each["x"]) + std::stod(each["width"]));
    ++bars;
  }
  EXPECT_GT(bars, 101U) << "bars that cross into the next line have two pieces";
  EXPECT_LE(right, std::stod(folded.front()["width"]));
}

TEST(Svg, AShortStepIsNotFolded) {
  EXPECT_EQ(svg(small_picture(), {.fold = true}), svg(small_picture()));
}

TEST(Svg, WaitsOfAChosenTaskAreArrowsToAndFromIt) {
  Picture picture = small_picture();
  picture.timeline.waits = {{.task = 1, .on = 0}, {.task = 2, .on = 1}, {.task = 3, .on = 1}};
  picture.chosen = 2;
  picture.chosen_words = "waits of B1.0";
  const auto all = of_class(elements_of(svg(picture)), "chosen");
  const auto arrows = std::count_if(all.begin(), all.end(),
                                    [](const Element& each) { return each.name == "path"; });
  EXPECT_EQ(arrows, 1);
  EXPECT_NE(svg(picture).find(">waits of B1.0</text>"), std::string::npos);
}

// Letters are as wide as those of DejaVu Sans, which are wider than Helvetica's.
TEST(Svg, LabelsOfBarsKeepInsideThem) {
  Picture picture = full_picture(1);
  picture.timeline.one_chunk = false;
  for (std::size_t at = 0; at < 10; ++at) {
    TimedTask& task = picture.timeline.tasks[at];
    task.kind = Kind::BackwardWeight;
    task.microbatch = MicrobatchId(static_cast<std::int32_t>(10 * at));
    task.end = task.begin + 0.1 * static_cast<double>(at + 1);
  }
  const auto all = elements_of(svg(picture));
  std::size_t labels = 0;
  for (const Element& bar : all) {
    if (bar.name != "rect" || !bar["class"].empty() || bar["x"].empty()) continue;
    const double left = std::stod(bar["x"]);
    const double width = std::stod(bar["width"]);
    for (const Element& text : all) {
      if (text.name != "text" || text["text-anchor"] != "middle" || !text["class"].empty())
        continue;
      if (std::abs(std::stod(text["x"]) - left - width / 2) > 0.02) continue;
      ++labels;
      double wide = 0;
      for (const char c : text.text) wide += c == 'W' ? 0.989 : c == '.' ? 0.318 : 0.636;
      EXPECT_LT(wide * std::stod(text["font-size"]), width) << text.text;
    }
  }
  EXPECT_GT(labels, 7U);
}

TEST(Svg, NothingAtAllIsAPictureWithItsVerdict) {
  const Picture picture{.verdict = "accepted"};
  const std::string text = svg(picture);
  expect_finite(text);
  EXPECT_EQ(of_class(elements_of(text), "verdict").size(), 1U);
  EXPECT_TRUE(of_class(elements_of(text), "task ").empty());
}

TEST(Svg, TimesOfAnySizeFitThePage) {
  for (const double factor : {0.0, 1e-9, 1e9}) {
    Picture picture = small_picture();
    Timeline& timeline = picture.timeline;
    timeline.makespan *= factor;
    for (TimedTask& task : timeline.tasks) {
      task.begin *= factor;
      task.end *= factor;
    }
    for (Bubble& bubble : timeline.bubbles) {
      bubble.begin *= factor;
      bubble.end *= factor;
    }
    timeline.memory[0][1].time *= factor;
    const std::string text = svg(picture);
    expect_finite(text);
    const auto tasks = of_class(elements_of(text), "task ");
    ASSERT_EQ(tasks.size(), 3U) << factor;
    EXPECT_EQ(std::stod(tasks[1]["data-end"]), 3 * factor);
  }
}

TEST(Svg, ATaskWithoutALengthIsSeen) {
  Picture picture = small_picture();
  picture.timeline.tasks[0].end = 0;
  const auto all = elements_of(svg(picture));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Element& each) {
    return each.name == "rect" && each["width"] == "0.8";
  }));
}

TEST(Svg, EveryRankOfManyHasItsName) {
  Picture picture = small_picture();
  picture.timeline.ranks = 4096;
  const auto all = elements_of(svg(picture));
  const auto named = std::count_if(all.begin(), all.end(), [](const Element& each) {
    return each.name == "text" && each.text.starts_with("rank ");
  });
  EXPECT_EQ(named, 4096);
}

TEST(Svg, TheSamePictureIsTheSameBytes) {
  EXPECT_EQ(svg(small_picture()), svg(small_picture()));
}

}  // namespace
}  // namespace capo

// The columns of a page, read back; tests/cli/draw_page_test.cpp has what a browser makes of them.

#include "core/timeline/picture.h"
#include "tests/core/timeline/timelines.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using timelines::on_one_lane;

json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::string bytes_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : base64.substr(0, base64.find('='))) {
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

template <typename Number>
std::vector<Number> numbers_of(const json& column) {
  const std::string bytes = bytes_of(column.get<std::string>().substr(3));
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

Picture picture_of_three() {
  Picture picture{.title = "a.order", .verdict = "accepted", .accepted = true};
  picture.timeline = on_one_lane(
      {{.begin = 0, .end = 1.5, .microbatch = 3, .kind = Kind::Forward, .chunk = 1, .entry = 0},
       {.begin = 1.5, .end = 2, .microbatch = 300, .kind = Kind::Forward, .chunk = 1, .entry = 1},
       {.begin = 2, .end = 4, .kind = Kind::Unshard, .chunk = 1, .entry = kNoPosition}},
      {"F1.3", "F1.300", "F1.3"});
  return picture;
}

TEST(Page, ColumnsAreAsWideAsTheirNumbers) {
  const json tasks = data_of(html({picture_of_three()}))["pictures"][0]["tasks"];
  EXPECT_EQ(tasks["count"], 3);
  EXPECT_EQ(numbers_of<double>(tasks["begin"]), (std::vector<double>{0, 1.5, 2}));
  EXPECT_EQ(numbers_of<float>(tasks["length"]), (std::vector<float>{1.5, 0.5, 2}));
  EXPECT_TRUE(tasks["microbatch"].get<std::string>().starts_with("u2:"));
  EXPECT_EQ(numbers_of<std::uint16_t>(tasks["microbatch"]),
            (std::vector<std::uint16_t>{4, 301, 0}));
  EXPECT_EQ(tasks["chunk"], json({3, 1})) << "all are equal";
  EXPECT_EQ(numbers_of<std::uint32_t>(tasks["entry"]),
            (std::vector<std::uint32_t>{0, 1, kNoPosition}));
}

TEST(Page, WhatQuantizationTakesIsAColumnWhereItIsTold) {
  Picture picture = picture_of_three();
  EXPECT_FALSE(data_of(html({picture}))["pictures"][0]["tasks"].contains("quantizing"));
  picture.timeline.tasks[1].quantizing = 0.25;
  const json tasks = data_of(html({picture}))["pictures"][0]["tasks"];
  EXPECT_EQ(numbers_of<float>(tasks["quantizing"]), (std::vector<float>{0, 0.25, 0}));
}

TEST(Page, LabelsThatRepeatStandOnce) {
  const json picture = data_of(html({picture_of_three()}))["pictures"][0];
  EXPECT_EQ(picture["labels"], json({"F1.3", "F1.300"}));
  EXPECT_EQ(numbers_of<std::uint8_t>(picture["tasks"]["label"]),
            (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(Page, CausesAreWaysToOtherTasks) {
  Picture picture = picture_of_three();
  picture.timeline.bound_by = {kNoPosition, 0, 0};
  picture.timeline.waits = {{.task = 0, .on = 2}, {.task = 2, .on = 1}};
  const json tasks = data_of(html({picture}))["pictures"][0]["tasks"];
  EXPECT_EQ(numbers_of<std::uint8_t>(tasks["bound"]), (std::vector<std::uint8_t>{0, 1, 3}));
  EXPECT_EQ(numbers_of<std::uint8_t>(tasks["waitCounts"]), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(numbers_of<std::uint8_t>(tasks["waits"]), (std::vector<std::uint8_t>{4, 1}));
}

TEST(Page, NamesCannotEndTheData) {
  Picture picture = picture_of_three();
  picture.title = "</script><b>";
  const std::string page = html({picture});
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_EQ(data_of(page)["pictures"][0]["title"], "</script><b>");
}

TEST(Page, PlacesOfEntriesAreGapsInTheText) {
  Picture picture = picture_of_three();
  picture.order = {.text = "[1, -1]", .entries = {{{1, 1}, {4, 2}}, {{1, 1}}}};
  const json order = data_of(html({picture}))["pictures"][0]["order"];
  EXPECT_EQ(order["text"], "[1, -1]");
  EXPECT_EQ(numbers_of<std::uint8_t>(order["counts"]), (std::vector<std::uint8_t>{2, 1}));
  EXPECT_EQ(numbers_of<std::uint8_t>(order["gaps"]), (std::vector<std::uint8_t>{2, 4, 9}));
}

}  // namespace
}  // namespace capo

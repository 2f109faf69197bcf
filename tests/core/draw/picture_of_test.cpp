#include "core/draw/picture_of.h"

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::Checked;

// The order of a text without times, as a picture.
Picture picture_without_times(const Checked& checked) {
  const Report report = report_of(checked.input, checked.result, {});
  return picture_of(checked.input, report, listed(checked.input), "it is a test");
}

TEST(PictureOf, ListsEachEntryAtItsIndex) {
  const Picture picture = picture_without_times(check_te("[1, 1, -1, -1]"));
  const Timeline& timeline = picture.timeline;
  ASSERT_EQ(timeline.tasks.size(), 4U);
  EXPECT_EQ(timeline.tasks[2].begin, 2);
  EXPECT_EQ(timeline.tasks[2].end, 3);
  EXPECT_EQ(timeline.makespan, 4);
  EXPECT_EQ(timeline.label(3), "B1.1");
  EXPECT_EQ(picture.verdict, "accepted");
  EXPECT_EQ(picture.setting.back(), "without times, each entry at its index: it is a test");
  EXPECT_TRUE(picture.alarms.empty());
}

TEST(PictureOf, MembersOfACompositeShareAnIndex) {
  const Picture picture =
      picture_without_times(check_csv("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,,0B2\n"));
  const auto& tasks = picture.timeline.tasks;
  ASSERT_EQ(tasks.size(), 6U);
  EXPECT_EQ(tasks[2].begin, tasks[3].begin);
  EXPECT_EQ(tasks[3].member, 1);
  EXPECT_EQ(tasks[3].members, 2);
  EXPECT_EQ(tasks[4].members, 1);
  EXPECT_EQ(tasks[5].begin, 5) << "an idle slot takes its place";
}

TEST(PictureOf, AFindingStandsAtItsEntries) {
  const Picture picture = picture_without_times(check_te("[1, 2, -1, -1]"));
  ASSERT_EQ(picture.alarms.size(), 1U);
  const Alarm& alarm = picture.alarms.front();
  EXPECT_EQ(alarm.rule, "S15");
  EXPECT_TRUE(alarm.words.starts_with("error[S15]: `-1` at index 3 is a backward")) << alarm.words;
  ASSERT_FALSE(alarm.places.empty());
  EXPECT_EQ(alarm.places.front().begin, 3);
}

TEST(PictureOf, ANumberThatIsNoActionKeepsItsPlace) {
  const Picture picture = picture_without_times(check_te("[1, -1.25, -1]"));
  const auto& tasks = picture.timeline.tasks;
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].begin, 0);
  EXPECT_EQ(tasks[1].begin, 2);
  ASSERT_EQ(picture.alarms.size(), 1U);
  ASSERT_EQ(picture.alarms.front().places.size(), 1U);
  EXPECT_EQ(picture.alarms.front().places.front().begin, 1);
  EXPECT_EQ(picture.alarms.front().places.front().end, 2);
}

TEST(PictureOf, ANumberAtTheEndThatIsNoActionIsInThePicture) {
  const Picture picture = picture_without_times(check_te("[1, -1, -1.25]"));
  ASSERT_EQ(picture.alarms.size(), 1U);
  EXPECT_EQ(picture.alarms.front().places.front().begin, 2);
  EXPECT_EQ(picture.timeline.makespan, 3);
}

TEST(PictureOf, SaysHowManyFindingsAreNotDrawn) {
  std::string list = "1";
  for (int i = 0; i < 150; ++i) list += ", -1.25";
  const Picture picture = picture_without_times(check_te(list));
  EXPECT_EQ(picture.alarms.size(), 100U);
  EXPECT_EQ(picture.setting[picture.setting.size() - 2],
            "not drawn: 50 more findings; `capo check` tells of all");
}

TEST(PictureOf, ADeadlockIsARingOfArrowsThatSayWhatIsWaitedFor) {
  const Picture picture =
      picture_without_times(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"));
  ASSERT_EQ(picture.alarms.size(), 1U);
  const auto& arrows = picture.alarms.front().arrows;
  ASSERT_EQ(arrows.size(), 4U);
  EXPECT_EQ(arrows[0].words, "ends only with `1RECV_F1` of rank 1");
  EXPECT_EQ(arrows[0].from.lane, 0U);
  EXPECT_EQ(arrows[0].from.begin, 3) << "0SEND_F1";
  EXPECT_EQ(arrows[0].to.lane, 1U);
  EXPECT_EQ(arrows[0].to.begin, 4) << "1RECV_F1";
  EXPECT_EQ(arrows[3].to.begin, arrows[0].from.begin) << "the ring closes";
}

TEST(PictureOf, WithoutRanksThereIsNothing) {
  const Picture picture = picture_without_times(check_te("[]"));
  EXPECT_TRUE(picture.timeline.tasks.empty());
}

}  // namespace
}  // namespace capo

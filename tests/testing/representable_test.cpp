#include "testing/representable.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

Schedule named(std::vector<Entry> order) {
  Schedule schedule{.naming = Naming::Named};
  schedule.ranks.push_back({.order = std::move(order), .chunks = 1, .chunks_declared = true});
  return schedule;
}

const Entry kForward{.chunk = 1, .microbatch = 0, .kind = Kind::Forward};

std::string_view reason(const Schedule& schedule) {
  return unrepresentable(schedule).value_or("");
}

TEST(Representable, IsAPlainSchedule) {
  EXPECT_EQ(reason(named({kForward})), "");
}

TEST(Representable, IsNoScheduleWithoutRanks) {
  EXPECT_EQ(reason({}), "no rank");
}

TEST(Representable, IsNoNamelessMicrobatchAmongNamedOnes) {
  Entry nameless = kForward;
  nameless.microbatch = kNoMicrobatch;
  EXPECT_EQ(reason(named({kForward, nameless})), "a nameless microbatch among named ones");
}

TEST(Representable, AreNoNamedMicrobatchesWhereThereAreNone) {
  EXPECT_EQ(reason(named({{}})), "named microbatches where there are none");
}

TEST(Representable, IsNoIdleSlotInAComposite) {
  EXPECT_EQ(reason(named({kForward, {.group = Group::Opens}})), "an idle slot in a composite");
}

TEST(Representable, IsNoCompositeThatNothingOpens) {
  Entry member = kForward;
  member.group = Group::Continues;
  EXPECT_EQ(reason(named({kForward, member})), "a composite that nothing opens");
}

TEST(Representable, AreNoDelaysOfMoreChunksThanThereAre) {
  Schedule schedule = named({kForward});
  schedule.ranks[0].delay = {Delay::Never, Delay::Always};
  EXPECT_EQ(reason(schedule), "delays declared for more or fewer chunks than there are");
}

TEST(Representable, IsNoEmptyListOfLayersNorANegativeCount) {
  Schedule schedule = named({kForward});
  schedule.ranks[0].layers = {.form = Layers::Form::List};
  EXPECT_EQ(reason(schedule), "layers without their numbers");
  schedule.ranks[0].layers.values = {-1};
  EXPECT_EQ(reason(schedule), "a negative or very large number of layers");
}

TEST(Representable, AreNoCountedMicrobatchesOutOfTurn) {
  Schedule schedule = named({kForward});
  schedule.naming = Naming::Counted;
  EXPECT_EQ(reason(schedule), "");
  schedule.ranks[0].order[0].microbatch = 1;
  EXPECT_EQ(reason(schedule), "counted microbatches that are not in turn");
}

TEST(Representable, AreNoStagesThatTheTopologyDoesNotGive) {
  Schedule schedule = named({kForward});
  schedule.topology = Topology::Chain;
  schedule.ranks[0].stages = {1};
  EXPECT_EQ(reason(schedule), "stages that the topology does not give");
  schedule.ranks[0].stages = {0};
  EXPECT_EQ(reason(schedule), "");
}

TEST(Representable, IsNoNumberAboveTheLimit) {
  Schedule schedule = named({kForward});
  schedule.ranks[0].order[0].microbatch = 100;
  EXPECT_EQ(unrepresentable(schedule, {.counts = 99}).value_or(""), "a number above the limit");
}

}  // namespace
}  // namespace capo::testing

// Laws of verdicts: what they say of orders that keep them, and of orders that do not.

#include "testing/laws/verdicts.h"

#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo::testing {
namespace {

// One rank, one chunk: F and B of microbatches 0 and 1, `last` at the end.
Schedule order_ending_in(const Entry& last) {
  Schedule schedule{.naming = Naming::Named, .microbatches = 2};
  RankOrder& rank = schedule.ranks.emplace_back();
  rank.chunks = 1;
  rank.order = {{.chunk = 1, .microbatch = 0, .kind = Kind::Forward},
                {.chunk = 1, .microbatch = 1, .kind = Kind::Forward},
                {.chunk = 1, .microbatch = 0, .kind = Kind::Backward},
                last};
  return schedule;
}

const Schedule kRight = order_ending_in({.chunk = 1, .microbatch = 1, .kind = Kind::Backward});
const Schedule kWrong = order_ending_in({.chunk = 1, .microbatch = 0, .kind = Kind::Backward});

TEST(Verdicts, ABreachIsTheReportThatCapoCheckPrints) {
  EXPECT_EQ(laws::is_accepted(kRight), std::nullopt);
  const Breach breach = laws::is_accepted(kWrong);
  ASSERT_TRUE(breach.has_value());
  EXPECT_TRUE(breach->starts_with("error[S")) << *breach;
  EXPECT_NE(breach->find("rank 0: F1.0 F1.1 B1.0 B1.0"), std::string::npos) << *breach;
  EXPECT_NE(breach->find("rejected: "), std::string::npos) << *breach;
}

TEST(Verdicts, AreRelativeToThePlan) {
  const Schedule late =
      checked(
          TeOrder{
              .list = {.entries = {te_entry(Kind::Forward, 1), te_entry(Kind::Backward, 1),
                                   te_entry(Kind::Forward, 1), te_entry(Kind::BackwardWeight, 1),
                                   te_entry(Kind::Backward, 1), te_entry(Kind::BackwardWeight, 1)}},
              .microbatches = 2,
              .layers = {.form = Layers::Form::List, .values = {1}},
              .delays = {true}})
          .input.schedule;
  EXPECT_EQ(laws::is_accepted(late), std::nullopt);
  CheckOptions options{.plan = {.kind = PlanKind::Te, .aliases = Aliases{.input = true}}};
  const Breach breach = laws::is_accepted(late, options);
  ASSERT_TRUE(breach.has_value());
  EXPECT_TRUE(breach->starts_with("error[B01]")) << *breach;
}

// A schedule that is broken already hides the faults behind it.
TEST(Verdicts, OfFaultsNameTheFaultAndWhatWasBroken) {
  std::vector<std::string> breaches;
  for (const TeOrder& order : sample(sound_order(), 20)) {
    TeOrder broken = order;
    broken.list.entries.front().value = 0.25;
    if (const Breach breach = laws::faults_are_reported(broken, 0)) breaches.push_back(*breach);
  }
  ASSERT_FALSE(breaches.empty());
  for (const std::string& breach : breaches) {
    EXPECT_NE(breach.find(": expected "), std::string::npos) << breach;
    EXPECT_NE(breach.find("[0.25"), std::string::npos) << breach;
  }
}

TEST(Verdicts, OfFaultsHoldOfWhatIsSound) {
  for (const TeOrder& order : sample(sound_order(), 5)) {
    EXPECT_EQ(laws::faults_are_reported(order, 7), std::nullopt);
  }
  for (const Schedule& schedule : sample(sound_named_schedule(), 5)) {
    EXPECT_EQ(laws::faults_are_reported(schedule, 7), std::nullopt);
    EXPECT_EQ(laws::faults_are_reported(table_of(schedule), 7), std::nullopt);
  }
  for (const Declared& declared : sample(sound_planned(), 5)) {
    EXPECT_EQ(laws::plan_faults_are_reported(declared, 7), std::nullopt);
  }
}

}  // namespace
}  // namespace capo::testing

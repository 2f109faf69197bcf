#include "testing/generators/arbitrary_schedule.h"

#include "testing/representable.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

TEST(ArbitrarySchedule, KeepsTheInvariantsAndSoDoesWhatItShrinksTo) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_schedule(), 100)) {
    EXPECT_EQ(unrepresentable(shrinkable.value()).value_or(""), "");
    auto shrinks = shrinkable.shrinks();
    for (auto smaller = shrinks.next(); smaller; smaller = shrinks.next()) {
      EXPECT_EQ(unrepresentable(smaller->value()).value_or(""), "")
          << rc::toString(smaller->value());
    }
  }
}

bool any_microbatch(const std::vector<Entry>& order) {
  return std::any_of(order.begin(), order.end(),
                     [](const Entry& entry) { return has_microbatch(entry.kind); });
}

bool any_microbatch(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return any_microbatch(rank.order) || (rank.replay && any_microbatch(*rank.replay));
  });
}

TEST(ArbitrarySchedule, IsOfEveryTopologyNamingAndSize) {
  const auto schedules = sample(arbitrary_schedule(), 5000);
  std::vector<Naming> namings;
  std::vector<std::int32_t> microbatches;
  std::vector<std::int32_t> stages;
  for (const Schedule& schedule : schedules) {
    if (any_microbatch(schedule)) {
      namings.push_back(schedule.naming);
    } else {
      EXPECT_EQ(schedule.naming, Naming::Counted);
    }
    if (schedule.microbatches) microbatches.push_back(*schedule.microbatches);
    if (schedule.stages) stages.push_back(*schedule.stages);
  }
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return one.topology; }),
                       {Topology::Independent, Topology::Chain, Topology::Loop, Topology::V,
                        Topology::Bidirectional, Topology::Custom}));
  EXPECT_TRUE(are_even(parts(schedules, [](const Schedule& one) { return one.ranks.size(); }),
                       numbers<std::size_t>(1, 4)));
  EXPECT_TRUE(are_even(namings, {Naming::Counted, Naming::Named}));
  EXPECT_TRUE(is_share(microbatches.size(), schedules.size(), 1.0 / 2));
  EXPECT_TRUE(is_share(stages.size(), schedules.size(), 1.0 / 2));
  EXPECT_TRUE(are_even(microbatches, numbers(1, 8)));
}

TEST(ArbitrarySchedule, DeclaresOfItsRanksWhatItClaims) {
  std::vector<Layers::Form> forms;
  std::vector<bool> chunks_declared;  // only ranks whose layers do not ask for it
  std::vector<std::int32_t> chunks;
  std::vector<Delay> named;
  std::vector<Delay> counted;
  std::vector<std::int32_t> stages;
  std::vector<std::int64_t> layer_counts;
  std::vector<std::size_t> list_sizes;
  std::size_t delays = 0;
  std::size_t replays = 0;
  for (const Schedule& schedule : sample(arbitrary_schedule(), 5000)) {
    const bool custom = schedule.topology == Topology::Custom;
    for (const RankOrder& rank : schedule.ranks) {
      forms.push_back(rank.layers.form);
      const bool list = rank.layers.form == Layers::Form::List;
      if (list) list_sizes.push_back(rank.layers.values.size());
      layer_counts.insert(layer_counts.end(), rank.layers.values.begin(), rank.layers.values.end());
      if (list) {
        EXPECT_TRUE(rank.chunks_declared);
      } else {
        chunks_declared.push_back(rank.chunks_declared);
      }
      if (rank.chunks_declared || custom) chunks.push_back(rank.chunks);
      if (custom) stages.insert(stages.end(), rank.stages.begin(), rank.stages.end());
      replays += rank.replay ? 1 : 0;
      delays += rank.delay ? 1 : 0;
      if (!rank.delay) continue;
      auto& drawn = schedule.naming == Naming::Named ? named : counted;
      drawn.insert(drawn.end(), rank.delay->begin(), rank.delay->end());
    }
  }
  EXPECT_TRUE(is_share(replays, forms.size(), 1.0 / 4));
  EXPECT_TRUE(is_share(delays, forms.size(), 1.0 / 2));
  EXPECT_TRUE(are_even(chunks_declared, {false, true}));
  EXPECT_TRUE(are_even(chunks, numbers(0, 5)));
  EXPECT_TRUE(are_even(named, {Delay::Never, Delay::Always, Delay::Mixed}));
  EXPECT_TRUE(are_even(counted, {Delay::Never, Delay::Always}));
  EXPECT_TRUE(are_even(stages, numbers(0, 19)));
  EXPECT_TRUE(are_even(layer_counts, numbers<std::int64_t>(0, 3)));
  EXPECT_TRUE(are_even(list_sizes, numbers<std::size_t>(1, 5)));
  for (const auto& [form, odds] :
       {std::pair(Layers::Form::Unstated, 2.0 / 5), std::pair(Layers::Form::Null, 1.0 / 5),
        std::pair(Layers::Form::Count, 1.0 / 5), std::pair(Layers::Form::List, 1.0 / 5)}) {
    const auto count = std::count(forms.begin(), forms.end(), form);
    EXPECT_TRUE(is_share(static_cast<std::size_t>(count), forms.size(), odds));
  }
}

TEST(ArbitrarySchedule, HasEveryEntryAsOftenAsItClaims) {
  std::vector<std::size_t> sizes;
  std::vector<Kind> kinds;
  std::vector<Kind> computations;  // only orders of named microbatches
  std::vector<std::int32_t> chunks;
  std::vector<std::int32_t> microbatches;
  for (const Schedule& schedule : sample(arbitrary_schedule(), 3000)) {
    const bool named = schedule.naming == Naming::Named;
    for (const RankOrder& rank : schedule.ranks) {
      sizes.push_back(rank.order.size());
      for (const Entry& entry : rank.order) {
        kinds.push_back(entry.kind);
        if (entry.kind == Kind::Idle) continue;
        chunks.push_back(entry.chunk);
        if (named && is_compute(entry.kind)) computations.push_back(entry.kind);
        if (named && has_microbatch(entry.kind)) microbatches.push_back(entry.microbatch);
      }
    }
  }
  EXPECT_TRUE(are_even(sizes, numbers<std::size_t>(0, 12)));
  EXPECT_TRUE(are_even(computations,
                       {Kind::Forward, Kind::Backward, Kind::BackwardInput, Kind::BackwardWeight}));
  EXPECT_TRUE(is_share(count_of(kinds, is_compute), kinds.size(), 6.0 / 11));
  EXPECT_TRUE(is_share(count_of(kinds, is_exchange), kinds.size(), 1.0 / 11));
  for (const Kind transfer :
       {Kind::SendForward, Kind::ReceiveForward, Kind::SendBackward, Kind::ReceiveBackward}) {
    const auto count = std::count(kinds.begin(), kinds.end(), transfer);
    EXPECT_TRUE(is_share(static_cast<std::size_t>(count), kinds.size(), 2.0 / 44));
  }
  for (const Kind whole : {Kind::Unshard, Kind::Reshard, Kind::ReduceGradient}) {
    const auto count = std::count(kinds.begin(), kinds.end(), whole);
    EXPECT_TRUE(is_share(static_cast<std::size_t>(count), kinds.size(), 1.0 / 33));
  }
  EXPECT_TRUE(is_share(count_of(kinds, [](Kind kind) { return kind == Kind::Idle; }), kinds.size(),
                       1.0 / 11));
  EXPECT_TRUE(is_share(count_of(chunks, [](std::int32_t chunk) { return chunk >= 13; }),
                       chunks.size(), 1.0 / 16));
  std::erase_if(chunks, [](std::int32_t chunk) { return chunk >= 13; });
  EXPECT_TRUE(are_even(chunks, numbers(1, 4)));
  EXPECT_TRUE(is_share(count_of(microbatches, [](std::int32_t m) { return m >= 1000; }),
                       microbatches.size(), 1.0 / 20));
  std::erase_if(microbatches, [](std::int32_t m) { return m >= 1000; });
  EXPECT_TRUE(are_even(microbatches, numbers(0, 5)));
}

bool composes(const Entry& entry) {
  return entry.kind != Kind::Idle &&
         !(entry.kind >= Kind::SendForward && entry.kind <= Kind::ReceiveBackward);
}

// The size of a composite that an idle slot or a transfer cuts off is not looked at.
TEST(ArbitrarySchedule, ComposesTwoOrThreeAtOneEntryInSix) {
  std::vector<bool> opened;
  std::vector<bool> of_three;
  for (const Schedule& schedule : sample(arbitrary_schedule(), 2000)) {
    for (const RankOrder& rank : schedule.ranks) {
      const auto& order = rank.order;
      for (std::size_t at = 0; at < order.size(); ++at) {
        if (!composes(order[at]) || order[at].group == Group::Continues) continue;
        opened.push_back(order[at].group == Group::Opens);
        if (!opened.back() || at + 2 >= order.size()) continue;
        if (composes(order[at + 1]) && composes(order[at + 2]))
          of_three.push_back(order[at + 2].group == Group::Continues);
      }
    }
  }
  EXPECT_TRUE(is_share(count_of(opened, [](bool is) { return is; }), opened.size(), 1.0 / 6));
  EXPECT_TRUE(are_even(of_three, {false, true}));
}

TEST(ArbitrarySchedule, ShrinksToOneEmptyRank) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_schedule(), 50)) {
    EXPECT_EQ(rc::toString(shrink_path(shrinkable).back()), "capo 1\nranks 1\nrank 0:\n");
  }
}

}  // namespace
}  // namespace capo::testing
